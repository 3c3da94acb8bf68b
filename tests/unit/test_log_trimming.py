"""Trimming the log: what is forgotten, what never is, and where the files go."""

from __future__ import annotations

import pytest

from replication.effects import HardState
from storagenode.log import LogTrimmed, NodeLog
from tests.simulation.simulated_disk import SimulatedDisk
from tests.unit.test_log_node_log import REPLICA, SEGMENT, P, Q, entries, flush, open_log


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


@pytest.fixture
def log(disk: SimulatedDisk) -> NodeLog:
    log, _ = open_log(disk)
    log.open_partition(P, REPLICA)
    flush(log)
    return log


def fill_segments(log: NodeLog, partition: int, first: int, segments: int) -> int:
    """Write a partition's entries until so many more segments are full; returns the last position."""
    until = log.current_segment + segments
    position = first
    while log.current_segment < until:
        log.append_entries(partition, entries(position, 10, size=1000))
        position += 10
        flush(log)
    return position - 1


def test_segments_below_every_need_are_recycled(disk: SimulatedDisk, log: NodeLog) -> None:
    last = fill_segments(log, P, 1, 3)
    size = log.size
    assert log.segment_needed(P, 1) == 1
    log.append_snapshot(P, 1, last - 30)
    flush(log)
    needed = log.segment_needed(P, last - 29)
    assert needed is not None
    assert needed > 2
    trimmed = log.forget_before(needed)
    log.recycle()
    assert trimmed == {P: log.first_position(P)}
    assert 1 < log.first_position(P) <= last - 29
    assert log.oldest_segment == needed
    assert log.size <= size
    with pytest.raises(LogTrimmed):
        log.read(P, log.first_position(P) - 1, 100)
    kept = log.read(P, log.first_position(P), 1 << 20)
    assert [entry.position for entry in kept][-1] == last
    # The files come back as those of new segments, and the log goes on.
    last = fill_segments(log, P, last + 1, 3)
    for crashed in (False, True):
        disk.kill()
        again, recovered = open_log(disk, machine_crashed=crashed)
        replica = recovered.replicas[P]
        assert (replica.first_position, replica.last_position) == (kept[0].position, last)
        assert again.read(P, replica.first_position, 1)[0] == kept[0]
        assert again.oldest_segment == needed


def test_trimming_forgets_neither_vote_nor_membership_nor_quiet_partitions(disk: SimulatedDisk, log: NodeLog) -> None:
    log.append_membership(P, 0, b"three voters")
    log.append_hard_state(P, HardState(4, 902))
    log.open_partition(Q, 77)
    log.append_entries(Q, entries(1, 3))
    last = fill_segments(log, P, 1, 3)
    log.append_snapshot(P, 1, last)
    log.append_snapshot(Q, 1, 3)
    flush(log)
    log.forget_before(log.current_segment)
    log.recycle()
    disk.kill()
    _, recovered = open_log(disk, machine_crashed=True)
    replica = recovered.replicas[P]
    assert replica.hard_state == HardState(4, 902)
    assert replica.memberships == ((0, b"three voters"),)
    quiet = recovered.replicas[Q]
    assert (quiet.replica, quiet.snapshot_position, quiet.first_position, quiet.last_position) == (77, 3, 4, 3)


def test_the_current_segment_stays(log: NodeLog) -> None:
    log.append_entries(P, entries(1, 3))
    flush(log)
    assert log.forget_before(99) == {}
    log.recycle()
    assert log.read(P, 1, 1 << 20) == entries(1, 3)


def test_spares_do_not_pile_up(disk: SimulatedDisk, log: NodeLog) -> None:
    last = fill_segments(log, P, 1, 9)
    log.append_snapshot(P, 1, last)
    flush(log)
    log.forget_before(log.current_segment)
    log.recycle()
    spares = [name for name in disk.list("log") if name.endswith(".spare")]
    assert len(spares) == 2
    assert log.size == 3 * SEGMENT


def test_a_restarted_partition_begins_after_the_snapshot(disk: SimulatedDisk, log: NodeLog) -> None:
    log.append_entries(P, entries(1, 20))
    flush(log)
    log.restart_partition(P, 3, 12)
    log.append_entries(P, entries(13, 2, epoch=4))
    flush(log)
    assert log.read(P, 13, 1 << 20) == entries(13, 2, epoch=4)
    with pytest.raises(LogTrimmed):
        log.read(P, 12, 1)
    disk.kill()
    _, recovered = open_log(disk)
    replica = recovered.replicas[P]
    assert (replica.snapshot_epoch, replica.snapshot_position) == (3, 12)
    assert (replica.first_position, replica.last_position, replica.epochs) == (13, 14, ((4, 13),))
