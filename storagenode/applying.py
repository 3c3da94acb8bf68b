"""What a run of log entries amounts to, in one batch for the store. Depends on the entries and the store alone (design
§5)."""

from __future__ import annotations

import struct
from typing import Final

from dynamo import codec
from dynamo.change import encode_change, encode_touch
from dynamo.codec import stamp_milliseconds
from dynamo.regions import is_global
from dynamo.table import Table, decode_table
from replication.messages import NORMAL, Entry
from storagenode import commands
from storagenode import expiry as expiries
from storagenode.change_readers import ChangeReaders
from storagenode.expiry import Expiry, ExpiryCommand
from storagenode.index_commands import IndexWriteCommand, ReadCommand, TouchCommand
from storagenode.index_rows import take_rows
from storagenode.indexes import LocalIndexes, local_indexes_of
from storagenode.regional import save_taken
from storagenode.regional_commands import (
    ClockCommand,
    CutOffCommand,
    RegionalCommand,
    Source,
    Tombstone,
    TombstonesCommand,
)
from storagenode.storage import layout
from storagenode.storage.store import SCHEMA, Applied, OperationIdRow, Store, StoreBroken, WriteBatch
from storagenode.transaction_commands import FinishCommand, OnCommit, PrepareCommand, TransactCommand
from storagenode.transaction_marks import Mark, Marks, MarksTaken
from storagenode.transaction_tokens import TokensTaken

LAST_DELETE: Final = b"last delete"
"""The name of the row that holds the position of the partition's last delete: a missing item's version."""

_POSITION = struct.Struct("<Q")


def last_delete(store: Store) -> int:
    """The applied position of the partition's last delete, 0 if there was none."""
    value = store.meta(LAST_DELETE)
    return 0 if value is None else int(_POSITION.unpack(value)[0])


