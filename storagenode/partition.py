"""The brain of one replica of a partition: decides writes on the leader, applies the log on every replica, answers
reads.

Deterministic: it knows its store, the entries of its log and what is passed in, and nothing else. Writes are decided
on the
applied state plus the *overlay*, the outcomes that are proposed and not yet applied. Reads see the applied state alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cluster.wire import storage_pb2
from dynamo import codec
from dynamo.codec import make_stamp, stamp_milliseconds
from dynamo.errors import ApiError, item_collection_too_large
from dynamo.expressions import tree
from dynamo.expressions.projection import project
from dynamo.table import Table, decode_table, encode_table
from dynamo.values import dump, load
from replication.messages import NORMAL, Entry
from storagenode import commands
from storagenode.indexes import LocalIndexes, local_indexes_of, write_units
from storagenode.item_collections import ITEM_COLLECTION_BYTES_MAX, ItemCollections
from storagenode.operation_ids import OperationIds
from storagenode.query import Page, run_slice
from storagenode.storage.store import Applied, OperationIdRow, Store, WriteBatch
from storagenode.writes import Changed, Old, Outcome, Refused, decide_delete, decide_put, decide_update

SCHEMA_NAME = b"schema"


@dataclass(frozen=True, slots=True)
class Propose:
    """The write goes ahead: this payload, at the position that `decide` was given, and the answer once it is
    applied."""

    payload: bytes
    reply: storage_pb2.WriteReply


@dataclass(frozen=True, slots=True)
class Answer:
    """No entry is needed. The answer may leave once everything up to position `after` is applied (0: at once), since it
    rests on a write that is still in flight there."""

    reply: storage_pb2.WriteReply | storage_pb2.Failure
    after: int


@dataclass(frozen=True, slots=True)
class Repeat:
    """This operation was applied before, at this position of the log, whose entry holds the answer."""

    position: int


Decision: TypeAlias = Propose | Answer | Repeat


class _Taken:
    """What a run of entries amounts to, in one batch for the store."""

    def __init__(self, store: Store, local: LocalIndexes | None) -> None:
        before = store.applied()
        self.batch = WriteBatch(before)
        self.ids: list[int] = []
        self.schema: Table | None = None
        self.local = local
        self._store = store
        self._applied = before

    def take(self, entry: Entry) -> None:
        """Add one entry. Depends on the entry alone (design §5)."""
        items, size, stamp, operation_id = self._applied.items, self._applied.size, self._applied.stamp, 0
        indexes = self._applied.indexes
        if entry.kind == NORMAL:
            command = commands.decode(entry.payload)
            if isinstance(command, commands.WriteCommand):
                header = codec.header_of(command.stored)
                gone = bool(header.flags & codec.TOMBSTONE)
                stored = None if gone else command.stored
                if self.local is not None:
                    indexes = self.local.take(self.batch, self._store, indexes, command.key, stored)
                self.batch.items[command.key] = stored
                items += (not gone) - (command.old_size > 0)
                size += header.size - command.old_size
                stamp = max(stamp, header.stamp)
                operation_id = command.operation_id
            else:
                self.schema = decode_table(command.definition)
                self.local = local_indexes_of(self.schema)
                self.batch.meta[SCHEMA_NAME] = command.definition
        self.ids.append(operation_id)
        self._applied = Applied(entry.position, entry.epoch, stamp, items, size, indexes)
        self.batch.applied = self._applied

    def finish(self) -> WriteBatch:
        """The whole batch."""
        ids = self.ids
        if any(ids):
            first = self._applied.position - len(ids) + 1
            self.batch.operation_ids = OperationIdRow(first, stamp_milliseconds(self._applied.stamp), tuple(ids))
        return self.batch


class Partition:
    """One replica's state machine over its store."""

    def __init__(self, store: Store, *, item_collection_bytes_max: int = ITEM_COLLECTION_BYTES_MAX) -> None:
        self._store = store
        self._overlay: dict[bytes, tuple[int, bytes | None]] = {}
        self._collections = ItemCollections(store, item_collection_bytes_max)
        self._in_flight: dict[int, tuple[int, storage_pb2.WriteReply]] = {}
        self._operations = OperationIds()
        for row in store.operation_ids():
            self._operations.add_all(row.first_position, row.stamp_ms, row.ids)
        schema = store.meta(SCHEMA_NAME)
        self._applied_schema = None if schema is None else decode_table(schema)
        self._applied_local = local_indexes_of(self._applied_schema)
        self.schema, self._local = self._applied_schema, self._applied_local
        self._last_stamp = store.applied().stamp

    @property
    def applied(self) -> Applied:
        """How far the log is applied, with the counts and the highest stamp of the applied state."""
        return self._store.applied()

    # --- writes, on the leader ---

    def decide(self, request: storage_pb2.Request, wall_ms: int, position: int) -> Decision:
        """What becomes of a write. `position` is where its entry will stand if it is proposed; the caller proposes it
        at once.

        Raises CorruptItem when the item's row fails its checksum.
        """
        if joined := self._in_flight.get(request.operation_id):
            return Answer(joined[1], joined[0])
        if (applied_at := self._operations.find(request.operation_id)) is not None:
            return Repeat(applied_at)
        kind = request.WhichOneof("operation")
        if kind == "put":
            key = request.put.key
            old, resting_on = self._current(key)
            outcome: Outcome = decide_put(request.put, old)
        elif kind == "update":
            key = request.update.key
            old, resting_on = self._current(key)
            outcome = decide_update(request.update, old, self.schema)
        else:
            key = request.delete.key
            old, resting_on = self._current(key)
            outcome = decide_delete(request.delete, old)
        if isinstance(outcome, Changed):
            reply = storage_pb2.WriteReply(attributes=outcome.attributes, old_size=old.size, new_size=outcome.size)
            if self._local is not None and not self._index(self._local, key, old, outcome, position, reply):
                return Answer(failure(item_collection_too_large(), old.size), self._collections.rests_on(key))
            return self._propose(request.operation_id, key, outcome, reply, wall_ms, position)
        if isinstance(outcome, Refused):
            return Answer(failure(outcome.error, old.size), resting_on)
        reply = storage_pb2.WriteReply(attributes=outcome.attributes, old_size=old.size)
        if self._local is not None:
            reply.collection_size = self._collections.size(key)
        return Answer(reply, resting_on)

    def _index(
        self, local: LocalIndexes, key: bytes, old: Old, changed: Changed, position: int, reply: storage_pb2.WriteReply
    ) -> bool:
        """Complete the reply by what the write does to the local indexes; False if the item collection has no room."""
        before, after = local.of_stored(key, old.stored), local.of(key, changed.body, changed.size)
        if not self._collections.may_grow(key, after.size - before.size):
            return False
        reply.local_index_units.extend(write_units(before, after))
        reply.collection_size = self._collections.change(key, after.size - before.size, position)
        return True

    def _propose(
        self,
        operation_id: int,
        key: bytes,
        changed: Changed,
        reply: storage_pb2.WriteReply,
        wall_ms: int,
        position: int,
    ) -> Propose:
        stamp = self.next_stamp(wall_ms)
        flags = codec.TOMBSTONE if changed.body is None else 0
        header = codec.ItemHeader(flags=flags, origin=0, size=changed.size, stamp=stamp, position=position)
        stored = codec.encode(key, changed.body or b"", header)
        self._overlay[key] = (position, None if changed.body is None else stored)
        if operation_id:
            self._in_flight[operation_id] = (position, reply)
        payload = commands.encode_write(operation_id, key, stored, reply.old_size, reply.SerializeToString())
        return Propose(payload, reply)

    def propose_schema(self, table: Table) -> bytes:
        """The payload that makes `table` the schema; from here on requests are held to it."""
        self.schema, self._local = table, local_indexes_of(table)
        return commands.encode_schema(encode_table(table))

    def next_stamp(self, wall_ms: int) -> int:
        """A hybrid-logical-clock stamp above the clock's and above every stamp that this partition has seen."""
        self._last_stamp = max(make_stamp(wall_ms, 0), self._last_stamp + 1)
        return self._last_stamp

    def _current(self, key: bytes) -> tuple[Old, int]:
        if (pending := self._overlay.get(key)) is not None:
            return Old(pending[1]), pending[0]
        return Old(self._row(key)), 0

    def abandon(self) -> None:
        """Leadership is lost: what was proposed and is not applied may or may not come back through the log."""
        self._overlay.clear()
        self._in_flight.clear()
        self._collections.abandon()
        self.schema, self._local = self._applied_schema, self._applied_local

    # --- the log, on every replica ---

    def apply(self, entries: Sequence[Entry]) -> None:
        """Take committed entries into the store, in one transaction. Raises what the store raises; then nothing is
        taken."""
        taken = _Taken(self._store, self._applied_local)
        for entry in entries:
            taken.take(entry)
        batch = taken.finish()
        batch.forget_operation_ids_before = self._operations.first_position
        self._store.write(batch)
        self._after_apply(taken)

    def _after_apply(self, taken: _Taken) -> None:
        row = taken.batch.operation_ids
        if row is not None:
            self._operations.add_all(row.first_position, row.stamp_ms, row.ids)
        for operation_id in taken.ids:
            self._in_flight.pop(operation_id, None)
        last = taken.batch.applied.position
        if self._overlay:
            self._overlay = {key: pending for key, pending in self._overlay.items() if pending[0] > last}
        self._collections.applied_to(last)
        self._last_stamp = max(self._last_stamp, taken.batch.applied.stamp)
        if taken.schema is not None:
            self._applied_schema, self._applied_local = taken.schema, taken.local
            if self.schema is None or self.schema.schema_version < taken.schema.schema_version:
                self.schema, self._local = taken.schema, taken.local

    # --- reads, of the applied state ---

    def get(self, request: storage_pb2.Get) -> storage_pb2.ItemReply:
        """GetItem. Raises CorruptItem."""
        stored = self._row(request.key)
        if stored is None:
            return storage_pb2.ItemReply()
        body = codec.body_of(stored)
        if request.projection:
            body = dump(project(tree.decode_projection(request.projection), load(body)))
        return storage_pb2.ItemReply(item=body, size=codec.size_of(stored))

    def query_slice(self, request: storage_pb2.Query, page: Page) -> bool:
        """Evaluate some more rows into `page`; whether the page is finished. Raises CorruptItem."""
        assert self.schema is not None, "a partition without a schema serves nothing"
        return run_slice(self._store, request, page, self.schema)

    def statistics(self) -> storage_pb2.StatisticsReply:
        """Items and bytes of the applied state."""
        applied = self._store.applied()
        indexes = [storage_pb2.IndexStatistics(items=count.items, size=count.size) for count in applied.indexes]
        return storage_pb2.StatisticsReply(items=applied.items, size=applied.size, local_indexes=indexes)

    def _row(self, key: bytes) -> bytes | None:
        stored = self._store.get(key)
        if stored is not None:
            codec.verify(key, stored)
        return stored


def failure(error: ApiError, size: int) -> storage_pb2.Failure:
    """The wire form of an error that the client sees; `size` of the item that was looked at counts as capacity."""
    item = dump(error.item) if error.item else b""
    return storage_pb2.Failure(type=error.type, message=error.message, item=item, size=size)
