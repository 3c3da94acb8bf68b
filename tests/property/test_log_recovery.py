"""The node's log under random use and random crashes: every flushed record comes back, and nothing is invented."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field, replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cluster.disk import Disk
from replication.effects import HardState
from replication.messages import MEMBERSHIP as MEMBERSHIP_ENTRY
from replication.messages import Entry
from storagenode.log import LogBroken, LogCorrupt, NodeLog, Recovered
from storagenode.log.batch import Batch, Put
from storagenode.log.frames import FRAME_HEADER_BYTES, align, parse_frame_header
from storagenode.log.records import (
    HARD_STATE,
    MEMBERSHIP_AT,
    PARTITION_DROPPED,
    PARTITION_OPENED,
    RESTARTED,
    SNAPSHOT,
)
from tests.simulation.simulated_disk import SimulatedDisk

SEGMENT = 32 * 1024
LARGE_EVERY = 31
"""Entries at such positions fit into no usual segment."""
PARTITIONS = (1, 2, 3)

seeds = st.integers(0, 2**64 - 1)


@dataclass
class Twin:
    """One replica as its records say, in the plainest form."""

    replica: int
    entries: dict[int, Entry] = field(default_factory=dict)
    hard_state: HardState = field(default_factory=lambda: HardState(0, 0))
    memberships: list[tuple[int, bytes]] = field(default_factory=list)
    snapshot: tuple[int, int] = (0, 0)

    def void_memberships(self, position: int) -> None:
        """What was in force from there on."""
        self.memberships = [each for each in self.memberships if each[0] < position]


def twins_of(puts: list[Put]) -> dict[int, Twin]:
    """What a log must hold that took these records in this order."""
    twins: dict[int, Twin] = {}
    for put in puts:
        if len(put) == 2:
            partition, entries = put
            held = twins[partition].entries
            for entry in entries:
                for position in [position for position in held if position >= entry.position]:
                    del held[position]
                held[entry.position] = entry
                twins[partition].void_memberships(entry.position)
                if entry.kind == MEMBERSHIP_ENTRY:
                    twins[partition].memberships.append((entry.position, entry.payload))
            continue
        record_type, partition, a, b, payload = put
        if record_type == PARTITION_OPENED:
            twins[partition] = Twin(a)
        elif record_type == PARTITION_DROPPED:
            del twins[partition]
        elif record_type == HARD_STATE:
            twins[partition].hard_state = HardState(a, b)
        elif record_type == MEMBERSHIP_AT:
            twins[partition].void_memberships(b)
            twins[partition].memberships.append((b, payload))
        elif record_type == SNAPSHOT:
            twins[partition].snapshot = (a, b)
            if all(position < b for position in twins[partition].entries):
                twins[partition].entries.clear()
        elif record_type == RESTARTED:
            twins[partition].snapshot = (a, b)
            twins[partition].entries.clear()
            twins[partition].void_memberships(b + 1)
    return twins


def agree(found: dict[int, Twin], expected: dict[int, Twin]) -> bool:
    """Whether a log that may have been trimmed holds what it must: all that no snapshot covers, and nothing wrong."""

    def needed(twins: dict[int, Twin]) -> dict[int, Twin]:
        return {
            partition: replace(
                twin,
                entries={at: entry for at, entry in twin.entries.items() if at > twin.snapshot[1]},
                memberships=[each for each in twin.memberships if each[0] <= twin.snapshot[1]][-1:]
                + [each for each in twin.memberships if each[0] > twin.snapshot[1]],
            )
            for partition, twin in twins.items()
        }

    return needed(found) == needed(expected) and all(
        twin.entries.items() <= expected[partition].entries.items() for partition, twin in found.items()
    )


def twins_in(log: NodeLog, recovered: Recovered) -> dict[int, Twin]:
    """What a log holds, entries read back from the disk."""
    twins = {}
    for partition, replica in recovered.replicas.items():
        entries = log.read(partition, replica.first_position, 1 << 30)
        assert len(entries) == replica.last_position - replica.first_position + 1
        spans = [*replica.epochs, (0, replica.last_position + 1)]
        for (epoch, first), (_, after) in pairwise(spans):
            assert {entry.epoch for entry in entries if first <= entry.position < after} == {epoch}
        twins[partition] = Twin(
            replica.replica,
            {entry.position: entry for entry in entries},
            replica.hard_state,
            list(replica.memberships),
            (replica.snapshot_epoch, replica.snapshot_position),
        )
    return twins


class User:
    """Uses a log at random and knows what must be in it."""

    def __init__(self, random: Random, disk: SimulatedDisk) -> None:
        self.random = random
        self.disk = disk
        self.written: list[Put] = []
        self.replica = 100
        self.open(machine_crashed=True)

    def open(self, *, machine_crashed: bool) -> Recovered:
        self.log, recovered = open_log(self.disk, machine_crashed=machine_crashed)
        self.last = {partition: replica.last_position for partition, replica in recovered.replicas.items()}
        self.snapshot = {partition: replica.snapshot_position for partition, replica in recovered.replicas.items()}
        self.replica_of = {partition: replica.replica for partition, replica in recovered.replicas.items()}
        self.epoch = max([1, *(replica.hard_state.epoch for replica in recovered.replicas.values())])
        return recovered

    def append(self) -> None:
        """Hand over something that may follow."""
        partition = self.random.choice(PARTITIONS)
        if partition not in self.last:
            self.replica += 1
            self.replica_of[partition] = self.replica
            self.log.open_partition(partition, self.replica)
            self.last[partition] = self.snapshot[partition] = 0
        action = self.random.choices(
            ("entries", "vote", "members", "snapshot", "restart", "drop"), (20, 4, 2, 2, 1, 1)
        )[0]
        if action == "entries":
            self._append_entries(partition)
        elif action == "vote":
            self.epoch += 1
            self.log.append_hard_state(partition, HardState(self.epoch, self.random.randrange(9)))
        elif action == "members":
            self.log.append_membership(partition, self.last[partition], self.random.randbytes(30))
        elif action == "snapshot":
            lowest = self.snapshot.get(partition, 0)
            position = max(lowest, self.last[partition] + self.random.randint(-3, 2))
            self.snapshot[partition] = position
            self.log.append_snapshot(partition, self.epoch, position)
            self.last[partition] = max(self.last[partition], position)
        elif action == "restart":
            lowest = self.snapshot.get(partition, 0)
            self.last[partition] = self.snapshot[partition] = lowest + self.random.randint(0, 9)
            self.log.restart_partition(partition, self.epoch, self.last[partition])
        else:
            self.log.drop_partition(partition, self.replica_of[partition])
            del self.last[partition]

    def _entry(self, position: int, size: int) -> Entry:
        if self.random.random() < 0.03:
            return Entry(self.epoch, position, self.random.randbytes(30), MEMBERSHIP_ENTRY)
        if position % LARGE_EVERY == 0:
            size = 2 * SEGMENT
        return Entry(self.epoch, position, self.random.randbytes(size), position % 2)

    def _append_entries(self, partition: int) -> None:
        last = self.last[partition]
        lowest = max(self.snapshot.get(partition, 0) + 1, last - 5)
        first = last + 1 if self.random.random() < 0.9 else self.random.randint(lowest, last + 1)
        count = self.random.randint(1, 5)
        size = self.random.choice((0, 10, 300, 3000))
        self.log.append_entries(
            partition,
            tuple(self._entry(first + n, size) for n in range(count)),
        )
        self.last[partition] = first + count - 1

    def flush(self) -> None:
        while self.log.pending():
            batch = self.log.take()
            self.log.write(batch)
            self.written += batch.puts
            self.log.written(batch)

    def trim(self) -> None:
        """Forget some of what snapshots cover; the files may go later, or never."""
        needed = [
            self.log.segment_needed(partition, self.log.snapshot_position(partition) + 1) or self.log.current_segment
            for partition in self.log.partitions()
        ]
        oldest = min(needed, default=self.log.current_segment)
        self.log.forget_before(self.random.randint(self.log.oldest_segment, max(oldest, self.log.oldest_segment)))
        if self.random.random() < 0.8:
            self.log.recycle()

    def fail_to_flush(self) -> list[Put]:
        """Start a flush that some write or sync ends; returns the records that may or may not have got there."""
        left = self.random.randint(1, 7)
        number = self.random.choice((errno.EIO, errno.EINTR))

        def fault(operation: str, _: str) -> OSError | None:
            nonlocal left
            left -= operation in ("write", "sync")
            return OSError(number, "cut") if left == 0 else None

        self.disk.fault = fault
        batch = Batch()
        try:
            while self.log.pending():
                batch = self.log.take()
                self.log.write(batch)
                self.written += batch.puts
                self.log.written(batch)
                batch = Batch()
        except LogBroken:
            pass
        self.disk.fault = None
        return batch.puts


def open_log(disk: Disk, *, machine_crashed: bool) -> tuple[NodeLog, Recovered]:
    return NodeLog.open(disk, "log", machine_crashed=machine_crashed, segment_bytes=SEGMENT)


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_every_flushed_record_comes_back_and_nothing_else(seed: int) -> None:
    use_and_crash(seed, trims=False)


@settings(max_examples=100, deadline=None)
@given(seeds)
@example(3164)  # a membership came back whose entry was replaced, as only the checkpoint still knew of it
def test_a_trimmed_log_forgets_nothing_but_what_snapshots_cover(seed: int) -> None:
    use_and_crash(seed, trims=True)


def use_and_crash(seed: int, *, trims: bool) -> None:
    random = Random(seed)
    user = User(random, SimulatedDisk())
    for start in range(2, 10):
        for _ in range(random.randint(0, 40)):
            user.append()
            if random.random() < 0.3:
                user.flush()
            if trims and random.random() < 0.1:
                user.trim()
        in_flight = user.fail_to_flush() if random.random() < 0.7 else []
        machine_crashed = random.random() < 0.5
        if machine_crashed:
            user.disk.crash(random)
        else:
            user.disk.kill()
        recovered = user.open(machine_crashed=machine_crashed)
        found = twins_in(user.log, recovered)
        assert recovered.incarnation == start
        holds = agree if trims else dict.__eq__
        if not holds(found, twins_of(user.written)):
            assert holds(found, twins_of(user.written + in_flight))
            user.written += in_flight


def use_log(random: Random) -> tuple[SimulatedDisk, dict[int, Twin]]:
    """The disk of a node that was killed with all flushed, and what its log holds."""
    user = User(random, SimulatedDisk())
    for _ in range(random.randint(2, 60)):
        user.append()
        user.flush()
    user.disk.kill()
    return user.disk, twins_of(user.written)


def frames_on(disk: SimulatedDisk) -> list[tuple[str, int, int]]:
    """(path, offset, length) of every frame, in order."""
    found = []
    for name in disk.list("log"):
        if name.endswith(".segment"):
            path, number = f"log/{name}", int(name.split(".")[0], 16)
            file = disk.open(path)
            data, offset = file.read_at(0, file.size()), 0
            while (header := parse_frame_header(data, offset, number)) is not None:
                found.append((path, offset, header.size))
                offset = align(offset + header.size)
    return found


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_after_a_crash_of_the_machine_a_flipped_bit_in_any_frame_but_the_last_is_found(seed: int) -> None:
    random = Random(seed)
    disk, _ = use_log(random)
    path, offset, length = random.choice(frames_on(disk)[:-1])
    disk.flip_bit(path, offset + random.randrange(length), random.randrange(8))
    with pytest.raises(LogCorrupt) as caught:
        open_log(disk, machine_crashed=True)
    damaged = int(path[4:20], 16)
    # A segment that lost its last frame is noticed when the next one's first does not follow.
    assert caught.value.segment in (damaged, damaged + 1)


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_after_a_kill_a_flipped_bit_in_any_frame_but_the_last_is_found_or_harmless(seed: int) -> None:
    random = Random(seed)
    disk, expected = use_log(random)
    path, offset, length = random.choice(frames_on(disk)[:-1])
    disk.flip_bit(path, offset + random.randrange(length), random.randrange(8))
    try:
        # What a summary knows, such as an old vote, is not read again.
        log, recovered = open_log(disk, machine_crashed=False)
        found = twins_in(log, recovered)
    except LogCorrupt:
        return
    assert found == expected


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_a_flipped_bit_in_the_last_frame_loses_at_most_that_frame(seed: int) -> None:
    random = Random(seed)
    disk = SimulatedDisk()
    user = User(random, disk)
    for _ in range(random.randint(2, 10)):
        user.append()
        user.flush()
    before = list(user.written)
    user.append()
    user.flush()
    disk.kill()
    path, offset, length = frames_on(disk)[-1]
    flipped = random.randrange(length)
    disk.flip_bit(path, offset + flipped, random.randrange(8))
    try:
        log, recovered = open_log(disk, machine_crashed=False)
    except LogCorrupt:
        return
    assert flipped < FRAME_HEADER_BYTES, "damage to a body must be found"
    assert twins_in(log, recovered) == twins_of(before)
