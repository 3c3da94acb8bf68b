"""A partition of a global index: it takes the rows that leaders of the table's partitions send, each change once.

Every row stands for one item of one source partition, so sources never meet in a row. A source sends the changes that
concern a partition in the order of its own positions, the next ones only when it knows that all before them were taken
(`index_feed`). So whatever is at or below the last position that was taken from a source has been taken before.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Final

from cluster.wire import storage_pb2
from dynamo import codec
from storagenode.decisions import Answer, Propose
from storagenode.index_commands import IndexWriteCommand, TakenRow, encode_index_write
from storagenode.storage.store import Store, WriteBatch
from storagenode.writes import Old

_POSITION = struct.Struct("<Q")
_TAKEN: Final = b"taken "
DONE: Final = storage_pb2.WriteReply()


class IndexRows:
    """What was taken from each source, in the applied state and in flight."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._taken: dict[int, int] = {}
        self._in_flight: dict[int, tuple[int, int]] = {}  # source → its position, and that of the entry in the log

    def taken(self, source: int) -> int:
        """The applied position of a source."""
        position = self._taken.get(source)
        if position is None:
            position = self._taken[source] = load_taken(self._store, source)
        return position

    def decide(
        self,
        write: storage_pb2.IndexWrite,
        current: Callable[[bytes], tuple[Old, int]],
        overlay: dict[bytes, tuple[int, bytes | None]],
        position: int,
    ) -> Propose | Answer:
        """What becomes of a source's rows. `current` gives a row as it is with all that is in flight; `overlay` keeps
        what it will be by the entry at `position`."""
        seen, after = self._in_flight.get(write.source, (self.taken(write.source), 0))
        if write.position <= seen:
            return Answer(DONE, after)
        rows = []
        for row in write.rows:
            if row.position > seen:
                old, _ = current(row.key)
                rows.append(TakenRow(row.key, row.stored, old.size))
                overlay[row.key] = (position, row.stored or None)
        self._in_flight[write.source] = (write.position, position)
        return Propose(encode_index_write(write.source, write.position, rows), DONE)

    def applied_to(self, taken: Mapping[int, int], position: int) -> None:
        """Entries up to `position` are applied; `taken` is what those that held rows say of their sources."""
        self._taken.update(taken)
        for source, (_, at) in list(self._in_flight.items()):
            if at <= position:
                del self._in_flight[source]

    def abandon(self) -> None:
        """Leadership is lost."""
        self._in_flight.clear()


def load_taken(store: Store, source: int) -> int:
    """The last position that the applied state has taken from a source; 0: nothing."""
    value = store.meta(_TAKEN + b"%d" % source)
    return 0 if value is None else int(_POSITION.unpack(value)[0])


def take_rows(command: IndexWriteCommand, batch: WriteBatch) -> tuple[int, int, int]:
    """Add an entry's rows to `batch`. By how much the numbers of rows and of bytes change, and the highest stamp."""
    items = size = stamp = 0
    for row in command.rows:
        batch.items[row.key] = row.stored or None
        items += bool(row.stored) - (row.old_size > 0)
        size -= row.old_size
        if row.stored:
            header = codec.header_of(row.stored)
            size += header.size
            stamp = max(stamp, header.stamp)
    batch.meta[_TAKEN + b"%d" % command.source] = _POSITION.pack(command.position)
    return items, size, stamp
