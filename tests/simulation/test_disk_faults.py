"""Disks that decay, fill up, fail and stall, in virtual time: each ends repaired, or with a sentence."""

from __future__ import annotations

import asyncio
import errno
from typing import Any

import pytest

from storagenode.log.errors import LogBroken
from tests.simulation.snapshot_cluster import SnapshotCluster, run
from tests.simulation.test_scrub import damage_snapshots, numbers
from tests.simulation.test_snapshots import follower, installed, leader, replica

BIG: dict[str, Any] = {"log_segment_bytes": 64 << 10, "log_bytes_max": 64 << 20, "snapshot_log_bytes": 64 << 20}
"""A log that keeps all that these tests write."""


def segments(made: SnapshotCluster, name: str) -> tuple[int, int]:
    """The oldest and the current segment of a node's log."""
    node = made.node(name).node
    assert node is not None
    return node.log.oldest_segment, node.log.current_segment


def rot(made: SnapshotCluster, name: str, segment: int) -> None:
    """Flip a bit in the middle of a batch of this segment, deep in its records."""
    made.node(name).disk.flip_bit(f"data/log/{segment:016x}.segment", 30_000)


def test_a_follower_that_needs_a_damaged_segment_of_the_leaders_log_gets_a_snapshot() -> None:
    async def story(made: SnapshotCluster) -> None:
        await made.start()
        await made.write(20)
        await made.settle()
        away = follower(made)
        await made.node(away).crash()
        await made.write(400)
        others = [member.name for member in made.cluster.nodes if member.name != away]
        for name in others:  # so that what they send comes from their logs
            await made.node(name).crash()
        for name in others:
            made.node(name).start()
        await made.write(1)
        for name in others:
            oldest, current = segments(made, name)
            assert oldest + 2 < current
            rot(made, name, oldest + 1)
        made.node(away).start()
        await made.settle(60.0)
        assert installed(made, away) == 1
        assert segments(made, leader(made))[0] > oldest + 1
        made.check()
        await made.check_items()

    run(11, story, in_memory=True, **BIG)


def test_the_scrub_finds_a_damaged_segment_that_nobody_reads() -> None:
    async def story(made: SnapshotCluster) -> None:
        await made.start()
        await made.write(300)
        await made.settle()
        victim = follower(made)
        oldest, current = segments(made, victim)
        assert oldest + 2 < current
        rot(made, victim, oldest + 1)
        assert await made.cluster.until(lambda: segments(made, victim)[0] > oldest + 1, 30.0)
        # What was damaged stands in a snapshot: even a machine that loses its power starts from there.
        await made.node(victim).crash(power_lost=True)
        made.node(victim).start()
        await made.write(20)
        await made.settle()
        made.check()

    run(12, story, in_memory=True, scrub_interval=2.0, **BIG)


def test_a_replica_whose_own_log_is_damaged_where_it_goes_on_is_brought_back() -> None:
    async def story(made: SnapshotCluster) -> None:
        await made.start()
        await made.write(300)
        await made.settle()
        victim = follower(made)
        oldest, _ = segments(made, victim)
        # Its rows are made anew from the log, which turns out to be damaged half way.
        node = made.node(victim).node
        assert node is not None
        rot(made, victim, oldest + 1)
        node.damaged(replica(made, victim), "somebody says so", hidden=True)
        assert await made.cluster.until(lambda: numbers(made, victim)[3] == 2 and installed(made, victim) == 1, 60.0)
        await made.write(20)
        await made.settle()
        made.check()

    run(13, story, in_memory=True, **BIG)


def test_a_node_waits_for_room_when_it_starts_on_a_full_disk() -> None:
    async def story(made: SnapshotCluster) -> None:
        await made.start()
        await made.write(60)
        await made.settle()
        victim = follower(made)
        member = made.node(victim)
        await member.crash(power_lost=True)
        member.disk.capacity = 0
        member.start()
        await made.write(60)
        await asyncio.sleep(5.0)
        assert not hasattr(member.node, "replicas")
        assert not made.cluster.failures
        member.disk.capacity = None
        await made.settle()
        made.check()
        await made.check_items()

    run(14, story, in_memory=True)


