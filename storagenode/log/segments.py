"""The files of the log: preallocated segments, numbered without gaps, and spares that will become the next ones.

All have one size, but for a segment that was made for a batch larger than that: it is no spare afterwards.
"""

from __future__ import annotations

import threading
from typing import Final

from cluster.disk import Disk, File
from cluster.files import read_file

SPARES_KEPT: Final = 1
"""Spares above the reserve that recycling leaves: more would hold disk space that the log may never need again."""
_SEGMENT_SUFFIX: Final = ".segment"
_SPARE_SUFFIX: Final = ".spare"
_SUMMARY_SUFFIX: Final = ".summary"


def has_log(disk: Disk, directory: str) -> bool:
    """Whether there is any segment of a log."""
    return disk.exists(directory) and any(name.endswith(_SEGMENT_SUFFIX) for name in disk.list(directory))


class Segments:
    """Opens, creates and recycles segment files. Calls may come from several threads.

    `reserve` spare files are kept allocated ahead, so that a log on a full file system can go on for that long.
    """

    def __init__(self, disk: Disk, directory: str, segment_bytes: int, reserve: int) -> None:
        self._disk = disk
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._reserve = reserve
        self._lock = threading.Lock()
        self._files: dict[int, File] = {}
        disk.make_directory(directory)
        names = disk.list(directory)
        self.numbers = sorted(
            int(name.removesuffix(_SEGMENT_SUFFIX), 16) for name in names if name.endswith(_SEGMENT_SUFFIX)
        )
        self._spares = sorted(
            int(name.removesuffix(_SPARE_SUFFIX), 16) for name in names if name.endswith(_SPARE_SUFFIX)
        )
        self._sizes = {number: self.file(number).size() for number in self.numbers}

    @property
    def size(self) -> int:
        """Bytes on the disk, spares included."""
        sizes = [max(self._segment_bytes, self._sizes.get(number, 0)) for number in tuple(self.numbers)]
        return sum(sizes) + len(self._spares) * self._segment_bytes

    @property
    def spares(self) -> int:
        """Spare files that are allocated."""
        return len(self._spares)

    @property
    def low(self) -> bool:
        """Whether fewer spares are there than are to be held in reserve."""
        return len(self._spares) < self._reserve

    def file(self, number: int) -> File:
        """The file of a segment, kept open from its first use on."""
        with self._lock:
            if number not in self._files:
                self._files[number] = self._disk.open(self._segment_path(number))
            return self._files[number]

    def create(self, number: int, least: int = 0) -> File:
        """The file for a new segment, allocated in full, its name durable; larger than others if it is to hold `least`
        bytes and they cannot. Safe to repeat after an error.

        Raises OSError (ENOSPC) if there is neither a spare nor room for a new file.
        """
        if number not in self.numbers:
            if not self._spares:
                self._allocate_spare()
            self._disk.rename(self._spare_path(self._spares[0]), self._segment_path(number))
            del self._spares[0]
            self.numbers.append(number)
        self._disk.sync_directory(self._directory)
        file = self.file(number)
        if file.size() < max(self._segment_bytes, least):
            file.allocate(max(self._segment_bytes, least))
        self._sizes[number] = file.size()
        return file

    def recycle(self, number: int) -> None:
        """Make a spare of a segment that holds nothing any more: the oldest or the newest. Enough spares, or
        larger than these: remove it."""
        with self._lock:
            file = self._files.pop(number, None)
            if file is not None:
                file.close()
        if self._disk.exists(self._summary_path(number)):
            self._disk.remove(self._summary_path(number))
        is_larger = self._sizes.pop(number, 0) > self._segment_bytes
        if len(self._spares) < self._reserve + SPARES_KEPT and not is_larger:
            spare = self._unused_spare()
            self._disk.rename(self._segment_path(number), self._spare_path(spare))
            self._spares.append(spare)
        else:
            self._disk.remove(self._segment_path(number))
        self.numbers.remove(number)
        self._disk.sync_directory(self._directory)

    def erase(self, number: int, offset: int, length: int) -> None:
        """Overwrite a part of a segment with zeros, durably."""
        file = self.file(number)
        file.write_at(offset, bytes(length))
        file.sync()

    def put_summary(self, number: int, data: bytes) -> None:
        """Keep a segment's summary, if there is room; not synced."""
        try:
            file = self._disk.open(self._summary_path(number), create=True)
            try:
                file.truncate(0)
                file.write_at(0, data)
            finally:
                file.close()
        except OSError:
            # Derived and checksummed: the next start reads the segment instead.
            return

    def summary(self, number: int) -> bytes | None:
        """A segment's summary, or what is left of it; None if there is none."""
        return read_file(self._disk, self._summary_path(number))

    def fill_reserve(self) -> None:
        """Allocate what is missing of the reserve. Raises OSError (ENOSPC)."""
        while self.low:
            self._allocate_spare()

    def sync_names(self) -> None:
        """Make the names of all segments durable."""
        self._disk.sync_directory(self._directory)

    def close(self) -> None:
        """Close all files."""
        with self._lock:
            for file in self._files.values():
                file.close()
            self._files.clear()

    def _allocate_spare(self) -> None:
        spare = self._unused_spare()
        path = self._spare_path(spare)
        file = self._disk.open(path, create=True)
        try:
            file.allocate(self._segment_bytes)
            file.sync()
        except OSError:
            file.close()
            self._disk.remove(path)
            raise
        file.close()
        self._disk.sync_directory(self._directory)
        self._spares.append(spare)

    def _unused_spare(self) -> int:
        return max(self._spares, default=0) + 1

    def _segment_path(self, number: int) -> str:
        return f"{self._directory}/{number:016x}{_SEGMENT_SUFFIX}"

    def _summary_path(self, number: int) -> str:
        return f"{self._directory}/{number:016x}{_SUMMARY_SUFFIX}"

    def _spare_path(self, number: int) -> str:
        return f"{self._directory}/{number:016x}{_SPARE_SUFFIX}"
