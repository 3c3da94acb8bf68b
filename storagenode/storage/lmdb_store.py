"""A partition replica's store in an LMDB environment of its own. The only module that imports lmdb.

Commits are not synced: after a killed process the environment is whole, and the log is replayed from its applied
position; after a crash of the machine it is thrown away (`marks.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial as bound
from itertools import chain
from typing import Final, TypeAlias, cast

import lmdb

from cluster.disk import Disk
from storagenode.storage import layout
from storagenode.storage.lmdb_copy import LmdbCopy, LmdbRestoration
from storagenode.storage.row_sums import ALL, Moved, RowSum, RowWalk, is_summed, row_hash, sum_of
from storagenode.storage.store import SCHEMA, Applied, OperationIdRow, Space, Store, StoreBroken, StoreFull, WriteBatch

MAP_BYTES: Final = 32 << 30
"""Address space, not memory or disk. Fixed, since it cannot change while transactions are open."""
META_PAGES: Final = 2
COPIES_MAX: Final = 4
"""Copies of one store remembered, so that they end before it does; more are never under way."""
TRASH_SECONDS: Final = 24 * 3600
"""How long the store of a dropped replica is kept."""


_Rows: TypeAlias = Iterator[tuple[bytes, bytes]]
"""What a cursor gives without `buffers`; lmdb's types do not tell."""


