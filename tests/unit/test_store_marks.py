"""Marks: what may be trusted after each way of stopping."""

from __future__ import annotations

import errno
from contextlib import suppress
from random import Random

import pytest

from storagenode.storage.marks import (
    UNSTEADY_MAX,
    LastStop,
    count_start,
    discard_untrusted,
    last_stop,
    mark_clean,
    mark_running,
    mark_steady,
)
from storagenode.storage.memory_store import MemoryStores
from tests.simulation.simulated_disk import SimulatedDisk


@pytest.fixture
def disk() -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.make_directory("data")
    disk.sync_directory("")
    return disk


def test_a_new_disk_never_ran(disk: SimulatedDisk) -> None:
    assert last_stop(disk, "data") is LastStop.NEVER_RAN


def test_a_clean_stop_is_known_after_a_crash_of_the_machine(disk: SimulatedDisk) -> None:
    mark_running(disk, "data")
    mark_clean(disk, "data")
    disk.crash(Random(1))
    assert last_stop(disk, "data") is LastStop.CLEAN


def cut_after(disk: SimulatedDisk, steps: int) -> None:
    """Start, but let the power fail at the given write or sync, if the start has that many."""
    left = steps

    def fault(operation: str, _: str) -> OSError | None:
        nonlocal left
        left -= operation in ("write", "sync")
        return OSError(errno.EIO, "power cut") if left == 0 else None

    disk.fault = fault
    with suppress(OSError):
        mark_running(disk, "data")
    disk.fault = None


@pytest.mark.parametrize("seed", range(20))
def test_running_is_durable_before_the_first_write(disk: SimulatedDisk, seed: int) -> None:
    mark_running(disk, "data")
    mark_clean(disk, "data")
    mark_running(disk, "data")
    disk.crash(Random(seed))
    assert last_stop(disk, "data") is LastStop.MACHINE_CRASHED


def test_a_killed_process_is_not_a_crash_of_the_machine(disk: SimulatedDisk) -> None:
    mark_running(disk, "data")
    disk.kill()
    assert last_stop(disk, "data") is LastStop.PROCESS_CRASHED


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("clean", [False, True])
def test_a_power_cut_during_a_start_is_no_reason_to_trust(
    disk: SimulatedDisk, clean: bool, steps: int, seed: int
) -> None:
    mark_running(disk, "data")
    if clean:
        mark_clean(disk, "data")
    disk.crash(Random(seed))
    cut_after(disk, steps)
    disk.crash(Random(seed))
    # Until the clean mark is gone for good nothing was written, so that either answer is right.
    allowed = {LastStop.MACHINE_CRASHED, LastStop.CLEAN} if clean and steps <= 4 else {LastStop.MACHINE_CRASHED}
    assert last_stop(disk, "data") in allowed


@pytest.mark.parametrize(
    ("stop", "kept"),
    [
        (LastStop.CLEAN, [(1, 1)]),
        (LastStop.PROCESS_CRASHED, [(1, 1)]),
        (LastStop.MACHINE_CRASHED, []),
        (LastStop.NEVER_RAN, []),
        (LastStop.KEEPS_CRASHING, []),
    ],
)
def test_only_trusted_environments_are_kept(stop: LastStop, kept: list[tuple[int, int]]) -> None:
    stores = MemoryStores()
    stores.open(1, 1)
    discard_untrusted(stop, stores)
    assert stores.existing() == kept


def begin_life(disk: SimulatedDisk) -> LastStop:
    stop = last_stop(disk, "data")
    mark_running(disk, "data")
    count_start(disk, "data", stop)
    return stop


def test_a_process_that_keeps_crashing_trusts_its_stores_no_more(disk: SimulatedDisk) -> None:
    stops = []
    for _ in range(2 * UNSTEADY_MAX + 2):
        stops.append(begin_life(disk))
        disk.kill()
    again = [LastStop.PROCESS_CRASHED] * (UNSTEADY_MAX - 1) + [LastStop.KEEPS_CRASHING]
    assert stops == [LastStop.NEVER_RAN, *again, *again, LastStop.PROCESS_CRASHED]


def test_a_life_that_lasted_and_a_clean_stop_are_no_part_of_that(disk: SimulatedDisk) -> None:
    for _ in range(2 * UNSTEADY_MAX):
        begin_life(disk)
        mark_steady(disk, "data")
        disk.kill()
        assert last_stop(disk, "data") is LastStop.PROCESS_CRASHED
    for _ in range(2 * UNSTEADY_MAX):
        begin_life(disk)
        mark_clean(disk, "data")
        disk.kill()
        assert last_stop(disk, "data") is LastStop.CLEAN
