"""The store's twin in memory: the same rows in a sorted map, for tests, simulation and clusters that keep nothing."""

from __future__ import annotations

import struct
from bisect import bisect_left, insort
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from itertools import chain
from typing import Final

from storagenode.storage import layout
from storagenode.storage.row_sums import ALL, Moved, RowSum, RowWalk, is_summed, row_hash, sum_of
from storagenode.storage.store import (
    SCHEMA,
    Applied,
    OperationIdRow,
    Space,
    Store,
    StoreBroken,
    StoreError,
    WriteBatch,
)

_ROW: Final = struct.Struct("<II")


class MemoryStore:
    """A sorted map. It survives `close`, as an environment's pages survive a killed process."""

    def __init__(self) -> None:
        self._rows: dict[bytes, bytes] = {}
        self._keys: list[bytes] = []
        self._applied = Applied()
        self._sum = RowSum()
        self._open_scans = 0

    def get(self, key: bytes) -> bytes | None:
        """An item's stored bytes by its row key."""
        return self._rows.get(layout.ITEM + key)

    def collection_size(self, hash_: bytes) -> int:
        """The size of an item collection."""
        return layout.decode_collection(self._rows.get(layout.collection_key(hash_)))

    def scan(
        self, start: bytes, end: bytes, *, reverse: bool = False, index: int = 0
    ) -> Generator[tuple[bytes, bytes], None, None]:
        """Rows with start <= key < end, as they were at the first one."""
        skipped = len(layout.row_prefix(index))
        for key, value in self._range(*layout.row_range(start, end, index), reverse=reverse):
            yield key[skipped:], value

    def row(self, key: bytes) -> bytes | None:
        """What `WriteBatch.rows` set."""
        return self._rows.get(key)

    def rows(self, low: bytes, high: bytes) -> Generator[tuple[bytes, bytes], None, None]:
        """Rows of any kind with low <= whole key < high."""
        yield from self._range(low, high)

    def meta(self, name: bytes) -> bytes | None:
        """What `WriteBatch.meta` set."""
        return self._rows.get(layout.meta_key(name))

    def schema(self) -> bytes | None:
        """What `WriteBatch.set_schema` set."""
        return self.meta(SCHEMA)

    def applied(self) -> Applied:
        """How far the log is applied."""
        return self._applied

    def write(self, batch: WriteBatch) -> None:
        """Do all of `batch` or raise ValueError."""
        if batch.applied.position < self._applied.position:
            raise ValueError(f"position {batch.applied.position} is applied after {self._applied.position}")
        changes = list(layout.rows(batch))
        if any(len(key) > layout.KEY_BYTES_MAX for key, _ in changes):
            raise ValueError(f"a key is longer than {layout.KEY_BYTES_MAX} bytes or empty")
        if self._open_scans:
            # Whoever scans goes on with the old ones.
            self._rows, self._keys, self._open_scans = dict(self._rows), list(self._keys), 0
        moved: Moved = []
        for key, value in changes:
            if is_summed(key):
                moved.append((key, row_hash(key, value) - row_hash(key, self._rows.get(key))))
            self._put(key, value)
        after = self._sum.after(moved)
        self._put(layout.SUM_KEY, layout.encode_sum(batch.applied.position, after))
        self._forget(batch.forget_operation_ids_before)
        if batch.forget_changes_to:
            self._forget_changes(batch.forget_changes_to, layout.changes_to_forget(batch))
        self._applied = batch.applied
        self._sum.take(after, moved)

    def row_sum(self) -> int:
        """The sum of the rows' hashes."""
        return self._sum.value

    def begin_walk(self) -> RowWalk:
        """A walk over all rows."""
        return self._sum.begin_walk()

    def walk_slice(self, walk: RowWalk, rows_max: int) -> Callable[[], None]:
        """The next slice of a walk."""
        walk.begin()
        rows = self.rows(walk.low, ALL[1])
        first = next(rows, None)  # the view is as of now

        def look() -> None:
            with closing(rows):
                if not walk.void:
                    walk.take(rows if first is None else chain((first,), rows), rows_max)

        return look

    def operation_ids(self) -> Iterator[OperationIdRow]:
        """All operation id rows, in order of position."""
        for key, value in self._range(layout.OPERATION_IDS, layout.prefix_end(layout.OPERATION_IDS)):
            yield layout.decode_operation_ids(key, value)

    def sync(self) -> None:
        """Nothing to do."""

    def space(self) -> Space:
        """The rows' own bytes."""
        size = sum(len(key) + len(value) for key, value in self._rows.items())
        return Space(size, size)

    def copy(self) -> MemoryCopy:
        """A copy of the store as it is now."""
        return MemoryCopy([(key, self._rows[key]) for key in self._keys], self._applied)

    def load(self, data: bytes) -> None:
        """Take the rows of a copy. Raises StoreBroken."""
        offset = 0
        try:
            while offset < len(data):
                key_bytes, value_bytes = _ROW.unpack_from(data, offset)
                start = offset + _ROW.size
                offset = start + key_bytes + value_bytes
                if offset > len(data):
                    raise StoreBroken("a copy is cut short")
                self._put(data[start : start + key_bytes], data[start + key_bytes : offset])
        except struct.error as error:
            raise StoreBroken("a copy is cut short") from error
        self._applied = layout.decode_applied(self._rows.get(layout.APPLIED_KEY))
        kept = layout.decode_sum(self._rows.get(layout.SUM_KEY), self._applied.position)
        self._sum = RowSum(sum_of(self.rows(*ALL)) if kept is None else kept)

    def take_over(self, other: MemoryStore) -> None:
        """Have the other's rows; the other is not used again."""
        self._sum.void()
        self._rows, self._keys, self._applied, self._sum = other._rows, other._keys, other._applied, other._sum

    def close(self) -> None:
        """The rows stay."""
        self._sum.void()

    def _range(self, low: bytes, high: bytes, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        rows, keys = self._rows, self._keys
        first, last = bisect_left(keys, low), bisect_left(keys, high)
        self._open_scans += 1
        try:
            for at in range(last - 1, first - 1, -1) if reverse else range(first, last):
                yield keys[at], rows[keys[at]]
        finally:
            if keys is self._keys:
                self._open_scans -= 1

    def _put(self, key: bytes, value: bytes | None) -> None:
        if value is not None:
            if key not in self._rows:
                insort(self._keys, key)
            self._rows[key] = bytes(value)
        elif self._rows.pop(key, None) is not None:
            del self._keys[bisect_left(self._keys, key)]

    def _forget_changes(self, position: int, rows_max: int) -> None:
        first = bisect_left(self._keys, layout.CHANGE)
        last = bisect_left(self._keys, layout.change_key(position + 1))
        for key in self._keys[first : min(last, first + rows_max)]:
            self._put(key, None)

    def _forget(self, position: int) -> None:
        first = bisect_left(self._keys, layout.OPERATION_IDS)
        oldest = self._keys[first : first + layout.FORGOTTEN_ROWS_MAX]
        for key in oldest:
            if not key.startswith(layout.OPERATION_IDS) or layout.last_position_of(key, self._rows[key]) >= position:
                return
            self._put(key, None)


class MemoryCopy:
    """All rows as lengths, key and value, one after another."""

    def __init__(self, rows: list[tuple[bytes, bytes]], applied: Applied) -> None:
        self.applied = applied
        self._data = b"".join(_ROW.pack(len(key), len(value)) + key + value for key, value in rows)
        self._offset = 0
        self._closed = False

    def read(self, size: int) -> bytes:
        """The next `size` bytes, fewer only at the end."""
        if self._closed:
            raise StoreError("the copy is closed")
        self._offset += size
        return self._data[self._offset - size : self._offset]

    def close(self) -> None:
        """End it."""
        self._closed = True


class MemoryRestoration:
    """A store made from a `MemoryCopy`."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._store = MemoryStore()

    def write(self, data: bytes) -> None:
        """The next bytes of the copy."""
        self._data += data

    def open(self) -> MemoryStore:
        """The store, not yet in its place."""
        self._store.load(bytes(self._data))
        return self._store

    def open_empty(self) -> MemoryStore:
        """A store that has applied nothing yet."""
        return self._store

    def place(self, into: Store) -> None:
        """Put it in its place."""
        assert isinstance(into, MemoryStore)
        into.take_over(self._store)

    def discard(self) -> None:
        """Nothing to do."""


class MemoryStores:
    """The stores of a simulated node."""

    def __init__(self) -> None:
        self._stores: dict[tuple[int, int], MemoryStore] = {}

    def open(self, partition: int, replica: int) -> MemoryStore:
        """The store of a replica, empty if there was none."""
        return self._stores.setdefault((partition, replica), MemoryStore())

    def existing(self) -> list[tuple[int, int]]:
        """(partition, replica) of every store that is there."""
        return sorted(self._stores)

    def restore(self, partition: int, replica: int) -> MemoryRestoration:  # noqa: ARG002
        """Begin to make a store from a copy."""
        return MemoryRestoration()

    def retire(self, partition: int, replica: int) -> None:
        """Put a store away that was dropped by order."""
        self._stores.pop((partition, replica), None)

    def discard(self, partition: int, replica: int) -> None:
        """Throw a store away."""
        self._stores.pop((partition, replica), None)
