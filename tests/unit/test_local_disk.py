"""The machine's file system behind the seam, and that the simulated one agrees where both can be asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from cluster.disk import Disk
from cluster.local_disk import LocalDisk
from tests.simulation.simulated_disk import SECTOR, SimulatedDisk

Place = tuple[Disk, Callable[[str], str]]


@pytest.fixture(params=["local", "simulated"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A disk, and how to name something in an empty folder of it."""
    if request.param == "local":
        return LocalDisk(), lambda name: str(tmp_path / name)
    return SimulatedDisk(), lambda name: name


def test_what_is_written_is_read(place: Place) -> None:
    disk, path = place
    file = disk.open(path("a"), create=True)
    file.write_at(3, b"hello")
    assert (file.size(), file.read_at(0, 100), file.read_at(4, 2)) == (8, b"\0\0\0hello", b"el")
    file.write_at(4, b"E")
    file.sync()
    file.close()
    assert disk.open(path("a")).read_at(3, 5) == b"hEllo"


def test_lengths_are_set(place: Place) -> None:
    disk, path = place
    file = disk.open(path("a"), create=True)
    file.allocate(10_000)
    file.write_at(0, b"xy")
    file.allocate(5_000)
    assert (file.size(), file.read_at(0, 3)) == (10_000, b"xy\0")
    file.truncate(1)
    assert file.read_at(0, 10) == b"x"
    file.truncate(3)
    assert file.read_at(0, 10) == b"x\0\0"


def test_names_are_made_moved_and_removed(place: Place) -> None:
    disk, path = place
    disk.make_directory(path("d/e"))
    disk.make_directory(path("d/e"))
    disk.open(path("d/e/b"), create=True).close()
    disk.open(path("d/e/a"), create=True).close()
    assert disk.list(path("d/e")) == ["a", "b"]
    disk.open(path("d/e/a")).write_at(0, b"a")
    disk.rename(path("d/e/a"), path("d/e/b"))
    assert (disk.list(path("d/e")), disk.open(path("d/e/b")).read_at(0, 9)) == (["b"], b"a")
    disk.rename(path("d/e"), path("d/f"))
    assert (disk.list(path("d")), disk.list(path("d/f"))) == (["f"], ["b"])
    disk.sync_directory(path("d"))
    disk.remove(path("d/f/b"))
    assert disk.list(path("d/f")) == []
    disk.remove_tree(path("d"))
    assert not disk.exists(path("d"))


def test_a_file_must_exist_unless_it_is_to_be_made(place: Place) -> None:
    disk, path = place
    for use in (disk.open, disk.list, disk.remove):
        with pytest.raises(FileNotFoundError):
            use(path("nothing"))
    with pytest.raises(FileNotFoundError):
        disk.open(path("no folder/a"), create=True)


def test_a_boot_has_one_id(place: Place) -> None:
    disk, path = place
    assert disk.boot_id() == disk.boot_id() != ""
    assert disk.free(path(".")) > 0


def test_a_large_write_is_whole(place: Place) -> None:
    disk, path = place
    data = Random(1).randbytes(5_000_001)
    file = disk.open(path("a"), create=True)
    file.write_at(1, data)
    assert file.read_at(1, len(data)) == data


def test_a_crash_forgets_only_what_was_not_synced() -> None:
    survived = set()
    for seed in range(50):
        disk = SimulatedDisk()
        disk.make_directory("d")
        file = disk.open("d/a", create=True)
        file.write_at(0, b"s" * SECTOR)
        file.sync()
        disk.sync_directory("d")
        file.write_at(SECTOR, b"1" * SECTOR + b"2" * SECTOR)
        disk.crash(Random(seed))
        data = disk.open("d/a").read_at(0, 10 * SECTOR)
        assert data[:SECTOR] == b"s" * SECTOR
        survived.add((data[SECTOR : SECTOR + 1], data[2 * SECTOR : 2 * SECTOR + 1]))
    assert {(b"", b""), (b"1", b"2"), (b"1", b""), (b"\0", b"2")} <= survived


def test_a_crash_may_forget_an_unsynced_name() -> None:
    found = set()
    for seed in range(20):
        disk = SimulatedDisk()
        disk.make_directory("d")
        disk.sync_directory("")
        disk.open("d/a", create=True).sync()
        disk.crash(Random(seed))
        found.add(disk.exists("d/a"))
        assert disk.exists("d")
    assert found == {True, False}
