"""Snapshots on disk: durable with their manifest, checked chunk by chunk, and gone with it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storagenode.snapshots.folder import Snapshot, SnapshotCorrupt, SnapshotFolder
from storagenode.snapshots.manifest import CHUNK_BYTES, Manifest, decode_manifest, encode_manifest
from tests.simulation.simulated_disk import SimulatedDisk

PARTITION, REPLICA = 7, 901


def manifest(position: int, replica: int = REPLICA) -> Manifest:
    return Manifest(PARTITION, replica, position, 3, 5, b"members", 0, ())


def open_folder(disk: SimulatedDisk) -> SnapshotFolder:
    folder = SnapshotFolder(disk, "data/snapshots")
    folder.open()
    return folder


def put(folder: SnapshotFolder, position: int, content: bytes) -> Snapshot:
    writer = folder.begin(PARTITION, REPLICA, position)
    for at in range(0, len(content), CHUNK_BYTES):
        writer.write(content[at : at + CHUNK_BYTES])
    return folder.add(REPLICA, writer.finish(manifest(position)))


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


def test_a_manifest_comes_back_and_a_changed_byte_is_noticed() -> None:
    made = replace(manifest(9), size=CHUNK_BYTES + 1, checksums=(1, 2))
    data = encode_manifest(made)
    assert decode_manifest(data) == made
    for at in range(len(data)):
        assert decode_manifest(data[:at] + bytes((data[at] ^ 4,)) + data[at + 1 :]) is None
        assert decode_manifest(data[:at]) is None


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES, 2 * CHUNK_BYTES + 5])
def test_what_was_written_is_there_after_a_power_cut(disk: SimulatedDisk, size: int) -> None:
    content = Random(1).randbytes(size)
    put(open_folder(disk), 10, content)
    disk.crash(Random(2))
    folder = open_folder(disk)
    snapshot = folder.newest(PARTITION, REPLICA)
    assert snapshot is not None
    assert (snapshot.position, snapshot.manifest.epoch, snapshot.manifest.membership) == (10, 3, b"members")
    assert b"".join(folder.chunks(snapshot)) == content


def test_the_newest_counts_and_the_older_ones_go(disk: SimulatedDisk) -> None:
    put(open_folder(disk), 10, b"old")
    disk.kill()
    folder = open_folder(disk)
    old = folder.newest(PARTITION, REPLICA)
    assert old is not None
    new = put(folder, 20, b"new")
    assert folder.newest(PARTITION, REPLICA) == new
    reader = folder.read(old)
    folder.remove_older(new)
    assert len(disk.list("data/snapshots")) == 2
    assert reader.chunk(0) == b"old", "whoever reads an old one goes on"
    folder.remove_all(PARTITION, REPLICA)
    assert folder.newest(PARTITION, REPLICA) is None
    assert disk.list("data/snapshots") == []


def test_what_never_became_a_snapshot_leaves_nothing(disk: SimulatedDisk) -> None:
    folder = open_folder(disk)
    writer = folder.begin(PARTITION, REPLICA, 10)
    writer.write(b"half")
    disk.kill()
    folder = open_folder(disk)
    assert folder.newest(PARTITION, REPLICA) is None
    assert disk.list("data/snapshots") == []
    writer = folder.begin(PARTITION, REPLICA, 10)
    writer.write(b"half")
    writer.abort()
    assert disk.list("data/snapshots") == []


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_a_flipped_bit_is_found(seed: int) -> None:
    random = Random(seed)
    disk = SimulatedDisk()
    folder = open_folder(disk)
    snapshot = put(folder, 10, random.randbytes(random.randint(1, 3000)))
    path = f"data/snapshots/{random.choice(disk.list('data/snapshots'))}"
    file = disk.open(path)
    disk.flip_bit(path, random.randrange(file.size()), random.randrange(8))
    folder = open_folder(disk)
    if path.endswith(".manifest"):
        assert folder.newest(PARTITION, REPLICA) is None
    else:
        with pytest.raises(SnapshotCorrupt, match=snapshot.name):
            folder.verify(snapshot)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_a_crash_at_any_moment_leaves_the_old_one_or_the_new_one_whole(seed: int) -> None:
    """The old one goes only when the new one is durable; between them there is never none."""
    random = Random(seed)
    disk = SimulatedDisk()
    folder = open_folder(disk)
    contents = {10: random.randbytes(2000), 20: random.randbytes(3000)}
    put(folder, 10, contents[10])
    left = random.randint(1, 8)

    def fault(operation: str, _: str) -> OSError | None:
        nonlocal left
        left -= operation in ("write", "sync")
        return InterruptedError("cut") if left == 0 else None

    disk.fault = fault
    with suppress(InterruptedError):
        folder.remove_older(put(folder, 20, contents[20]))
    disk.fault = None
    disk.crash(random)
    folder = open_folder(disk)
    snapshot = folder.newest(PARTITION, REPLICA)
    assert snapshot is not None
    assert b"".join(folder.chunks(snapshot)) == contents[snapshot.position]


def test_who_removes_a_snapshot_second_has_nothing_to_do(disk: SimulatedDisk) -> None:
    folder = open_folder(disk)
    older, newest = put(folder, 10, b"x"), put(folder, 11, b"y")
    folder.remove(older)
    folder.remove(older)
    folder.remove_older(newest)
    assert folder.all(PARTITION, REPLICA) == [newest]
