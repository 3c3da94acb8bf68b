"""Replicas move between nodes of a simulated cluster: planned by its auto-admin, led by its nodes, under writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from msgspec.structs import replace

from cluster.wire import admin_pb2
from storagenode.hosted import HostedReplica
from tests.simulation.cluster import CLUSTER_ID
from tests.simulation.noticed import noticed_errors
from tests.simulation.snapshot_cluster import SnapshotCluster, folder_for
from tests.simulation.virtual_loop import run_virtual

MOVE_SECONDS = 60.0
REPLACE_SECONDS = 5.0


class MovingCluster(SnapshotCluster):
    """A cluster with a node to spare in some zones."""

    def __init__(self, seed: int, folder: Path | None, zones: tuple[int, ...], **settings: Any) -> None:
        super().__init__(seed, folder, 3, zones, **settings)
        for member in self.cluster.auto_admins:
            member._settings = replace(member._settings, replace_after=REPLACE_SECONDS)

    def hosted(self, name: str) -> list[HostedReplica]:
        """The replicas on a node; none while it is down or comes back."""
        return super().hosted(name) if hasattr(self.node(name).node, "replicas") else []

    async def change(self, name: str, change: int) -> None:
        """Ask auto-admin to drain a node, or to stop that."""
        request = admin_pb2.NodeRequest(cluster_id=CLUSTER_ID, node=name)
        request.change = change  # type: ignore[assignment]
        service = self.cluster.auto_admin.service
        assert service is not None
        reply = admin_pb2.NodeReply.FromString(await service._nodes.answer(request.SerializeToString()))
        assert not reply.error_message, reply.error_message

    async def moved(self, name: str) -> None:
        """Wait until the node holds nothing any more and everything else is as it should be."""
        done = await self.cluster.until(lambda: not self.hosted(name), MOVE_SECONDS)
        assert done, self.told()
        await self.settle()

    async def right(self) -> None:
        """Replicas are equal, and nothing acknowledged is missing."""
        await self.settle()
        self.check()
        await self.check_items()

    def told(self) -> str:
        """Who holds what, for a failure's text."""
        lines = []
        for member in self.cluster.nodes:
            for hosted in self.hosted(member.name):
                replica = hosted.replica
                lines.append(
                    f"{member.name}: {hosted.partition_id} {replica.replica} {replica.role} {replica.membership}"
                )
        return "\n".join(lines)


def led(hosted: HostedReplica) -> bool:
    return hosted.replica.role == "leader"


def run(
    zones: tuple[int, ...], story: Callable[[MovingCluster], Coroutine[Any, Any, None]], *, seed: int, **settings: Any
) -> None:
    """Run a story in virtual time."""
    with folder_for(in_memory=True) as folder, patch("os.getpid", return_value=1), noticed_errors():
        made = MovingCluster(seed, folder, zones, **settings)

        async def main() -> None:
            await made.start()
            await story(made)
            await made.cluster.close()

        run_virtual(main())


@pytest.mark.parametrize("seed", [1, 2])
def test_a_drained_nodes_replicas_move_under_writes(seed: int) -> None:
    """Every write is answered, the new replicas equal the old ones, and what was left is dropped."""

    async def story(made: MovingCluster) -> None:
        name = next(member.name for member in made.cluster.nodes if any(map(led, made.hosted(member.name))))
        await made.write(200)
        moving = asyncio.ensure_future(made.change(name, admin_pb2.NodeRequest.DRAIN))
        written = 0
        while made.hosted(name):
            assert all(await asyncio.gather(*(made.put(40) for _ in range(8)))), "a write was not answered"
            written += 8
        await moving
        assert written > 100, "the move was over before anything was written"
        await made.moved(name)
        await made.right()
        assert sum(len(made.hosted(member.name)) for member in made.cluster.nodes) == 9

    run((2, 2, 2), story, seed=seed, log_bytes_max=64 << 20)


