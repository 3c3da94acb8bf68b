"""Compact copies of LMDB environments, and environments made from such copies. lmdb itself stays in `lmdb_store.py`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from cluster.disk import Disk, File
from storagenode.storage.piped import Piped
from storagenode.storage.store import Applied, Store, StoreError

if TYPE_CHECKING:
    from storagenode.storage.lmdb_store import LmdbStore

DATA_FILE: Final = "data.mdb"
"""LMDB's name for the one file of an environment."""
RESTORED_FILE: Final = "restored.mdb"
SYNC_BYTES: Final = 1 << 20
_LOCK_SUFFIX: Final = "-lock"


class LmdbCopy:
    """A copy of an environment under way. `write` puts it to a descriptor; `translate` makes lmdb's errors ours."""

    def __init__(
        self,
        applied: Applied,
        write: Callable[[int], object],
        finished: Callable[[], object],
        translate: Callable[[Exception], Exception],
    ) -> None:
        self.applied = applied
        self._translate = translate
        self._piped = Piped("lmdb-copy", write, finished)

    def read(self, size: int) -> bytes:
        """The next `size` bytes, fewer only at the end."""
        try:
            return self._piped.read(size)
        except ValueError as error:
            raise StoreError("the store was closed while it was copied") from error
        except (OSError, StoreError):
            raise
        except Exception as error:
            raise self._translate(error) from error

    def close(self) -> None:
        """End it, and with it its read transaction."""
        self._piped.close()


class LmdbRestoration:
    """Makes the environment's file beside the one in use, and then takes its name.

    Whoever still has the old one open keeps the old file. Nothing here need survive a crash of the machine.
    """

    def __init__(
        self,
        disk: Disk,
        folder: str,
        open_store: Callable[[str, bool], LmdbStore],
        take_over: Callable[[Store, LmdbStore], None],
    ) -> None:
        self._disk = disk
        self._folder = folder
        self._path = f"{folder}/{RESTORED_FILE}"
        self._open_store = open_store
        self._take_over = take_over
        self._store: LmdbStore | None = None
        self._remove()
        self._file: File | None = disk.open(self._path, create=True)
        self._size = self._synced = 0

    def write(self, data: bytes) -> None:
        """The next bytes of the copy, synced: were they left to the kernel, the log's syncs would wait for them."""
        assert self._file is not None, "nothing is written after `open`"
        self._file.write_at(self._size, data)
        self._size += len(data)
        if self._size - self._synced >= SYNC_BYTES:
            self._file.sync()
            self._synced = self._size

    def open(self) -> LmdbStore:
        """The store, not yet in its place."""
        self._close_file()
        self._store = self._open_store(self._path, True)
        return self._store

    def open_empty(self) -> LmdbStore:
        """A store that has applied nothing yet, not yet in its place."""
        self._close_file()
        self._remove()
        self._store = self._open_store(self._path, False)
        return self._store

    def place(self, into: Store) -> None:
        """Take the place of the environment's file."""
        assert self._store is not None, "opened first"
        self._disk.rename(self._path, f"{self._folder}/{DATA_FILE}")
        self._take_over(into, self._store)
        self._store = None
        self._remove()

    def discard(self) -> None:
        """Give up."""
        self._close_file()
        if self._store is not None:
            self._store.close()
        self._remove()

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _remove(self) -> None:
        for path in (self._path, self._path + _LOCK_SUFFIX):
            with contextlib.suppress(FileNotFoundError):
                self._disk.remove(path)