def test_a_leader_whose_disk_stalls_lets_another_lead_and_comes_back() -> None:
    async def story(made: SnapshotCluster) -> None:
        await made.start()
        await made.write(20)
        await made.settle()
        victim = leader(made)
        log_executor = made.node(victim).executors[0]
        usual, log_executor.slowest = log_executor.slowest, 20.0
        began = asyncio.get_running_loop().time()
        await made.write(20)
        assert asyncio.get_running_loop().time() - began < 10.0
        assert leader(made) != victim
        log_executor.slowest = usual
        await made.settle(60.0)
        made.check()
        await made.check_items()

    run(15, story, in_memory=True)


def test_a_follower_whose_disk_stalls_delays_nobody_else() -> None:
    async def story(made: SnapshotCluster) -> None:
        await made.start()
        await made.write(20)
        await made.settle()
        victim, leads = follower(made), leader(made)
        log_executor = made.node(victim).executors[0]
        usual, log_executor.slowest = log_executor.slowest, 20.0
        loop = asyncio.get_running_loop()
        slowest = 0.0
        for _ in range(30):
            began = loop.time()
            assert await made.put(40)
            slowest = max(slowest, loop.time() - began)
        assert slowest < 0.2
        assert leader(made) == leads
        log_executor.slowest = usual
        await made.settle(60.0)
        made.check()

    run(18, story, in_memory=True)


@pytest.mark.parametrize("operation", ["sync", "write"])
def test_a_node_whose_log_fails_stops_and_acknowledges_nothing_after_that(operation: str) -> None:
    async def story(made: SnapshotCluster) -> None:
        await made.start()
        await made.write(20)
        await made.settle()
        victim = leader(made)
        before = replica(made, victim).replica.commit

        def fault(found: str, path: str) -> OSError | None:
            return OSError(errno.EIO, "input/output error") if found == operation and "/log/" in path else None

        made.node(victim).disk.fault = fault
        await made.write(20)
        assert leader(made) != victim
        assert all(LogBroken.__name__ in failure for failure in made.cluster.failures)
        assert made.cluster.failures
        made.cluster.failures.clear()
        assert replica(made, leader(made)).replica.commit > before
        await made.node(victim).crash()
        made.node(victim).start()
        await made.settle()
        made.check()
        await made.check_items()

    run(16, story, in_memory=True)


def test_a_damaged_snapshot_is_none_after_a_power_cut() -> None:
    async def story(made: SnapshotCluster) -> None:
        await made.start()
        await made.write(300)
        await made.rest()
        await made.settle()
        victim = follower(made)
        assert replica(made, victim).replica.first_position > 1
        damage_snapshots(made, victim)
        await made.node(victim).crash(power_lost=True)
        made.node(victim).start()
        await made.settle()
        made.check()

    run(17, story, in_memory=True)


def test_a_log_beyond_its_bound_is_trimmed_soon_after_snapshots_can_be_written_again() -> None:
    """Growing writes are refused until then."""

    async def story(made: SnapshotCluster) -> None:
        await made.start()
        name = leader(made)
        member = made.node(name)

        def fault(operation: str, path: str) -> OSError | None:
            refused = operation == "write" and "snapshots" in path
            return OSError(errno.ENOSPC, "no room for snapshots") if refused else None

        member.disk.fault = fault
        assert member.node is not None
        for _ in range(40):
            if member.node.short_of_space:
                break
            await made.write(50)
        assert member.node.short_of_space
        assert leader(made) == name
        member.disk.fault = None
        assert await made.cluster.until(lambda: member.node is not None and not member.node.short_of_space, 5.0)
        assert await made.put(40)
        await made.settle()
        made.check()
        await made.check_items()

    run(19, story, expected_errors=("no snapshot of partition",))