class LmdbStore:
    """One environment. Reads may come from any thread, writes from one at a time."""

    def __init__(
        self,
        path: str,
        partition: int,
        replica: int,
        *,
        map_bytes: int = MAP_BYTES,
        copied: bool = False,
        is_file: bool = False,
    ) -> None:
        """Open, or create in an existing folder. Raises StoreBroken if it is damaged or another replica's.

        `copied`: `path` is a file, the copy of some replica's store of the same partition; it becomes this replica's.
        `is_file`: `path` is a file, not a folder.
        """
        with _lmdb_errors():
            self._environment = lmdb.open(
                path,
                map_size=map_bytes,
                subdir=not (copied or is_file),
                sync=False,
                metasync=False,
                create=not copied,
                max_spare_txns=2,
                lib_version=1,
            )
        self._copies: list[LmdbCopy] = []
        self._syncing = threading.Lock()
        self._walking = threading.Lock()
        try:
            with _lmdb_errors():
                if copied:
                    self._require_copy_of(partition)
                self._claim(layout.format_row(partition, replica), anew=copied)
                with self._environment.begin() as reading:
                    self._applied = layout.decode_applied(reading.get(layout.APPLIED_KEY))
                    kept = layout.decode_sum(reading.get(layout.SUM_KEY), self._applied.position)
            self._sum = RowSum(sum_of(self.rows(*ALL)) if kept is None else kept)
        except BaseException:
            self._environment.close()
            raise

    def get(self, key: bytes) -> bytes | None:
        """An item's stored bytes by its row key."""
        return self._get(layout.ITEM + key)

    def collection_size(self, hash_: bytes) -> int:
        """The size of an item collection."""
        return layout.decode_collection(self._get(layout.collection_key(hash_)))

    def scan(
        self, start: bytes, end: bytes, *, reverse: bool = False, index: int = 0
    ) -> Generator[tuple[bytes, bytes], None, None]:
        """Rows with start <= key < end, within one read transaction that ends with the iterator."""
        low, high = layout.row_range(start, end, index)
        skipped = len(layout.row_prefix(index))
        with _lmdb_errors(), self._environment.begin() as reading, reading.cursor() as cursor:
            if reverse:
                yield from _downwards(cursor, low, high, skipped)
            else:
                yield from _upwards(cursor, low, high, skipped)

    def row(self, key: bytes) -> bytes | None:
        """What `WriteBatch.rows` set."""
        return self._get(key)

    def rows(self, low: bytes, high: bytes) -> Generator[tuple[bytes, bytes], None, None]:
        """Rows of any kind with low <= whole key < high."""
        with _lmdb_errors(), self._environment.begin() as reading, reading.cursor() as cursor:
            yield from _upwards(cursor, low, high, 0)

    def meta(self, name: bytes) -> bytes | None:
        """What `WriteBatch.meta` set."""
        return self._get(layout.meta_key(name))

    def schema(self) -> bytes | None:
        """What `WriteBatch.set_schema` set."""
        return self.meta(SCHEMA)

    def applied(self) -> Applied:
        """How far the log is applied."""
        return self._applied

    def write(self, batch: WriteBatch) -> None:
        """One transaction. Raises StoreFull, StoreBroken, ValueError; then nothing of it was kept."""
        if batch.applied.position < self._applied.position:
            raise ValueError(f"position {batch.applied.position} is applied after {self._applied.position}")
        moved: Moved = []
        with _lmdb_errors(), self._environment.begin(write=True) as writing:
            put, delete = writing.put, writing.delete
            for key, value in layout.rows(batch):
                if is_summed(key):
                    before = writing.pop(key) if value is None else writing.replace(key, value)
                    moved.append((key, row_hash(key, value) - row_hash(key, before)))
                elif value is None:
                    delete(key)
                else:
                    put(key, value)
            after = self._sum.after(moved)
            put(layout.SUM_KEY, layout.encode_sum(batch.applied.position, after))
            if batch.forget_operation_ids_before:
                _forget(writing, batch.forget_operation_ids_before)
            if batch.forget_changes_to:
                _forget_changes(writing, batch.forget_changes_to, layout.changes_to_forget(batch))
        self._applied = batch.applied
        self._sum.take(after, moved)

    def row_sum(self) -> int:
        """The sum of the rows' hashes, from memory."""
        return self._sum.value

    def begin_walk(self) -> RowWalk:
        """A walk over all rows."""
        return self._sum.begin_walk()

    def walk_slice(self, walk: RowWalk, rows_max: int) -> Callable[[], None]:
        """The next slice of a walk."""
        walk.begin()
        rows = self.rows(walk.low, ALL[1])
        first = next(rows, None)  # the view is as of now
        return bound(self._walk_slice, walk, rows, first, rows_max)

    def _walk_slice(
        self,
        walk: RowWalk,
        rows: Generator[tuple[bytes, bytes], None, None],
        first: tuple[bytes, bytes] | None,
        rows_max: int,
    ) -> None:
        with self._walking:
            if walk.void:
                return
            with closing(rows):
                walk.take(rows if first is None else chain((first,), rows), rows_max)

    def operation_ids(self) -> Iterator[OperationIdRow]:
        """All operation id rows, in order of position."""
        low, high = layout.OPERATION_IDS, layout.prefix_end(layout.OPERATION_IDS)
        with _lmdb_errors(), self._environment.begin() as reading, reading.cursor() as cursor:
            if cursor.set_range(low):
                for key, value in cast(_Rows, cursor):
                    if key >= high:
                        return
                    yield layout.decode_operation_ids(key, value)

    def sync(self) -> None:
        """Make everything durable."""
        with _lmdb_errors(), self._syncing:
            self._environment.sync(True)

    def space(self) -> Space:
        """The file up to its last page, and the pages of its tree."""
        with _lmdb_errors():
            stat, info = self._environment.stat(), self._environment.info()
        pages = stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]
        return Space((info["last_pgno"] + 1) * stat["psize"], (pages + META_PAGES) * stat["psize"])

    def copy(self) -> LmdbCopy:
        """A copy under a read transaction that ends with it: until then the file may grow."""
        with _lmdb_errors():
            reading = self._environment.begin()
        try:
            applied = layout.decode_applied(reading.get(layout.APPLIED_KEY))
        except BaseException:
            reading.abort()
            raise
        write = bound(self._environment.copyfd, compact=True, txn=reading)
        copy = LmdbCopy(applied, write, reading.abort, _translated)
        self._copies = [*self._copies[-COPIES_MAX:], copy]
        return copy

    def take_over(self, other: LmdbStore) -> None:
        """Have the other's environment, which is not used by the other again."""
        self.close()
        self._environment, self._applied, self._copies = other._environment, other._applied, []
        self._sum = other._sum

    def close(self) -> None:
        """Close without syncing. Copies end; a sync or a slice of a walk under way is waited for."""
        for copy in self._copies:
            copy.close()
        self._sum.void()
        with self._syncing, self._walking:
            self._environment.close()

    def _get(self, key: bytes) -> bytes | None:
        try:
            with self._environment.begin() as reading:
                value: bytes | None = reading.get(key)
                return value
        except lmdb.Error as error:
            raise _translated(error) from error

    def _require_copy_of(self, partition: int) -> None:
        with self._environment.begin() as reading:
            found = reading.get(layout.FORMAT_KEY)
        if not layout.is_copy_of(found, partition):
            raise StoreBroken(f"{self._environment.path()} is no copy of partition {partition} in today's format")

    def _claim(self, row: bytes, *, anew: bool) -> None:
        """Write whose store this is, or check it."""
        with self._environment.begin() as reading:
            found = reading.get(layout.FORMAT_KEY)
        if found is None or anew:
            with self._environment.begin(write=True) as writing:
                writing.put(layout.FORMAT_KEY, row)
        elif found != row:
            raise StoreBroken(f"{self._environment.path()} is of another replica or another format")


