"""The seam between services and file systems: just the operations that durability is built from.

A write is durable only after `File.sync`; a created, renamed or removed name only after `sync_directory` of its folder.
The simulator's disk forgets on a crash exactly what was not synced. All calls block: the shell runs them in threads
where they may take long.
"""

from __future__ import annotations

from typing import Protocol


class File(Protocol):
    """An open file."""

    def write_at(self, offset: int, data: bytes) -> None:
        """Write all of `data`. Raises OSError (ENOSPC, EIO)."""
        ...

    def read_at(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes; fewer only at the end of the file."""
        ...

    def sync(self) -> None:
        """fdatasync: what was written is durable when this returns. Raises OSError: it is not trusted any more."""
        ...

    def size(self) -> int:
        """Length in bytes."""
        ...

    def truncate(self, length: int) -> None:
        """Set the length."""
        ...

    def allocate(self, length: int) -> None:
        """Reserve space up to `length`, zero-filled. Raises OSError (ENOSPC)."""
        ...

    def close(self) -> None:
        """Close without syncing."""
        ...


class Disk(Protocol):
    """A file system."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing. Raises FileNotFoundError unless `create`."""
        ...

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder of this name."""
        ...

    def list(self, path: str) -> list[str]:
        """Names in a folder, sorted."""
        ...

    def make_directory(self, path: str) -> None:
        """Create a folder and its parents; no error if it is there."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Move a file or folder, replacing a file of the target name."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file."""
        ...

    def remove_tree(self, path: str) -> None:
        """Remove a folder with all in it."""
        ...

    def sync_directory(self, path: str) -> None:
        """Make the folder's names durable."""
        ...

    def free(self, path: str) -> int:
        """Bytes free on the file system of `path`."""
        ...

    def boot_id(self) -> str:
        """Differs after every start of the machine."""
        ...
