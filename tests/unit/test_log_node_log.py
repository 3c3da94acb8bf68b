"""The node's log: batches, replacing a tail, reading back, rolling over, restarts, full and failing disks."""

from __future__ import annotations

import errno
from pathlib import Path
from random import Random

import pytest

from cluster.disk import Disk
from cluster.local_disk import LocalDisk
from replication.effects import HardState
from replication.messages import MEMBERSHIP as MEMBERSHIP_ENTRY
from replication.messages import Entry
from storagenode.log import (
    Batch,
    LogBroken,
    LogCorrupt,
    LogFull,
    LogTrimmed,
    NodeLog,
    Recovered,
    frame_entries,
    records,
)
from storagenode.log.frames import BLOCK
from storagenode.log.index import Index
from storagenode.log.records import frame_record
from storagenode.log.recovery import Torn
from tests.simulation.simulated_disk import SimulatedDisk

SEGMENT = 64 * 1024
P, Q = 11, 22
REPLICA = 901
SMALL_FILES = SEGMENT // 2
"""Room for summaries, too little for a segment."""


def open_log(disk: Disk, *, machine_crashed: bool = False, reserve: int = 1) -> tuple[NodeLog, Recovered]:
    return NodeLog.open(disk, "log", machine_crashed=machine_crashed, segment_bytes=SEGMENT, reserve_segments=reserve)


def flush(log: NodeLog) -> None:
    while log.pending():
        batch = log.take()
        log.write(batch)
        log.written(batch)


