"""The snapshots on a node's disk: two files each, the data and, once that is durable, its manifest.

    PARTITION-REPLICA-POSITION.data       16 hexadecimal digits each; the replica is the one that keeps it here
    PARTITION-REPLICA-POSITION.manifest   makes it a snapshot

All calls but `newest` block. A partition's snapshots are written from one place at a time; they may be removed from
several, and what is about to be read may be gone by then.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from cluster.disk import Disk, File
from cluster.files import read_file, replace_file
from storagenode.snapshots.manifest import Manifest, decode_manifest, encode_manifest
from storagenode.storage.store import StoreError

SYNC_BYTES: Final = 1 << 20
"""Synced in one go: a flush of the log waits no longer than that takes."""
_DATA: Final = ".data"
_MANIFEST: Final = ".manifest"


class SnapshotCorrupt(StoreError):  # noqa: N818
    """The data is not what its manifest says: the snapshot is of no use."""

    def __init__(self, snapshot: Snapshot, chunk: int) -> None:
        super().__init__(f"snapshot {snapshot.name} is damaged in chunk {chunk}")
        self.snapshot = snapshot


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A durable snapshot that `replica` keeps."""

    replica: int
    manifest: Manifest

    @property
    def partition(self) -> int:
        """The partition that it is of."""
        return self.manifest.partition

    @property
    def position(self) -> int:
        """What it covers of the log."""
        return self.manifest.position

    @property
    def name(self) -> str:
        """Its files' name."""
        return f"{self.partition:016x}-{self.replica:016x}-{self.position:016x}"


class SnapshotWriter:
    """A snapshot in the making. It is durable after `finish`, and leaves nothing after `abort`."""

    def __init__(self, disk: Disk, folder: str, name: str) -> None:
        self._disk = disk
        self._folder = folder
        self._name = name
        self._file = disk.open(f"{folder}/{name}{_DATA}", create=True)
        self._file.truncate(0)
        self._checksums: list[int] = []
        self._size = self._unsynced = 0

    @property
    def chunks(self) -> int:
        """How many chunks are written."""
        return len(self._checksums)

    def write(self, chunk: bytes) -> None:
        """The next chunk, all but the last of one length; synced every now and then. Raises OSError."""
        self._file.write_at(self._size, chunk)
        self._unsynced += len(chunk)
        if self._unsynced >= SYNC_BYTES:
            self._file.sync()
            self._unsynced = 0
        self._checksums.append(crc32(chunk))
        self._size += len(chunk)

    def finish(self, manifest: Manifest) -> Manifest:
        """All is written: `manifest`, with the data's size and checksums, makes it a snapshot. Raises OSError."""
        made = Manifest(
            manifest.partition,
            manifest.replica,
            manifest.position,
            manifest.epoch,
            manifest.membership_version,
            manifest.membership,
            self._size,
            tuple(self._checksums),
            manifest.chunk_bytes,
        )
        self._file.sync()
        self._file.close()
        self._disk.sync_directory(self._folder)
        replace_file(self._disk, self._folder, self._name + _MANIFEST, encode_manifest(made))
        return made

    def close(self) -> None:
        """Close the file; what is not finished is removed at the next start."""
        self._file.close()

    def abort(self) -> None:
        """Give up."""
        self._file.close()
        with contextlib.suppress(FileNotFoundError):
            self._disk.remove(f"{self._folder}/{self._name}{_DATA}")