@pytest.mark.parametrize("power_lost", [False, True])
def test_nodes_crash_while_replicas_move(power_lost: bool) -> None:
    """Whoever dies in the middle, the one that leads, the one that is filled, or the one that leaves: it goes on."""

    async def story(made: MovingCluster) -> None:
        random = made.cluster.random("crashes")
        await made.write(200)
        await made.change("node-a", admin_pb2.NodeRequest.DRAIN)
        for _ in range(12):
            member = random.choice(made.cluster.nodes)
            await made.write(20)
            await member.crash(power_lost=power_lost)
            await asyncio.sleep(random.uniform(0.0, 1.0))
            member.start()
            await asyncio.sleep(random.uniform(0.0, 1.0))
        await made.moved("node-a")
        await made.right()

    run((2, 2, 2), story, seed=3)


def log_replicas(made: MovingCluster) -> list[HostedReplica]:
    """Replicas that vote without a state."""
    found = [hosted for member in made.cluster.nodes for hosted in made.hosted(member.name) if hosted.replica.log_only]
    settled = [hosted for hosted in found if not hosted.replica.committed_membership.joint]
    return [hosted for hosted in settled if hosted.replica.replica in hosted.replica.committed_membership.voters]


def full_voters(made: MovingCluster) -> list[int]:
    """How many replicas with their state vote in each partition, as their leaders know and their nodes hold them."""
    here = [hosted for member in made.cluster.nodes for hosted in made.hosted(member.name)]
    full = {hosted.replica.replica for hosted in here if not hosted.replica.log_only and not hosted.replica.lacks_state}
    return [len(full.intersection(hosted.replica.membership.voters)) for hosted in here if led(hosted)]


@pytest.mark.parametrize("restarts", [False, True])
def test_a_lost_nodes_replicas_are_made_anew(restarts: bool) -> None:
    """First a log replica stands in, then a full one takes its place; nothing that was acknowledged meanwhile is lost,
    though the third node of the partition dies as well for a while."""

    async def story(made: MovingCluster) -> None:
        await made.write(300)
        await made.node("node-b").crash()
        assert await made.cluster.until(lambda: bool(log_replicas(made)), 30.0, 0.001), made.told()
        stand_in = log_replicas(made)[0]
        if restarts:
            at = next(member for member in made.cluster.nodes if stand_in in made.hosted(member.name))
            await at.crash()
            at.start()
        await made.write(50)
        assert await made.cluster.until(lambda: full_voters(made) == [3, 3, 3], MOVE_SECONDS), made.told()
        assert await made.cluster.until(lambda: not log_replicas(made), MOVE_SECONDS), made.told()
        await made.right()

    run((1, 3, 1), story, seed=4)


def serves(partition: int) -> Callable[[HostedReplica], bool]:
    return lambda hosted: hosted.partition_id == partition and hosted.serving


def test_a_log_replica_brings_another_up_to_date() -> None:
    """What only the leader and a log replica had is served, by the one that was away, after the leader has died too."""

    async def story(made: MovingCluster) -> None:
        await made.write(300)
        await made.node("node-b").crash()
        assert await made.cluster.until(lambda: bool(log_replicas(made)), 30.0, 0.001), made.told()
        partition = log_replicas(made)[0].partition_id
        await made.cluster.auto_admin.crash()
        await made.node("node-c").crash()
        await made.write(60)
        await made.node("node-a").crash()
        made.node("node-c").start()
        assert await made.cluster.until(lambda: any(map(serves(partition), made.hosted("node-c"))), 20.0), made.told()
        await made.check_items()
        made.cluster.start()
        await made.right()

    run((1, 3, 1), story, seed=5)


def test_a_node_with_an_empty_disk_fills_itself() -> None:
    """It is a new node in the place of the old one, and gets new replicas; the old ones are never waited for."""

    async def story(made: MovingCluster) -> None:
        await made.write(300)
        member = made.node("node-c")
        before = {hosted.replica.replica for hosted in made.hosted("node-c")}
        await member.crash()
        member.lose_disk()
        member.start()
        await made.write(100)
        assert await made.cluster.until(lambda: full_voters(made) == [3, 3, 3], MOVE_SECONDS), made.told()
        await made.right()
        after = {hosted.replica.replica for hosted in made.hosted("node-c")}
        assert len(after) == 3
        assert not after & before

    run((1, 1, 1), story, seed=6)
