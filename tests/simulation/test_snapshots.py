"""Snapshots and rebuilding, in virtual time on simulated disks: what bounds the log, and what brings replicas back."""

from __future__ import annotations

import asyncio
from random import Random

import orjson
import pytest

from router.gateway import Answer, Received
from storagenode.hosted import HostedReplica
from storagenode.snapshots.source import IDLE_SECONDS
from tests.simulation.snapshot_cluster import SnapshotCluster, run

MANY = 400
"""Writes that fill many segments: each entry is over 2 KB."""
KEPT_SECONDS = 4.0


def log_size(made: SnapshotCluster, name: str) -> int:
    node = made.node(name).node
    assert node is not None
    return node.log.size


def leader(made: SnapshotCluster) -> str:
    return next(
        member.name
        for member in made.cluster.nodes
        if any(hosted.replica.role == "leader" for hosted in made.hosted(member.name))
    )


def follower(made: SnapshotCluster) -> str:
    return next(member.name for member in made.cluster.nodes if member.name != leader(made))


def installed(made: SnapshotCluster, name: str) -> int:
    node = made.node(name).node
    assert node is not None
    return node.installer.installed


def replica(made: SnapshotCluster, name: str) -> HostedReplica:
    return made.hosted(name)[0]


@pytest.mark.parametrize("in_memory", [False, True])
def test_a_follower_that_was_away_for_long_is_rebuilt_from_a_snapshot(in_memory: bool) -> None:
    async def story(made: SnapshotCluster) -> None:
        await made.start()
        await made.write(50)
        away = follower(made)
        last = replica(made, away).replica.last_position
        await made.node(away).crash()
        await made.write(2 * MANY)
        assert replica(made, leader(made)).replica.first_position > last + 1
        made.node(away).start()
        await made.settle()
        assert installed(made, away) == 1
        assert replica(made, away).replica.first_position > last + 1
        await made.write(50)
        await made.settle()
        made.check()
        await made.check_items()

    run(1, story, in_memory=in_memory)


