"""A file system in memory that forgets, when the machine crashes, what was not synced.

It keeps each file twice, as processes see it and as the platter holds it, with the writes in between. Names are
journalled in order, as ext4 does: syncing a folder makes durable all changes of names up to the last one in it.
"""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, TypeAlias

SECTOR: Final = 512
"""What a power cut writes in whole or not at all."""

Fault: TypeAlias = Callable[[str, str], OSError | None]
"""Asked before each operation ("write", "read", "sync", "allocate") on a path; what it returns is raised."""


@dataclass(eq=False)
class _Inode:
    data: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    unsynced: list[tuple[int, bytes]] = field(default_factory=list)
    """Writes in order; a length change is a write of nothing at the new length."""
    truncated: bool = False


_Names: TypeAlias = dict[str, "_Inode | None"]
"""Path → file, or None for a folder."""


@dataclass(frozen=True)
class _Change:
    """One change of names, which happens whole or not at all."""

    added: _Names
    removed: set[str]

    def apply(self, names: _Names) -> None:
        for name in self.removed:
            names.pop(name, None)
        names.update(self.added)

    def touches(self, folder: str) -> bool:
        return any(posixpath.dirname(name) == folder for name in (*self.added, *self.removed))


class SimulatedFile:
    """An open file of a simulated disk; of no use after `kill` or `crash`."""

    def __init__(self, disk: SimulatedDisk, path: str, inode: _Inode) -> None:
        self._disk = disk
        self._path = path
        self._inode = inode
        self._generation = disk.generation

    def write_at(self, offset: int, data: bytes) -> None:
        """Write; on a fault the first half gets there."""
        self._check_open()
        try:
            self._disk.check("write", self._path)
            self._disk.claim(offset + len(data) - len(self._inode.data))
        except OSError:
            self._write(offset, data[: len(data) // 2])
            raise
        self._write(offset, data)

    def read_at(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes as processes see them."""
        self._check_open()
        self._disk.check("read", self._path)
        return bytes(self._inode.data[offset : offset + length])

    def sync(self) -> None:
        """Make the contents durable.

        When that fails with EIO, what was unsynced is held for clean and never gets there. After any other fault a
        crash finds it unsynced: that is a power cut in the middle of a sync.
        """
        self._check_open()
        inode = self._inode
        try:
            self._disk.check("sync", self._path)
        except OSError as error:
            if error.errno == errno.EIO:
                inode.unsynced.clear()
            raise
        self._disk.syncs += 1
        if inode.truncated:
            inode.durable = bytearray(inode.data)
            inode.truncated = False
        for offset, data in inode.unsynced:
            _put(inode.durable, offset, data)
        inode.unsynced.clear()

    def size(self) -> int:
        """Length in bytes."""
        self._check_open()
        return len(self._inode.data)

    def truncate(self, length: int) -> None:
        """Set the length."""
        self._check_open()
        if length < len(self._inode.data):
            del self._inode.data[length:]
            self._inode.truncated = True
        else:
            self._write(length, b"")

    def allocate(self, length: int) -> None:
        """Lengthen with zeros; ENOSPC when the disk's capacity does not hold it."""
        self._check_open()
        self._disk.check("allocate", self._path)
        self._disk.claim(length - len(self._inode.data))
        if length > len(self._inode.data):
            self._write(length, b"")

    def close(self) -> None:
        """Close without syncing."""
        self._generation = -1

    def _write(self, offset: int, data: bytes) -> None:
        _put(self._inode.data, offset, data)
        self._inode.unsynced.append((offset, bytes(data)))

    def _check_open(self) -> None:
        if self._generation != self._disk.generation:
            raise OSError(errno.EBADF, "the file is closed", self._path)


class SimulatedDisk:
    """One machine's disk. `capacity` bytes bound the sum of all files' lengths; `fault` fails operations on cue."""

    def __init__(self, *, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.fault: Fault | None = None
        self.generation = 0
        self.syncs = 0
        self._boots = 1
        self._names: _Names = {}
        self._durable_names: _Names = {}
        self._unsynced_names: list[_Change] = []

    # The interface of cluster.disk.Disk.

    def open(self, path: str, *, create: bool = False) -> SimulatedFile:
        """Open for reading and writing."""
        path = _normal(path)
        inode = self._names.get(path)
        if inode is None:
            if path in self._names:
                raise IsADirectoryError(errno.EISDIR, "is a folder", path)
            self._require_parent(path)
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            inode = _Inode()
            self._change({path: inode})
        return SimulatedFile(self, path, inode)

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder of this name."""
        path = _normal(path)
        return path in self._names or path in ("", "/")

    def list(self, path: str) -> list[str]:
        """Names in a folder, sorted."""
        path = _normal(path)
        if not self.exists(path):
            raise FileNotFoundError(errno.ENOENT, "no such folder", path)
        return sorted(posixpath.basename(name) for name in self._names if posixpath.dirname(name) == path != name)

    def make_directory(self, path: str) -> None:
        """Create a folder and its parents."""
        path = _normal(path)
        parent = posixpath.dirname(path)
        if parent not in ("", path):
            self.make_directory(parent)
        if path not in self._names:
            self._change({path: None})

    def rename(self, source: str, target: str) -> None:
        """Move a file or folder."""
        source, target = _normal(source), _normal(target)
        moved = {name: inode for name, inode in self._names.items() if _is_in(name, source)}
        if not moved:
            raise FileNotFoundError(errno.ENOENT, "no such file", source)
        self._require_parent(target)
        self._change({target + name[len(source) :]: inode for name, inode in moved.items()}, set(moved))

    def remove(self, path: str) -> None:
        """Remove a file."""
        path = _normal(path)
        if self._names.get(path) is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        self._change({}, {path})

    def remove_tree(self, path: str) -> None:
        """Remove a folder with all in it."""
        path = _normal(path)
        if path not in self._names:
            raise FileNotFoundError(errno.ENOENT, "no such folder", path)
        self._change({}, {name for name in self._names if _is_in(name, path)})

    def sync_directory(self, path: str) -> None:
        """Make the folder's names durable, and with them every change of names that came before."""
        path = _normal(path)
        self.check("sync", path)
        self.syncs += 1
        last = max((i for i, change in enumerate(self._unsynced_names) if change.touches(path)), default=-1)
        for change in self._unsynced_names[: last + 1]:
            change.apply(self._durable_names)
        del self._unsynced_names[: last + 1]

    def free(self, path: str) -> int:  # noqa: ARG002
        """Bytes that are left of the capacity."""
        return 1 << 40 if self.capacity is None else max(0, self.capacity - self._used())

    def boot_id(self) -> str:
        """Differs after every crash of the machine."""
        return f"boot-{self._boots}"

    # What a simulation does to it.

    def kill(self) -> None:
        """The process dies: its files are closed, all that it wrote is still there."""
        self.generation += 1

    def crash(self, random: Random) -> None:
        """The machine loses power: of what was not synced some sectors and a beginning of the names survive."""
        self.generation += 1
        self._boots += 1
        for change in self._unsynced_names[: random.randint(0, len(self._unsynced_names))]:
            change.apply(self._durable_names)
        self._unsynced_names.clear()
        self._names = dict(self._durable_names)
        for inode in {id(inode): inode for inode in self._names.values() if inode is not None}.values():
            for offset, data in inode.unsynced:
                _tear(inode.durable, offset, data, random)
            inode.unsynced.clear()
            inode.truncated = False
            inode.data = bytearray(inode.durable)

    def flip_bit(self, path: str, offset: int, bit: int = 0) -> None:
        """Let the platter decay."""
        inode = self._names[_normal(path)]
        assert inode is not None
        inode.data[offset] ^= 1 << bit
        if offset < len(inode.durable):
            inode.durable[offset] ^= 1 << bit

    def files(self) -> Sequence[str]:
        """The paths of all files, sorted."""
        return sorted(name for name, inode in self._names.items() if inode is not None)

    def size_of(self, path: str) -> int:
        """A file's length."""
        inode = self._names[_normal(path)]
        assert inode is not None
        return len(inode.data)

    def fill(self, left: int) -> None:
        """Let others take all of the disk but so many bytes."""
        self.capacity = self._used() + left

    def check(self, operation: str, path: str) -> None:
        """Raise what `fault` wants raised."""
        error = self.fault(operation, path) if self.fault is not None else None
        if error is not None:
            raise error

    def claim(self, length: int) -> None:
        """Raise ENOSPC if files may not grow by `length` bytes."""
        if self.capacity is not None and length > 0 and self._used() + length > self.capacity:
            raise OSError(errno.ENOSPC, "no space left on device")

    def _used(self) -> int:
        return sum(len(inode.data) for inode in self._names.values() if inode is not None)

    def _require_parent(self, path: str) -> None:
        parent = posixpath.dirname(path)
        if parent and parent not in self._names:
            raise FileNotFoundError(errno.ENOENT, "no such folder", parent)

    def _change(self, added: _Names, removed: set[str] | None = None) -> None:
        change = _Change(added, removed or set())
        change.apply(self._names)
        self._unsynced_names.append(change)


def _normal(path: str) -> str:
    """One name for each place; "" is where relative paths begin."""
    path = posixpath.normpath(path)
    return "" if path == "." else path


def _is_in(name: str, folder: str) -> bool:
    return name == folder or name.startswith(folder + "/")


def _put(content: bytearray, offset: int, data: bytes) -> None:
    """Write into a file's content, filling a gap before it with zeros."""
    if offset > len(content):
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


def _tear(content: bytearray, offset: int, data: bytes, random: Random) -> None:
    """Write none, all, a beginning, or some sectors of `data`."""
    fate = random.choice(("none", "all", "beginning", "some"))
    if fate == "none":
        return
    cut = random.randint(0, len(data)) if fate == "beginning" else len(data)
    first_end = SECTOR - offset % SECTOR
    at = 0
    while at < cut or (at == 0 and not data):
        end = min(cut, first_end if at == 0 else at + SECTOR)
        if fate != "some" or random.random() < 0.5:
            _put(content, offset + at, data[at:end])
        if not data:
            return
        at = end