class Taken:
    """Entries as they are taken, one after the other; what they amount to together is in `batch`."""

    def __init__(
        self,
        store: Store,
        local: LocalIndexes | None,
        marks: Marks,
        readers: ChangeReaders,
        expiry: Expiry | None,
        schema: Table | None = None,
    ) -> None:
        """`schema` and the rest are those of the applied state."""
        before = store.applied()
        self.batch = WriteBatch(before)
        self.ids: list[int] = []
        self.schema: Table | None = None
        self.local = local
        self.marks = MarksTaken(marks, self.batch)
        self.last_delete = 0
        self.readers = readers
        self.expiry = expiry
        self.sources: dict[int, int] = {}  # source of index rows → its last position that was taken
        self.regional: dict[Source, int] = {}  # source in another region → its last position that was taken
        self._is_global = is_global(schema)
        self._tokens = TokensTaken(store, self.batch)
        self._store = store
        self._stamp, self._items, self._size = before.stamp, before.items, before.size
        self._indexes = before.indexes

    def take(self, entry: Entry) -> None:
        """Add one entry."""
        operation_id = 0
        if entry.kind == NORMAL:
            operation_id = self._take(commands.decode(entry.payload), entry.position)
        self.ids.append(operation_id)
        self.batch.applied = Applied(entry.position, entry.epoch, self._stamp, self._items, self._size, self._indexes)

    def _take(self, command: commands.Command, position: int) -> int:
        """Add a command; its operation id."""
        match command:
            case commands.WriteCommand():
                self._write(command.key, command.stored, command.old_size, position)
                return command.operation_id
            case commands.SchemaCommand():
                first = self.schema is None and self._store.meta(SCHEMA) is None
                self.schema = decode_table(command.definition)
                self.readers = self.readers.with_schema(self.schema, position, self.batch, first=first)
                self.expiry = expiries.with_schema(self.expiry, self.schema, position, self.batch, first=first)
                self.local = local_indexes_of(self.schema)
                self._is_global = is_global(self.schema)
                self.batch.meta[SCHEMA] = command.definition
                return 0
            case FinishCommand():
                self._finish(command, position)
                return 0
            case PrepareCommand():
                self._stamp = max(self._stamp, command.stamp)
                self.marks.prepare(command)
                return command.operation_id
            case TransactCommand():
                self._stamp = max(self._stamp, command.stamp)
                for key, stored, old_size in command.writes:
                    self._write(key, stored, old_size, position)
                self._tokens.take(command, position)
                return command.operation_id
            case IndexWriteCommand() | ReadCommand() | TouchCommand():
                self._take_of_indexes(command, position)
                return 0
            case ExpiryCommand():
                if self.expiry is not None:
                    self.expiry = self.expiry.take(command, self.batch, self._before)
                return 0
            case RegionalCommand() | TombstonesCommand() | ClockCommand() | CutOffCommand():
                self._take_of_regions(command, position)
                return 0

    def _take_of_regions(
        self, command: RegionalCommand | TombstonesCommand | ClockCommand | CutOffCommand, position: int
    ) -> None:
        match command:
            case RegionalCommand():
                self._stamp = max(self._stamp, command.clock)
                for row in command.rows:
                    self._write(row.key, row.stored, row.old_size, position, command.clock)
                if command.position:
                    self.regional[command.source] = command.position
                    save_taken(self.batch, command.source, command.position)
            case TombstonesCommand():
                for tombstone in command.tombstones:
                    self._forget(tombstone)
            case ClockCommand():
                self._stamp = max(self._stamp, command.stamp)
            case CutOffCommand():
                self.readers = self.readers.without_region(command.number, self.batch)

    def _forget(self, tombstone: Tombstone) -> None:
        """Let a tombstone go, unless the item has been written or deleted since."""
        key = layout.tombstone_key(tombstone.key)
        stored = self.batch.rows[key] if key in self.batch.rows else self._store.row(key)
        if stored and codec.header_of(stored).stamp == tombstone.stamp:
            self.batch.rows[key] = None

    def _take_of_indexes(self, command: IndexWriteCommand | ReadCommand | TouchCommand, position: int) -> None:
        match command:
            case IndexWriteCommand():
                items, size, stamp = take_rows(command, self.batch)
                self._items += items
                self._size += size
                self._stamp = max(self._stamp, stamp)
                self.sources[command.source] = command.position
            case ReadCommand():
                self.readers = self.readers.read(command, self.batch)
            case TouchCommand():
                self.readers = self.readers.touched(command, position, self.batch)
                if command.keys and self.readers.follows:
                    self._change(position, encode_touch(command.index, command.keys))

    def _change(self, position: int, row: bytes) -> None:
        """Add a change row."""
        changes = self.batch.changes
        number = changes[-1][1] + 1 if changes and changes[-1][0] == position else 0
        changes.append((position, number, row))

    def _before(self, key: bytes) -> bytes:
        """The item's stored bytes as they are with what was taken so far, empty if there is none. Raises StoreBroken
        if they are damaged: nothing may be derived from them."""
        if key in self.batch.items:
            return self.batch.items[key] or b""
        stored = self._store.get(key)
        if stored is None:
            return b""
        try:
            codec.verify(key, stored)
        except codec.CorruptItem as error:
            raise StoreBroken(f"an item that a write replaces is damaged: {error}") from error
        return stored

    def _write(self, key: bytes, written: bytes, old_size: int, position: int, taken: int = 0) -> None:
        """Add an item's new state: stored bytes, or a tombstone. `taken`: the clock's stamp if another region made
        it."""
        before = b""
        if self.readers.follows or self.expiry is not None or self.local is not None:
            before = self._before(key)
        if self.readers.follows:
            self._change(position, encode_change(key, before, written, taken))
        if self.expiry is not None:
            self.expiry.moved(self.batch, key, before, written)
        header = codec.header_of(written)
        gone = bool(header.flags & codec.TOMBSTONE)
        stored = None if gone else written
        if self.local is not None:
            self._indexes = self.local.take(self.batch, self._store, self._indexes, key, before, stored)
        self.batch.items[key] = stored
        if self._is_global:
            self.batch.rows[layout.tombstone_key(key)] = written if gone else None
        self._items += (not gone) - (old_size > 0)
        self._size += header.size - old_size
        self._stamp = max(self._stamp, header.stamp)
        if gone:
            self.last_delete = position
            self.batch.meta[LAST_DELETE] = _POSITION.pack(position)

    def _finish(self, command: FinishCommand, position: int) -> None:
        self._stamp = max(self._stamp, command.stamp)
        for key, mark in self.marks.finish(command):
            if command.commit and mark.on_commit is not OnCommit.NOTHING:
                self._write(key, committed(key, mark, command.stamp, position), mark.old_size, position)

    def finish(self) -> WriteBatch:
        """The whole batch."""
        ids = self.ids
        if any(ids):
            applied = self.batch.applied
            first = applied.position - len(ids) + 1
            self.batch.operation_ids = OperationIdRow(first, stamp_milliseconds(applied.stamp), tuple(ids))
        return self.batch


def committed(key: bytes, mark: Mark, stamp: int, position: int) -> bytes:
    """The stored bytes that a marked item has once it is committed at this position: a tombstone for a delete."""
    flags = codec.TOMBSTONE if mark.on_commit is OnCommit.DELETE else 0
    return codec.encode(key, mark.body, codec.ItemHeader(flags, 0, mark.size, stamp, position))
