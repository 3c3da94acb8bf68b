"""What the leader of a table's partition sends to one global index of the table, and how far it has come.

The rules that make a change of leaders lose and double nothing:

* Change rows are read in order of position. What concerns one partition of the index is sent to it in that order, and a
  request leaves only when it is known that the one before was taken. So a partition that has taken position p has taken
  everything up to p that concerns it, whoever sent it, and it ignores what is not above.
* Rows of one position are never divided between two requests to a partition.
* Of several changes of one index row only the last is sent, under the position of the last.
* `cursor` is a position up to which everything was taken, or is overruled by a change above it. The partition's log
  learns of it now and then; the next leader begins there and sends some of it again.
* A touch sends what the item is now, which may be newer than the touch. The changes in between follow, and end with the
  same row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from dynamo import codec
from dynamo.change import Change
from dynamo.codec import stamp_milliseconds
from dynamo.indexes import IndexEntry, IndexProjection
from dynamo.keys import HASH_SIZE
from dynamo.table import Index, Table
from dynamo.values import Item, load

REQUEST_ROWS_MAX = 200
REQUEST_BYTES_MAX = 256 << 10
"""Of one request; a single row, or the rows of a single position, may be more."""
WAITING_ROWS_MAX = 4_000
WAITING_BYTES_MAX = 4 << 20
"""No more change rows are read while so much waits to be sent."""

_ROW_OVERHEAD = 32


class Image(NamedTuple):
    """An item as it was at a change."""

    item: Item
    body: bytes
    size: int


class Images(NamedTuple):
    """A change, decoded once for all indexes. `stamp` and `flags` are those of the write."""

    key: bytes
    before: Image | None
    after: Image | None
    stamp: int
    flags: int


def image_of(key: bytes, stored: bytes) -> Image:
    """The item in its stored bytes. Raises CorruptItem."""
    codec.verify(key, stored)
    body = codec.body_of(stored)
    return Image(load(body), body, codec.size_of(stored))


def images_of(change: Change) -> Images:
    """The items before and after a change. Raises CorruptItem."""
    header = codec.header_of(change.after)
    gone = bool(header.flags & codec.TOMBSTONE)
    before = image_of(change.key, change.before) if change.before else None
    after = None if gone else image_of(change.key, change.after)
    return Images(change.key, before, after, header.stamp, header.flags & ~codec.TOMBSTONE)


class FedRow(NamedTuple):
    """A row of the index as it is to be; `stored` is empty when it goes. `since_ms`: when the change was made, 0 for a
    touch."""

    key: bytes
    stored: bytes
    position: int
    since_ms: int


@dataclass(frozen=True, slots=True)
class FedBatch:
    """What goes to one partition of the index in one request."""

    destination: int
    rows: tuple[FedRow, ...]

    @property
    def position(self) -> int:
        """The last position in it."""
        return self.rows[-1].position


@dataclass(slots=True)
class _Destination:
    """One partition of the index: rows that wait, in order of position, and the request that is under way."""

    waiting: dict[bytes, FedRow] = field(default_factory=dict)
    sent: FedBatch | None = None

    def oldest(self) -> FedRow | None:
        """The row with the lowest position that is not known to be taken."""
        if self.sent is not None:
            return self.sent.rows[0]
        return next(iter(self.waiting.values()), None)


class IndexFeed:
    """Feeds one index from one partition of the table. `cursor` is where the reader stands in the applied state."""

    def __init__(self, table: Table, index: Index, cursor: int) -> None:
        self.index = index
        self.read_to = cursor
        """Change rows up to here were taken in."""
        self.last_change = 0
        """The position of the last change row that there was."""
        self._projection = IndexProjection(table, index)
        self._destinations: dict[int, _Destination] = {}
        self.waiting_rows = 0
        self.taken_rows = 0
        """Rows that were taken, all in all."""
        self._waiting_bytes = 0

    @property
    def cursor(self) -> int:
        """Up to here all is done: the next leader may begin there."""
        oldest = [row.position for each in self._destinations.values() if (row := each.oldest()) is not None]
        return min(oldest) - 1 if oldest else self.read_to

    @property
    def is_full(self) -> bool:
        """Whether so much waits that nothing more is to be read."""
        return self.waiting_rows >= WAITING_ROWS_MAX or self._waiting_bytes >= WAITING_BYTES_MAX

    @property
    def waiting_since_ms(self) -> int:
        """When the oldest write was made that the index does not show, milliseconds since the epoch; 0: there is
        none."""
        rows = [row for each in self._destinations.values() if (row := each.oldest()) is not None]
        return min((row.since_ms for row in rows if row.since_ms), default=0)

    # --- in ---

    def change(self, images: Images, position: int, route: Callable[[bytes], int]) -> None:
        """Take in a change. `route` gives the partition of the index that holds a hash."""
        old, new = self._entry(images.key, images.before), self._entry(images.key, images.after)
        if old == new:
            return
        since_ms = stamp_milliseconds(images.stamp)
        if old is not None and (new is None or new.key != old.key):
            self._add(FedRow(old.key, b"", position, since_ms), route)
        if new is not None:
            self._put(new, images.stamp, images.flags, position, since_ms, route)

    def touch(self, key: bytes, stored: bytes, position: int, route: Callable[[bytes], int]) -> None:
        """Take in an item as it is, because it was touched at `position`. Raises CorruptItem."""
        entry = self._entry(key, image_of(key, stored))
        if entry is not None:
            header = codec.header_of(stored)
            self._put(entry, header.stamp, header.flags, position, 0, route)

    def _entry(self, key: bytes, image: Image | None) -> IndexEntry | None:
        return None if image is None else self._projection.entry(key, *image)

    def _put(
        self, entry: IndexEntry, stamp: int, flags: int, position: int, since_ms: int, route: Callable[[bytes], int]
    ) -> None:
        header = codec.ItemHeader(flags, 0, entry.size, stamp, position)
        self._add(FedRow(entry.key, codec.encode(entry.key, entry.body, header), position, since_ms), route)

    def _add(self, row: FedRow, route: Callable[[bytes], int]) -> None:
        destination = self._destinations.setdefault(route(row.key[:HASH_SIZE]), _Destination())
        older = destination.waiting.pop(row.key, None)  # so that the order stays that of positions
        destination.waiting[row.key] = row
        self._count(row, 1)
        if older is not None:
            self._count(older, -1)

    def _count(self, row: FedRow, sign: int) -> None:
        self.waiting_rows += sign
        self._waiting_bytes += sign * _bytes_of(row)

    # --- out ---

    def batches(self) -> list[FedBatch]:
        """The next request for every partition that has none under way; they are under way from here on."""
        ready = [(id_, each) for id_, each in self._destinations.items() if each.waiting and each.sent is None]
        return [self._next(id_, each) for id_, each in ready]

    def _next(self, id_: int, destination: _Destination) -> FedBatch:
        rows: list[FedRow] = []
        size = 0
        for row in destination.waiting.values():
            full = len(rows) >= REQUEST_ROWS_MAX or size + _bytes_of(row) > REQUEST_BYTES_MAX
            if rows and full and row.position != rows[-1].position:
                break
            rows.append(row)
            size += _bytes_of(row)
        for row in rows:
            del destination.waiting[row.key]
        destination.sent = FedBatch(id_, tuple(rows))
        return destination.sent

    def taken(self, batch: FedBatch) -> None:
        """The partition has taken this batch for good."""
        destination = self._destinations[batch.destination]
        assert destination.sent is batch
        destination.sent = None
        self.taken_rows += len(batch.rows)
        for row in batch.rows:
            self._count(row, -1)
        if not destination.waiting:
            del self._destinations[batch.destination]

    def failed(self, batch: FedBatch) -> None:
        """It is not known whether the partition took this batch: it goes again, with what waits."""
        destination = self._destinations[batch.destination]
        assert destination.sent is batch
        destination.sent = None
        again = {row.key: row for row in batch.rows if row.key not in destination.waiting}
        for row in batch.rows:
            if row.key not in again:
                self._count(row, -1)
        destination.waiting = again | destination.waiting


def _bytes_of(row: FedRow) -> int:
    return len(row.key) + len(row.stored) + _ROW_OVERHEAD