class SnapshotReader:
    """A snapshot's data. It stays readable when the snapshot is removed meanwhile."""

    def __init__(self, snapshot: Snapshot, file: File) -> None:
        self.snapshot = snapshot
        self._file = file

    def chunk(self, number: int) -> bytes:
        """One chunk. Raises SnapshotCorrupt."""
        manifest = self.snapshot.manifest
        data = self._file.read_at(number * manifest.chunk_bytes, manifest.chunk_size(number))
        if not manifest.is_chunk(number, data):
            raise SnapshotCorrupt(self.snapshot, number)
        return data

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class SnapshotFolder:
    """What `open` finds, and what is added.

    A replica has one snapshot; another one while that replaces it, or is fetched from its leader.
    """

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        self._found: dict[tuple[int, int], list[Snapshot]] = {}

    def open(self) -> None:
        """Read the manifests, and remove what never became a snapshot or no longer is one. Raises OSError."""
        self._disk.make_directory(self._folder)
        names = self._disk.list(self._folder)
        whole: set[str] = set()
        for name in names:
            if name.endswith(_MANIFEST) and (snapshot := self._read(name)) is not None:
                whole.add(snapshot.name)
                self._of(snapshot.partition, snapshot.replica).append(snapshot)
        for name in names:
            if name.partition(".")[0] not in whole or not name.endswith((_DATA, _MANIFEST)):
                self._disk.remove(f"{self._folder}/{name}")
        for snapshots in self._found.values():
            snapshots.sort(key=lambda snapshot: snapshot.position)

    def _read(self, name: str) -> Snapshot | None:
        manifest = decode_manifest(read_file(self._disk, f"{self._folder}/{name}") or b"")
        if manifest is None:
            return None
        snapshot = Snapshot(int(name.split("-")[1], 16), manifest)
        data = f"{self._folder}/{snapshot.name}{_DATA}"
        return snapshot if name == snapshot.name + _MANIFEST and self._disk.exists(data) else None

    def newest(self, partition: int, replica: int) -> Snapshot | None:
        """The replica's newest snapshot; from memory."""
        found = self._found.get((partition, replica))
        return found[-1] if found else None

    def all(self, partition: int, replica: int) -> list[Snapshot]:
        """The replica's snapshots, the newest last; from memory."""
        return list(self._of(partition, replica))

    def begin(self, partition: int, replica: int, position: int) -> SnapshotWriter:
        """Begin a snapshot at a position at which the replica keeps none. Raises OSError."""
        name = f"{partition:016x}-{replica:016x}-{position:016x}"
        assert all(snapshot.name != name for snapshot in self._of(partition, replica)), "a snapshot never changes"
        return SnapshotWriter(self._disk, self._folder, name)

    def add(self, replica: int, manifest: Manifest) -> Snapshot:
        """What a writer has finished is there from now on."""
        snapshot = Snapshot(replica, manifest)
        snapshots = self._of(manifest.partition, replica)
        snapshots.append(snapshot)
        snapshots.sort(key=lambda snapshot: snapshot.position)
        return snapshot

    def read(self, snapshot: Snapshot) -> SnapshotReader:
        """Its data. Raises OSError, FileNotFoundError if it was removed meanwhile."""
        return SnapshotReader(snapshot, self._disk.open(f"{self._folder}/{snapshot.name}{_DATA}"))

    def verify(self, snapshot: Snapshot) -> None:
        """Read all of it. Raises SnapshotCorrupt, OSError."""
        for _ in self.chunks(snapshot):
            pass

    def chunks(self, snapshot: Snapshot) -> Iterator[bytes]:
        """All chunks, each checked as it comes. Raises SnapshotCorrupt, OSError."""
        with contextlib.closing(self.read(snapshot)) as reader:
            for number in range(snapshot.manifest.chunks):
                yield reader.chunk(number)

    def remove_older(self, than: Snapshot) -> None:
        """Remove the snapshots of the same replica that this one replaces."""
        for snapshot in self.all(than.partition, than.replica):
            if snapshot.position < than.position:
                self.remove(snapshot)

    def remove_all(self, partition: int, replica: int) -> None:
        """The replica was dropped by order: its snapshots go."""
        for snapshot in list(self._of(partition, replica)):
            self.remove(snapshot)

    def remove(self, snapshot: Snapshot) -> None:
        """Remove one snapshot: first it is none any more, then its data goes. It may have been removed before."""
        try:
            self._of(snapshot.partition, snapshot.replica).remove(snapshot)
        except ValueError:
            return
        self._disk.remove(f"{self._folder}/{snapshot.name}{_MANIFEST}")
        self._disk.sync_directory(self._folder)
        self._disk.remove(f"{self._folder}/{snapshot.name}{_DATA}")

    def _of(self, partition: int, replica: int) -> list[Snapshot]:
        return self._found.setdefault((partition, replica), [])
