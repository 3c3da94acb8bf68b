"""Batches that no usual segment of the log holds: each gets a larger one, which goes once it is forgotten."""

from __future__ import annotations

import pytest

from replication.messages import Entry
from storagenode.log import LogFull, NodeLog
from tests.simulation.simulated_disk import SimulatedDisk
from tests.unit.test_log_node_log import REPLICA, SEGMENT, P, Q, entries, flush, open_log

LARGE = 3 * SEGMENT


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


@pytest.fixture
def log(disk: SimulatedDisk) -> NodeLog:
    log, _ = open_log(disk)
    log.open_partition(P, REPLICA)
    log.open_partition(Q, REPLICA + 1)
    log.append_entries(P, entries(1, 3))
    flush(log)
    return log


def large(position: int) -> Entry:
    return Entry(1, position, bytes([position]) * LARGE)


def on_disk(disk: SimulatedDisk) -> int:
    """Bytes of segments and spares."""
    return sum(disk.size_of(path) for path in disk.files() if path.endswith((".segment", ".spare")))


@pytest.mark.parametrize("machine_crashed", [False, True])
def test_a_large_entry_comes_back_with_what_was_written_before_and_after(
    disk: SimulatedDisk, log: NodeLog, machine_crashed: bool
) -> None:
    written = (*entries(1, 3), large(4), *entries(5, 2), large(7), large(8), *entries(9, 200, size=1000))
    log.append_entries(P, written[3:])
    flush(log)
    assert log.read(P, 1, 1 << 30) == written
    disk.kill()
    again, recovered = open_log(disk, machine_crashed=machine_crashed)
    assert recovered.replicas[P].last_position == 208
    assert again.read(P, 1, 1 << 30) == written
    assert again.size == on_disk(disk)


def test_its_segment_is_counted_and_goes_once_it_is_forgotten(disk: SimulatedDisk, log: NodeLog) -> None:
    before = log.size
    log.append_entries(P, (large(4),))
    flush(log)
    assert log.size == on_disk(disk) > before + LARGE
    log.append_entries(Q, entries(1, 300, size=1000))
    flush(log)
    log.append_snapshot(P, 1, 4)
    log.append_snapshot(Q, 1, 300)
    flush(log)
    log.forget_before(log.current_segment)
    log.recycle()
    assert log.size == on_disk(disk)
    assert {disk.size_of(path) for path in disk.files() if path.endswith((".segment", ".spare"))} == {SEGMENT}


def test_while_the_disk_has_no_room_for_it_nothing_is_lost(disk: SimulatedDisk, log: NodeLog) -> None:
    log.append_entries(P, (large(4),))
    batch = log.take()
    disk.fill(LARGE // 2)
    for _ in range(2):
        with pytest.raises(LogFull):
            log.write(batch)
    disk.capacity = None
    log.write(batch)
    log.written(batch)
    log.append_entries(P, entries(5, 1))
    flush(log)
    disk.kill()
    again, _ = open_log(disk)
    assert again.read(P, 1, 1 << 30) == (*entries(1, 3), large(4), *entries(5, 1))


def test_the_state_of_very_many_partitions_may_be_larger_than_a_segment(disk: SimulatedDisk, log: NodeLog) -> None:
    """Every segment begins with it."""
    many = range(1000, 1000 + SEGMENT // 20)
    for partition in many:
        log.open_partition(partition, REPLICA)
        log.append_membership(partition, 0, bytes(40))
    flush(log)
    segment = log.current_segment
    while log.current_segment < segment + 2:
        log.append_entries(P, entries(log.last_position(P) + 1, 20, size=1000))
        flush(log)
    last = log.last_position(P)
    disk.kill()
    again, recovered = open_log(disk)
    assert set(recovered.replicas) == {P, Q, *many}
    assert again.last_position(P) == last