def test_a_follower_that_was_away_for_a_moment_catches_up_from_the_log() -> None:
    async def story(made: SnapshotCluster) -> None:
        await made.start()
        await made.write(50)
        away = follower(made)
        await made.node(away).crash()
        await made.write(MANY // 2)
        made.node(away).start()
        await made.settle()
        assert installed(made, away) == 0
        made.check()

    run(2, story)


def test_after_a_power_cut_the_state_comes_from_the_own_snapshot_and_log() -> None:
    async def story(made: SnapshotCluster) -> None:
        await made.start()
        await made.write(MANY)
        await made.rest()
        away = follower(made)
        first = replica(made, away).replica.first_position
        assert first > 1
        await made.node(away).crash(power_lost=True)
        made.node(away)._forget_stores()
        made.node(away).start()
        await made.settle()
        assert installed(made, away) == 0
        made.check()
        await made.check_items()

    run(3, story)


def test_when_all_lose_power_at_once_nothing_acknowledged_is_missing() -> None:
    async def story(made: SnapshotCluster) -> None:
        await made.start()
        await made.write(MANY)
        await made.rest()
        for member in made.cluster.nodes:
            await member.crash(power_lost=True)
            member._forget_stores()
        made.cluster.start()
        await made.settle()
        made.check()
        await made.check_items()
        assert all(installed(made, member.name) == 0 for member in made.cluster.nodes)

    run(4, story)


def test_a_damaged_snapshot_is_found_and_the_state_comes_from_the_leader() -> None:
    async def story(made: SnapshotCluster) -> None:
        await made.start()
        await made.write(MANY)
        await made.rest()
        away = follower(made)
        member = made.node(away)
        await member.crash(power_lost=True)
        member._forget_stores()
        (name,) = [name for name in member.disk.list("data/snapshots") if name.endswith(".data")]
        member.disk.flip_bit(f"data/snapshots/{name}", 5000, 3)
        member.start()
        assert await made.cluster.until(lambda: member.node is not None and bool(member.node.address), 5.0)
        await made.settle()
        assert installed(made, away) == 1
        made.check()
        await made.check_items()

    run(5, story, expected_errors=("is of no use", "has lost its state"))


def test_a_snapshot_that_a_follower_has_fetched_keeps_the_log_no_longer() -> None:
    """Nobody asks the node for another one, and the log is trimmed all the same."""

    async def story(made: SnapshotCluster) -> None:
        await made.start()
        await made.write(50)
        away = follower(made)
        await made.node(away).crash()
        await made.write(2 * MANY)
        made.node(away).start()
        await made.settle()
        node = made.node(leader(made)).node
        assert node is not None
        assert node.snapshots.sending
        await asyncio.sleep(IDLE_SECONDS)
        await made.rest()
        assert not node.snapshots.sending

    run(16, story)


def test_while_a_state_is_made_of_the_log_because_its_snapshot_is_damaged_the_log_stays() -> None:
    """The log says that the snapshot covers its beginning, and there is no snapshot any more."""

    async def story(made: SnapshotCluster) -> None:
        await made.start()
        await made.write(MANY // 4)
        away = follower(made)
        member = made.node(away)
        node = member.node
        assert node is not None
        assert await made.cluster.until(lambda: node.snapshots.taken > 0, 10.0)
        assert replica(made, away).replica.first_position == 1
        await member.crash(power_lost=True)
        member._forget_stores()
        for name in member.disk.list("data/snapshots"):
            if name.endswith(".data"):
                member.disk.flip_bit(f"data/snapshots/{name}", 5000, 3)
        for other in made.cluster.nodes:
            if other is not member:
                made.cluster.network.cut(away, other.name)
        member.start()  # and nobody tells it what is committed
        assert await made.cluster.until(lambda: member.node is not None and bool(member.node.address), 5.0)
        assert replica(made, away).replica.applied == 0
        await asyncio.sleep(KEPT_SECONDS)
        await made.rest()
        assert replica(made, away).replica.first_position == 1
        made.cluster.network.mend()
        await made.settle()
        assert installed(made, away) == 0
        made.check()
        await made.check_items()

    run(15, story, log_keep_seconds=KEPT_SECONDS, expected_errors=("is of no use",))


def test_the_log_stays_within_its_bound_though_idle_partitions_pin_it() -> None:
    bound = 2 << 20

    async def story(made: SnapshotCluster) -> None:
        await made.start(("items", *(f"idle-{number}" for number in range(9))))
        for round_ in range(6):
            await made.write(MANY // 2, keys=5)
            for member in made.cluster.nodes:
                assert log_size(made, member.name) <= bound, f"round {round_}"
        assert len(made.hosted("node-a")) == 30
        for member in made.cluster.nodes:
            assert member.node is not None
            assert member.node.log.oldest_segment > 1
        await made.settle()
        made.check()

    # Alone, the one that is written would never be larger than its own log: only the bound asks for snapshots.
    run(6, story, partitions=3, snapshot_log_bytes=1 << 30, log_bytes_max=bound)


def test_a_file_that_is_mostly_empty_is_replaced_by_its_compact_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storagenode.snapshots.keeper.COMPACT_BYTES", 64 << 10)

    async def story(made: SnapshotCluster) -> None:
        await made.start()
        await made.write(MANY, keys=MANY)
        for number in range(MANY - 20):
            await made.client.call("DeleteItem", {"TableName": "items", "Key": {"id": {"S": f"key-{number + 1}"}}})
            made.acknowledged.pop(f"key-{number + 1}", None)
        await made.write(MANY // 2, keys=5)
        await made.rest()
        await made.settle()
        for member in made.cluster.nodes:
            assert member.node is not None
            assert member.node.snapshots.compacted >= 1
            space = replica(made, member.name).store.space()
            assert space.file <= max(2 * space.live, space.live + (64 << 10))
        made.check()
        await made.check_items()
        # It is the file in use: what is written into it is there after a restart.
        for member in made.cluster.nodes:
            await member.crash()
        made.cluster.start()
        await made.settle()
        made.check()
        await made.check_items()

    run(7, story)


def test_a_retry_whose_answer_was_trimmed_is_told_so_and_not_done_again() -> None:
    async def put(made: SnapshotCluster, value: str, invocation: str) -> Answer:
        headers = {
            b"x-amz-target": b"DynamoDB_20120810.PutItem",
            b"amz-sdk-invocation-id": invocation.encode(),
            b"host": b"simulated",
        }
        body = orjson.dumps({"TableName": "items", "Item": {"id": {"S": "it"}, "v": {"S": value}}})
        return await made.cluster.routers[0].request(Received(b"POST", b"/", headers, body))

    async def story(made: SnapshotCluster) -> None:
        await made.start()
        assert (await put(made, "first", "one")).status == 200
        assert (await put(made, "first", "one")).status == 200, "it is answered from its entry"
        assert (await put(made, "second", "two")).status == 200
        await made.write(MANY)
        await made.rest()
        again = await put(made, "first", "one")
        assert again.status == 500
        assert b"done before" in again.body
        reply = await made.client.call("GetItem", {"TableName": "items", "Key": {"id": {"S": "it"}}})
        assert reply is not None
        assert reply.body["Item"]["v"] == {"S": "second"}
        await made.settle()
        made.check()

    run(8, story)


@pytest.mark.parametrize("seed", range(100, 108))
def test_crashes_at_any_moment_lose_nothing(seed: int) -> None:
    """Nodes die and lose power in the middle of whatever their disks do, while snapshots are taken, logs trimmed and
    followers rebuilt all the time."""
    run_crashes(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1100))
def test_many_crashes_at_any_moment_lose_nothing(seed: int) -> None:
    """The same, more often."""
    run_crashes(seed)


def run_crashes(seed: int) -> None:
    """Break nodes again and again under load; then heal, and look whether all is there."""
    random = Random(seed)
    over = asyncio.Event()

    async def write(made: SnapshotCluster) -> None:
        while not over.is_set():
            await made.put(keys=40)

    async def story(made: SnapshotCluster) -> None:
        await made.start()
        writing = [asyncio.ensure_future(write(made)) for _ in range(4)]
        for _ in range(8):
            await asyncio.sleep(random.uniform(0.05, 0.5))
            await break_one(made, random)
        over.set()
        await asyncio.gather(*writing)
        made.cluster.start()
        await made.settle()
        made.check()
        await made.check_items()
        assert any(member.disk.list("data/snapshots") for member in made.cluster.nodes)

    run(seed, story, log_bytes_max=1 << 20)


async def break_one(made: SnapshotCluster, random: Random) -> None:
    """End one node somehow, and start it again a little or much later."""
    member = random.choice(made.cluster.nodes)
    power_lost = random.random() < 0.5
    if random.random() < 0.7:
        member.crash_at(random.choice(("write", "sync")), random.randint(0, 60), power_lost=power_lost)
        await made.cluster.until(lambda: member.down, 1.0)
    await member.crash(power_lost=power_lost)
    await asyncio.sleep(random.choice((0.0, 0.2, 1.5)))
    assert await made.cluster.until(lambda: member.down, 1.0)
    member.start()