class LmdbStores:
    """The environments of a node, one folder each under `directory`."""

    def __init__(self, disk: Disk, directory: str, trash: str, wall: Callable[[], float]) -> None:
        """`disk` must be the machine's own (`cluster.local_disk`): LMDB goes there directly. `wall`: the calendar's
        time."""
        self._disk = disk
        self._directory = directory
        self._trash = trash
        self._wall = wall

    def open(self, partition: int, replica: int) -> LmdbStore:
        """The store of a replica, empty if there was none."""
        path = self._path(partition, replica)
        if not self._disk.exists(path):
            # Not before: the folder that holds all is made at the first replica, when it is known whose folder it is.
            self._disk.make_directory(path)
            self._disk.sync_directory(self._directory)
        store = LmdbStore(path, partition, replica)
        self._disk.sync_directory(path)
        return store

    def existing(self) -> list[tuple[int, int]]:
        """(partition, replica) of every store that is there."""
        found: list[tuple[int, int]] = []
        if not self._disk.exists(self._directory):
            return found
        for name in self._disk.list(self._directory):
            partition, _, replica = name.partition("-")
            found.append((int(partition, 16), int(replica, 16)))
        return found

    def restore(self, partition: int, replica: int) -> LmdbRestoration:
        """Begin to make a store from a copy."""
        path = self._path(partition, replica)
        if not self._disk.exists(path):
            self._disk.make_directory(path)
        return LmdbRestoration(
            self._disk, path, lambda file, copied: _open_file(file, partition, replica, copied=copied), _take_over
        )

    def retire(self, partition: int, replica: int) -> None:
        """Move a closed store to the trash, named after the time so that `empty_trash` knows its age."""
        path = self._path(partition, replica)
        if self._disk.exists(path):
            self._disk.make_directory(self._trash)
            self._disk.rename(path, f"{self._trash}/{path.rpartition('/')[2]}.{int(self._wall())}")
            self._disk.sync_directory(self._trash)
            self._disk.sync_directory(self._directory)

    def empty_trash(self) -> None:
        """Remove what has been in the trash for longer than `TRASH_SECONDS`."""
        if not self._disk.exists(self._trash):
            return
        for name in self._disk.list(self._trash):
            since = name.rpartition(".")[2]
            if since.isdigit() and self._wall() - int(since) > TRASH_SECONDS:
                self._disk.remove_tree(f"{self._trash}/{name}")

    def discard(self, partition: int, replica: int) -> None:
        """Throw a closed store away."""
        path = self._path(partition, replica)
        if self._disk.exists(path):
            self._disk.remove_tree(path)
            self._disk.sync_directory(self._directory)

    def _path(self, partition: int, replica: int) -> str:
        return f"{self._directory}/{partition:016x}-{replica:016x}"


def _open_file(path: str, partition: int, replica: int, *, copied: bool) -> LmdbStore:
    return LmdbStore(path, partition, replica, copied=copied, is_file=True)


def _take_over(store: Store, other: LmdbStore) -> None:
    assert isinstance(store, LmdbStore)
    store.take_over(other)


def _upwards(cursor: lmdb.Cursor, low: bytes, high: bytes, skipped: int) -> Iterator[tuple[bytes, bytes]]:
    if not cursor.set_range(low):
        return
    for key, value in cast(_Rows, cursor):
        if key >= high:
            return
        yield key[skipped:], value


def _downwards(cursor: lmdb.Cursor, low: bytes, high: bytes, skipped: int) -> Iterator[tuple[bytes, bytes]]:
    found = cursor.prev() if cursor.set_range(high) else cursor.last()
    if not found:
        return
    for key, value in cast(_Rows, cursor.iterprev()):
        if key < low:
            return
        yield key[skipped:], value


def _forget(writing: lmdb.Transaction, position: int) -> None:
    """Delete the oldest operation id rows that end before `position`, a few of them."""
    with writing.cursor() as cursor:
        found = cursor.set_range(layout.OPERATION_IDS)
        for _ in range(layout.FORGOTTEN_ROWS_MAX):
            key, value = cast(tuple[bytes, bytes], cursor.item())
            if not found or not key.startswith(layout.OPERATION_IDS):
                return
            if layout.last_position_of(key, value) >= position:
                return
            cursor.delete()
            found = bool(cursor.key())


def _forget_changes(writing: lmdb.Transaction, position: int, rows_max: int) -> None:
    """Delete the oldest change rows up to `position`, `rows_max` at the most."""
    end = layout.change_key(position + 1)
    with writing.cursor() as cursor:
        found = cursor.set_range(layout.CHANGE)
        for _ in range(rows_max):
            if not found or cast(bytes, cursor.key()) >= end:
                return
            cursor.delete()
            found = bool(cursor.key())


@contextmanager
def _lmdb_errors() -> Iterator[None]:
    try:
        yield
    except lmdb.Error as error:
        raise _translated(error) from error


def _translated(error: Exception) -> Exception:
    """Whether an LMDB error is for lack of room. A full file system comes as a short write that says no more."""
    if isinstance(error, (lmdb.MapFullError, lmdb.DiskError)) or "SHORT_WRITE" in str(error):
        return StoreFull(str(error))
    if isinstance(error, lmdb.BadValsizeError):
        return ValueError(f"a key is longer than {layout.KEY_BYTES_MAX} bytes or empty")
    return StoreBroken(str(error))