def entries(first: int, count: int, epoch: int = 1, size: int = 100) -> tuple[Entry, ...]:
    return tuple(Entry(epoch, position, b"%d." % position * (size // 4)) for position in range(first, first + count))


def segment_path(number: int) -> str:
    return f"log/{number:016x}.segment"


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


@pytest.fixture
def log(disk: SimulatedDisk) -> NodeLog:
    log, _ = open_log(disk)
    log.open_partition(P, REPLICA)
    flush(log)
    return log


def test_everything_comes_back_after_a_restart(disk: SimulatedDisk, log: NodeLog) -> None:
    log.append_membership(P, 0, b"three voters")
    log.append_hard_state(P, HardState(4, 902))
    log.append_entries(P, entries(1, 3, epoch=2))
    log.append_entries(P, entries(4, 2, epoch=4))
    log.append_snapshot(P, 2, 2)
    flush(log)
    disk.kill()
    _, recovered = open_log(disk)
    replica = recovered.replicas[P]
    assert (replica.replica, replica.memberships) == (REPLICA, ((0, b"three voters"),))
    assert replica.hard_state == HardState(4, 902)
    assert (replica.first_position, replica.last_position, replica.epochs) == (1, 5, ((2, 1), (4, 4)))
    assert (replica.snapshot_epoch, replica.snapshot_position) == (2, 2)


def test_what_was_not_flushed_is_neither_readable_nor_recovered(disk: SimulatedDisk, log: NodeLog) -> None:
    log.append_entries(P, entries(1, 3))
    assert log.pending()
    assert log.read(P, 1, 1000) == ()
    disk.kill()
    _, recovered = open_log(disk)
    assert recovered.replicas[P].last_position == 0


def test_each_start_has_a_higher_durable_incarnation(disk: SimulatedDisk) -> None:
    assert open_log(disk)[1].incarnation == 1
    disk.crash(Random(1))
    assert open_log(disk, machine_crashed=True)[1].incarnation == 2


def test_a_batch_costs_one_sync(disk: SimulatedDisk, log: NodeLog) -> None:
    log.open_partition(Q, REPLICA + 1)
    for position in range(1, 50):
        log.append_entries(P, entries(position, 1))
        log.append_entries(Q, entries(position, 1))
    before = disk.syncs
    batch = log.take()
    log.write(batch)
    assert (disk.syncs, log.pending()) == (before + 1, False)


def test_entries_are_read_from_a_position_up_to_a_size(log: NodeLog) -> None:
    written = entries(1, 40)
    for entry in written:
        log.append_entries(P, (entry,))
        flush(log)
    assert log.read(P, 1, 1 << 20) == written
    assert log.read(P, 7, 1) == written[6:7]
    size = len(frame_entries(P, written[6:10]))
    assert log.read(P, 7, size) == written[6:10]
    assert log.read(P, 7, size - 1) == written[6:9]
    assert log.read(P, 41, 1000) == ()


def test_entries_of_several_partitions_do_not_mix(log: NodeLog) -> None:
    log.open_partition(Q, REPLICA + 1)
    for position in range(1, 30):
        log.append_entries(P, (Entry(1, position, b"p%d" % position),))
        log.append_entries(Q, (Entry(7, position, b"q%d" % position),))
        if position % 4 == 0:
            flush(log)
    flush(log)
    assert log.read(Q, 1, 1 << 20) == tuple(Entry(7, position, b"q%d" % position) for position in range(1, 30))


def test_a_conflicting_tail_is_replaced(disk: SimulatedDisk, log: NodeLog) -> None:
    log.append_entries(P, entries(1, 10, epoch=1))
    flush(log)
    log.append_entries(P, entries(6, 2, epoch=3))
    flush(log)
    expected = entries(1, 5, epoch=1) + entries(6, 2, epoch=3)
    assert log.read(P, 1, 1 << 20) == expected
    disk.kill()
    again, recovered = open_log(disk)
    assert recovered.replicas[P].epochs == ((1, 1), (3, 6))
    assert again.read(P, 1, 1 << 20) == expected


def test_a_whole_log_may_be_replaced(disk: SimulatedDisk, log: NodeLog) -> None:
    log.append_entries(P, entries(1, 3, epoch=1))
    log.append_entries(P, entries(1, 1, epoch=2))
    flush(log)
    assert log.read(P, 1, 1 << 20) == entries(1, 1, epoch=2)
    disk.kill()
    assert open_log(disk)[1].replicas[P].epochs == ((2, 1),)


def test_a_hole_in_positions_is_refused(log: NodeLog) -> None:
    with pytest.raises(ValueError, match="hole"):
        log.append_entries(P, entries(2, 1))
    with pytest.raises(ValueError, match="hole"):
        log.append_entries(P, (Entry(1, 1, b""), Entry(1, 3, b"")))
    assert not log.pending()


def test_a_partition_must_be_opened(log: NodeLog) -> None:
    with pytest.raises(KeyError):
        log.append_entries(Q, entries(1, 1))
    with pytest.raises(KeyError):
        log.append_hard_state(Q, HardState(1, 1))
    with pytest.raises(KeyError):
        log.drop_partition(P, REPLICA + 1)


def test_a_dropped_partition_is_gone_and_may_come_back_as_another_replica(disk: SimulatedDisk, log: NodeLog) -> None:
    log.append_entries(P, entries(1, 3))
    log.drop_partition(P, REPLICA)
    flush(log)
    disk.kill()
    again, recovered = open_log(disk)
    assert recovered.replicas == {}
    again.open_partition(P, REPLICA + 7)
    flush(again)
    disk.kill()
    replica = open_log(disk)[1].replicas[P]
    assert (replica.replica, replica.last_position) == (REPLICA + 7, 0)


def test_a_snapshot_beyond_the_log_restarts_it(disk: SimulatedDisk, log: NodeLog) -> None:
    log.append_entries(P, entries(1, 3))
    log.append_snapshot(P, 2, 100)
    log.append_entries(P, entries(101, 2, epoch=2))
    flush(log)
    with pytest.raises(LogTrimmed):
        log.read(P, 100, 1000)
    disk.kill()
    again, recovered = open_log(disk)
    assert (recovered.replicas[P].first_position, recovered.replicas[P].last_position) == (101, 102)
    assert again.read(P, 101, 1000) == entries(101, 2, epoch=2)


def test_what_a_snapshot_covers_is_never_replaced(log: NodeLog) -> None:
    log.append_entries(P, entries(1, 3))
    log.append_snapshot(P, 1, 2)
    with pytest.raises(ValueError, match="snapshot"):
        log.append_entries(P, entries(2, 1, epoch=2))
    log.append_entries(P, entries(3, 1, epoch=2))
    flush(log)
    assert log.read(P, 1, 1 << 20) == entries(1, 2) + entries(3, 1, epoch=2)


def fill_segments(log: NodeLog, count: int) -> int:
    """Write until `count` segments are begun; returns the last position."""
    position = 0
    while log.size < (count + 1) * SEGMENT:
        log.append_entries(P, entries(position + 1, 5, size=1000))
        position += 5
        flush(log)
    return position


def test_each_segment_begins_with_the_state_of_every_partition(disk: SimulatedDisk, log: NodeLog) -> None:
    log.open_partition(Q, REPLICA + 1)
    log.append_membership(Q, 0, b"members")
    log.append_hard_state(Q, HardState(6, 3))
    log.append_snapshot(Q, 5, 50)
    last = fill_segments(log, 3)
    disk.kill()
    for number in (1, 2):
        disk.remove(segment_path(number))
    again, recovered = open_log(disk)
    assert recovered.incarnation == 2
    trimmed, idle = recovered.replicas[P], recovered.replicas[Q]
    assert (idle.replica, idle.memberships) == (REPLICA + 1, ((0, b"members"),))
    assert (idle.hard_state, idle.snapshot_epoch, idle.snapshot_position) == (HardState(6, 3), 5, 50)
    assert (trimmed.last_position, trimmed.first_position > 1) == (last, True)
    assert again.read(P, trimmed.first_position, 1 << 20)[-1].position == last


def test_a_log_of_many_segments_is_read_across_them(disk: SimulatedDisk, log: NodeLog) -> None:
    last = fill_segments(log, 5)
    assert log.read(P, 1, 1 << 30) == entries(1, last, size=1000)
    disk.kill()
    again, _ = open_log(disk)
    assert again.read(P, 1, 1 << 30) == entries(1, last, size=1000)


def test_a_large_backlog_is_cut_into_batches(disk: SimulatedDisk, log: NodeLog) -> None:
    log.append_entries(P, entries(1, 300, size=1000))
    batches = 0
    while log.pending():
        batch = log.take()
        log.write(batch)
        log.written(batch)
        batches += 1
    assert batches > 1
    disk.kill()
    assert open_log(disk)[0].read(P, 1, 1 << 30) == entries(1, 300, size=1000)


def test_a_flipped_bit_in_a_durable_batch_is_found_at_the_start(disk: SimulatedDisk, log: NodeLog) -> None:
    for position in range(1, 6):
        log.append_entries(P, entries(position, 1))
        flush(log)
    disk.kill()
    disk.flip_bit(segment_path(1), 5 * BLOCK + 70)
    for machine_crashed in (False, True):
        with pytest.raises(LogCorrupt) as caught:
            open_log(disk, machine_crashed=machine_crashed)
        assert (caught.value.segment, caught.value.offset) == (1, 5 * BLOCK)


def test_a_flipped_bit_in_a_header_is_found_if_anything_follows(disk: SimulatedDisk, log: NodeLog) -> None:
    for position in range(1, 6):
        log.append_entries(P, entries(position, 1))
        flush(log)
    disk.kill()
    disk.flip_bit(segment_path(1), 5 * BLOCK + 10)
    with pytest.raises(LogCorrupt):
        open_log(disk, machine_crashed=True)


def test_a_damaged_last_batch_is_a_torn_tail_only_after_a_crash_of_the_machine(
    disk: SimulatedDisk, log: NodeLog
) -> None:
    log.append_entries(P, entries(1, 1))
    flush(log)
    log.append_entries(P, entries(2, 1))
    flush(log)
    disk.kill()
    disk.flip_bit(segment_path(1), 4 * BLOCK + 70)
    with pytest.raises(LogCorrupt):
        open_log(disk, machine_crashed=False)
    _, recovered = open_log(disk, machine_crashed=True)
    assert recovered.torn is not None
    assert (recovered.torn.segment, recovered.torn.offset) == (1, 4 * BLOCK)
    assert recovered.replicas[P].last_position == 1


def test_a_batch_cut_short_by_a_kill_leaves_no_trace(disk: SimulatedDisk, log: NodeLog) -> None:
    log.append_entries(P, entries(1, 1))
    flush(log)
    log.append_entries(P, entries(2, 5, size=3000))
    batch = log.take()
    disk.fault = lambda operation, _: OSError(errno.EINTR, "killed") if operation == "write" else None
    with pytest.raises(LogBroken):
        log.write(batch)
    disk.kill()
    disk.fault = None
    again, recovered = open_log(disk)
    assert (recovered.torn, recovered.replicas[P].last_position) == (None, 1)
    again.append_entries(P, entries(2, 1))
    flush(again)
    disk.kill()
    assert open_log(disk)[1].replicas[P].last_position == 2


def test_full_segments_are_taken_in_by_their_summaries(disk: SimulatedDisk, log: NodeLog) -> None:
    last = fill_segments(log, 5)
    disk.kill()
    read: list[str] = []
    disk.fault = lambda operation, path: read.append(path) if operation == "read" else None
    again, recovered = open_log(disk)
    assert recovered.bytes_read == SEGMENT
    assert segment_path(2) in read
    disk.fault = None
    assert again.read(P, 1, 1 << 30) == entries(1, last, size=1000)
    disk.kill()
    assert open_log(disk, machine_crashed=True)[1].bytes_read == 5 * SEGMENT


@pytest.mark.parametrize("harm", ["missing", "flipped", "cut", "another's"])
def test_a_segment_without_a_good_summary_is_read(disk: SimulatedDisk, log: NodeLog, harm: str) -> None:
    last = fill_segments(log, 4)
    disk.kill()
    summary = f"log/{2:016x}.summary"
    file = disk.open(summary)
    if harm == "missing":
        disk.remove(summary)
    elif harm == "flipped":
        disk.flip_bit(summary, file.size() - 1)
    elif harm == "cut":
        file.truncate(file.size() - 8)
    else:
        disk.rename(f"log/{1:016x}.summary", summary)
    again, recovered = open_log(disk)
    assert recovered.bytes_read == (3 if harm == "another's" else 2) * SEGMENT
    assert again.read(P, 1, 1 << 30) == entries(1, last, size=1000)


def test_a_missing_segment_is_corruption(disk: SimulatedDisk, log: NodeLog) -> None:
    fill_segments(log, 4)
    disk.kill()
    disk.remove(segment_path(2))
    with pytest.raises(LogCorrupt):
        open_log(disk)


def test_a_sealed_segment_that_lost_its_end_is_corruption(disk: SimulatedDisk, log: NodeLog) -> None:
    fill_segments(log, 3)
    disk.kill()
    file = disk.open(segment_path(2))
    for offset in range(2 * BLOCK, SEGMENT, BLOCK):
        file.write_at(offset, bytes(BLOCK))
    with pytest.raises(LogCorrupt):
        open_log(disk, machine_crashed=True)


def test_damage_on_the_disk_is_found_when_an_old_entry_is_read(disk: SimulatedDisk, log: NodeLog) -> None:
    log.append_entries(P, entries(1, 1))
    flush(log)
    disk.flip_bit(segment_path(1), 3 * BLOCK + 80)
    with pytest.raises(LogCorrupt):
        log.read(P, 1, 1000)


def write_until_full(log: NodeLog) -> tuple[int, Batch]:
    """The last position appended, and the batch with it, which found no room."""
    for position in range(5, 10_000, 5):
        log.append_entries(P, entries(position - 4, 5, size=1000))
        batch = log.take()
        try:
            log.write(batch)
        except LogFull:
            return position, batch
        log.written(batch)
    raise AssertionError("the disk never filled up")


def test_a_full_disk_refuses_the_batch_and_takes_it_later(disk: SimulatedDisk) -> None:
    disk.capacity = 3 * SEGMENT
    log, _ = open_log(disk, reserve=2)
    log.open_partition(P, REPLICA)
    position, batch = write_until_full(log)
    assert log.low_on_space
    with pytest.raises(LogFull):
        log.write(batch)
    assert log.read(P, 1, 1 << 20) == entries(1, position - 5, size=1000)
    disk.capacity = 10 * SEGMENT
    log.write(batch)
    log.written(batch)
    assert not log.low_on_space
    disk.kill()
    assert open_log(disk)[0].read(P, 1, 1 << 20) == entries(1, position, size=1000)


def test_the_reserve_is_missed_before_it_is_needed_and_can_be_filled_again(disk: SimulatedDisk) -> None:
    disk.capacity = 3 * SEGMENT + SMALL_FILES
    log, _ = open_log(disk, reserve=2)
    log.open_partition(P, REPLICA)
    assert not log.low_on_space
    position = 0
    while not log.low_on_space:
        log.append_entries(P, entries(position + 1, 5, size=1000))
        position += 5
        flush(log)
    log.fill_reserve()
    assert log.low_on_space
    log.append_hard_state(P, HardState(9, 9))
    flush(log)
    disk.capacity = 4 * SEGMENT + SMALL_FILES
    log.fill_reserve()
    assert not log.low_on_space


@pytest.mark.parametrize("seed", range(10))
def test_a_segment_begun_on_a_full_disk_survives_a_power_cut(disk: SimulatedDisk, seed: int) -> None:
    disk.capacity = 3 * SEGMENT
    log, _ = open_log(disk, reserve=2)
    log.open_partition(P, REPLICA)
    position, _ = write_until_full(log)
    disk.crash(Random(seed))
    _, recovered = open_log(disk, machine_crashed=True, reserve=2)
    assert recovered.replicas[P].last_position == position - 5


def fail(disk: SimulatedDisk, operation: str, path: str) -> None:
    """From now on an operation on a path ends in the middle."""
    disk.fault = lambda asked, on: OSError(errno.EINTR, "failed") if (asked, on) == (operation, path) else None


def write_until_broken(log: NodeLog, position: int) -> None:
    """Write entries after `position` until the log breaks."""
    with pytest.raises(LogBroken):  # noqa: PT012
        for first in range(position + 1, position + 1000, 5):
            log.append_entries(P, entries(first, 5, size=4000))
            flush(log)


def test_a_segment_torn_at_its_start_begins_anew() -> None:
    torn = 0
    for seed in range(40):
        disk = SimulatedDisk()
        log, _ = open_log(disk)
        log.open_partition(P, REPLICA)
        flush(log)
        # With some of these numbers the first segment ends with room for the record that counts a start.
        for _ in range(seed % 4):
            log.append_hard_state(P, HardState(1, 1))
            flush(log)
        fail(disk, "sync", segment_path(2))
        # One partition's checkpoint fits into a sector; with more, a power cut can leave a header without its body.
        for partition in range(100, 120):
            log.open_partition(partition, REPLICA)
        write_until_broken(log, 0)
        disk.fault = None
        disk.crash(Random(seed))
        log, recovered = open_log(disk, machine_crashed=True)
        torn += recovered.torn == Torn(2, 0) and not disk.exists(segment_path(2))
        fail(disk, "write", segment_path(2))
        last = recovered.replicas[P].last_position
        write_until_broken(log, last)
        disk.fault = None
        disk.kill()
        _, recovered = open_log(disk)
        assert recovered.replicas[P].last_position >= last
    assert torn > 0


@pytest.mark.parametrize("operation", ["write", "sync"])
def test_after_a_failed_write_or_sync_the_log_never_writes_again(
    disk: SimulatedDisk, log: NodeLog, operation: str
) -> None:
    log.append_entries(P, entries(1, 1))
    batch = log.take()
    disk.fault = lambda asked, _: OSError(errno.EIO, "bad sector") if asked == operation else None
    with pytest.raises(LogBroken):
        log.write(batch)
    disk.fault = None
    with pytest.raises(LogBroken):
        log.write(batch)


def test_a_sync_that_fails_for_lack_of_room_breaks_the_log_too(disk: SimulatedDisk, log: NodeLog) -> None:
    log.append_entries(P, entries(1, 1))
    batch = log.take()
    disk.fault = lambda asked, _: OSError(errno.ENOSPC, "no space") if asked == "sync" else None
    with pytest.raises(LogBroken):
        log.write(batch)


def test_a_tail_that_a_failed_sync_left_behind_is_made_durable_at_the_start(disk: SimulatedDisk, log: NodeLog) -> None:
    log.append_entries(P, entries(1, 1))
    batch = log.take()
    disk.fault = lambda asked, _: OSError(errno.EIO, "bad sector") if asked == "sync" else None
    with pytest.raises(LogBroken):
        log.write(batch)
    disk.fault = None
    disk.kill()
    _, recovered = open_log(disk)
    assert recovered.replicas[P].last_position == 1
    disk.crash(Random(5))
    _, recovered = open_log(disk, machine_crashed=True)
    assert recovered.replicas[P].last_position == 1


def test_the_log_works_on_a_real_file_system(tmp_path: Path) -> None:
    disk, folder = LocalDisk(), str(tmp_path / "log")
    log, _ = NodeLog.open(disk, folder, machine_crashed=False, segment_bytes=SEGMENT)
    log.open_partition(P, REPLICA)
    last = fill_segments(log, 3)
    log.close()
    again, recovered = NodeLog.open(disk, folder, machine_crashed=False, segment_bytes=SEGMENT)
    assert recovered.replicas[P].last_position == last
    assert again.read(P, 1, 1 << 20) == entries(1, last, size=1000)
    again.close()


def test_memberships_of_before_and_of_now_come_back() -> None:
    """The older record stands for what the partition began with; entries hold the rest, and take it with them."""
    index = Index()
    entries = [Entry(1, 1, b"a"), Entry(1, 2, b"second", MEMBERSHIP_ENTRY), Entry(1, 3, b"third", MEMBERSHIP_ENTRY)]
    body = (
        frame_record(records.PARTITION_OPENED, P, REPLICA, 0)
        + frame_record(records.MEMBERSHIP, P, REPLICA, 1, b"first")
        + frame_entries(P, entries)
        + frame_entries(P, [Entry(2, 3, b"b")])
    )
    index.replay(body, 0, len(body), 1)
    assert index.replicas[P].positions.memberships == [(0, b"first"), (2, b"second")]
    again = Index()
    checkpoint = index.checkpoint()
    again.replay(checkpoint, 0, len(checkpoint), 2)
    assert again.replicas[P].positions.memberships == [(0, b"first"), (2, b"second")]
