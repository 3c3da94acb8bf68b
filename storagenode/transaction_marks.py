"""Marks: exclusive locks of transactions on items, present or missing, from prepare to commit or cancel.

A mark says what a commit makes of the item. Marks are part of the replicated state: every replica has the same ones, in
its store and, since there are few, in memory. The leader also sees those that entries in flight set and take away.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TypeAlias

from storagenode.storage import layout
from storagenode.storage.store import Store, StoreBroken, WriteBatch
from storagenode.transaction_commands import FinishCommand, OnCommit, PrepareCommand

_ROW = struct.Struct("<16s16sQBII")


@dataclass(frozen=True, slots=True)
class Mark:
    """One attempt at a transaction holds an item.

    `transaction` is the key of the row in the ledger, `stamp` the partition's clock at the prepare; the rest as in
    `transaction_commands.MarkedItem`.
    """

    transaction: bytes
    attempt: bytes
    stamp: int
    on_commit: OnCommit
    old_size: int
    size: int
    body: bytes


Changes: TypeAlias = dict[bytes, Mark | None]
"""Row key → the mark that it gets, or None where it goes."""


def encode_mark(mark: Mark) -> bytes:
    """The value of a mark's row in the store."""
    head = _ROW.pack(mark.transaction, mark.attempt, mark.stamp, mark.on_commit, mark.old_size, mark.size)
    return layout.checked(head + mark.body)


def decode_mark(value: bytes) -> Mark:
    """The inverse. Raises StoreBroken if it is damaged."""
    data = layout.unchecked(value)
    try:
        transaction, attempt, stamp, on_commit, old_size, size = _ROW.unpack_from(data)
        return Mark(transaction, attempt, stamp, OnCommit(on_commit), old_size, size, data[_ROW.size :])
    except (struct.error, ValueError) as error:
        raise StoreBroken("a mark has another form") from error


class Marks:
    """All marks of a partition: those applied, and over them, on the leader, what is in flight."""

    def __init__(self, store: Store) -> None:
        """Load the applied ones. Raises StoreBroken."""
        self.applied: dict[bytes, Mark] = {}
        self._in_flight: dict[bytes, tuple[int, Mark | None]] = {}
        low, high = layout.PENDING, layout.prefix_end(layout.PENDING)
        with closing(store.rows(low, high)) as found:
            for key, value in found:
                self.applied[key[len(layout.PENDING) :]] = decode_mark(value)

    def __bool__(self) -> bool:
        """Whether there may be any, in flight or applied."""
        return bool(self.applied or self._in_flight)

    def current(self, key: bytes) -> tuple[Mark | None, int]:
        """The mark on the item after all that is in flight, and the position that this rests on (0: it is applied)."""
        pending = self._in_flight.get(key)
        if pending is not None:
            return pending[1], pending[0]
        return self.applied.get(key), 0

    def change(self, key: bytes, mark: Mark | None, position: int) -> None:
        """The entry proposed at `position` sets this mark, or takes away the one that is there."""
        self._in_flight[key] = (position, mark)

    def take(self, changes: Changes, position: int) -> None:
        """These changes, and everything up to `position`, are applied."""
        for key, mark in changes.items():
            if mark is None:
                self.applied.pop(key, None)
            else:
                self.applied[key] = mark
        if self._in_flight:
            self._in_flight = {key: pending for key, pending in self._in_flight.items() if pending[0] > position}

    def abandon(self) -> None:
        """Nothing is in flight any more."""
        self._in_flight.clear()


class MarksTaken:
    """What entries that are being applied do to marks, over those applied before."""

    def __init__(self, marks: Marks, batch: WriteBatch) -> None:
        self.changes: Changes = {}
        self._before = marks.applied
        self._rows = batch.rows

    def prepare(self, command: PrepareCommand) -> None:
        """Set the marks of a PREPARE."""
        for key, on_commit, old_size, size, body in command.items:
            mark = Mark(command.transaction, command.attempt, command.stamp, on_commit, old_size, size, body)
            self.changes[key] = mark
            self._rows[layout.pending_key(key)] = encode_mark(mark)

    def finish(self, command: FinishCommand) -> Iterator[tuple[bytes, Mark]]:
        """Take the marks of a COMMIT or CANCEL away; each with its item's row key."""
        for key in command.keys:
            mark = self.changes[key] if key in self.changes else self._before.get(key)
            assert mark is not None, "an entry ends a mark that is not there"
            assert mark.attempt == command.attempt, "an entry ends another attempt's mark"
            self.changes[key] = None
            self._rows[layout.pending_key(key)] = None
            yield key, mark
