"""The machine's own file system behind the seam of `cluster.disk`."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class LocalFile:
    """An open file descriptor. Reads and writes carry their own offset, so threads may share it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write_at(self, offset: int, data: bytes) -> None:
        """Write all of `data`, however many calls the kernel needs for it."""
        view = memoryview(data)
        while view:
            written = os.pwrite(self._descriptor, view, offset)
            if written == 0:
                raise OSError(errno.EIO, "write made no progress")
            offset += written
            view = view[written:]

    def read_at(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes; fewer only at the end of the file."""
        data = os.pread(self._descriptor, length, offset)
        if len(data) == length or not data:
            return data
        parts = [data]
        got = len(data)
        while got < length and (data := os.pread(self._descriptor, length - got, offset + got)):
            parts.append(data)
            got += len(data)
        return b"".join(parts)

    def sync(self) -> None:
        """fdatasync."""
        os.fdatasync(self._descriptor)

    def size(self) -> int:
        """Length in bytes."""
        return os.fstat(self._descriptor).st_size

    def truncate(self, length: int) -> None:
        """Set the length."""
        os.ftruncate(self._descriptor, length)

    def allocate(self, length: int) -> None:
        """posix_fallocate from the start: never shrinks, keeps what is there."""
        os.posix_fallocate(self._descriptor, 0, length)

    def close(self) -> None:
        """Close without syncing; a second call does nothing."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


class LocalDisk:
    """The file system as this process sees it."""

    def open(self, path: str, *, create: bool = False) -> LocalFile:
        """Open for reading and writing. Raises FileNotFoundError unless `create`."""
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return LocalFile(os.open(path, flags, 0o600))

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder of this name."""
        return os.path.exists(path)

    def list(self, path: str) -> list[str]:
        """Names in a folder, sorted."""
        return sorted(os.listdir(path))

    def make_directory(self, path: str) -> None:
        """Create a folder and its parents; no error if it is there."""
        os.makedirs(path, mode=0o700, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        """Move a file or folder, replacing a file of the target name."""
        os.replace(source, target)

    def remove(self, path: str) -> None:
        """Remove a file."""
        os.unlink(path)

    def remove_tree(self, path: str) -> None:
        """Remove a folder with all in it."""
        shutil.rmtree(path)

    def sync_directory(self, path: str) -> None:
        """fsync of the folder."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def free(self, path: str) -> int:
        """Bytes that an ordinary user may still fill."""
        status = os.statvfs(path)
        return status.f_bavail * status.f_frsize

    def boot_id(self) -> str:
        """The kernel's random id of this boot."""
        return _BOOT_ID.read_text().strip()
