"""A snapshot on its way from a leader's node to a follower's: by chunks, resumed, checked, and no faster than set."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, cast

import pytest

from cluster.clock import Clock
from cluster.executor import Executor
from cluster.settings import StorageNodeSettings
from cluster.transport import Transport, TransportError
from cluster.wire import replication_pb2
from storagenode.damage import NO_DAMAGE, Damage
from storagenode.hosted import HostedReplica
from storagenode.snapshots.folder import Snapshot, SnapshotFolder, SnapshotReader
from storagenode.snapshots.installer import Installer, InstallerHost
from storagenode.snapshots.keeper import KeeperHost, SnapshotKeeper
from storagenode.snapshots.manifest import CHUNK_BYTES, Manifest
from storagenode.snapshots.pace import BUSY_FLUSHES, BUSY_SHARE, HURRY, LOOK_SECONDS, Busy, Pace
from storagenode.snapshots.source import METHOD, SnapshotSource
from storagenode.storage.memory_store import MemoryStores
from tests.simulation.simulated_disk import SimulatedDisk
from tests.simulation.simulated_machine import SimulatedClock
from tests.simulation.virtual_loop import run_virtual

PARTITION, REPLICA, LEADER = 7, 901, 902
SOURCE_NODE, NODE = 1, 2
CONTENT = Random(1).randbytes(5 * CHUNK_BYTES + 77)
Request = replication_pb2.SnapshotRequest
Reply = replication_pb2.SnapshotReply


@dataclass
class FakeReplica:
    """What source and installer look at."""

    replica: int
    leader: int = LEADER
    wanted_snapshot: int | None = None
    lacks_state: bool = False


@dataclass
class FakeHosted:
    """A replica on a node."""

    replica: FakeReplica
    partition_id: int = PARTITION
    dropped: bool = False
    damage: Damage = NO_DAMAGE
    nodes: dict[int, int] = field(default_factory=lambda: {LEADER: SOURCE_NODE, REPLICA: NODE})


class AtOnce:
    """Runs blocking functions where they are."""

    async def run(self, function: Callable[[], Any]) -> Any:
        """The function's result."""
        return function()

    def close(self) -> None:
        """Nothing runs on."""


class EmptyLog:
    """A log that is far from its bound."""

    size = 0


class IdleFlusher:
    """Nothing is flushed."""

    flushes = 0


class Side:
    """One node: its disk, snapshots, keeper, and the host that all of them see."""

    def __init__(self, node: int, hosted: FakeHosted) -> None:
        self.node = node
        self.fake = hosted
        self.clock: Clock = SimulatedClock()
        self.log = EmptyLog()
        self.flusher = IdleFlusher()
        self.disk = SimulatedDisk()
        self.folder = SnapshotFolder(self.disk, "snapshots")
        self.folder.open()
        settings = StorageNodeSettings(
            cluster_id="c", name="n", zone="z", data="d", snapshot_bytes_per_second=4 * CHUNK_BYTES
        )
        executor = cast(Executor, AtOnce())
        self.keeper = SnapshotKeeper(cast(KeeperHost, self), self.folder, MemoryStores(), executor, settings)
        self.source = SnapshotSource(self, "c", node, self.folder, self.keeper, executor)
        self.transport: Transport
        self.installer = Installer(cast(InstallerHost, self), "c", node, self.folder, self.keeper, executor)

    def hosted(self, partition: int) -> HostedReplica | None:
        """This node's replica of the partition."""
        return cast(HostedReplica, self.fake) if partition == PARTITION else None

    def hosted_all(self) -> Iterator[HostedReplica]:
        """Every replica on this node."""
        yield cast(HostedReplica, self.fake)

    def address_of(self, node: int) -> str | None:
        """Where that node listens."""
        return f"node-{node}" if node else None

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)

    def put(self, position: int, content: bytes = CONTENT, replica: int = LEADER) -> Snapshot:
        """A durable snapshot on this node."""
        writer = self.folder.begin(PARTITION, replica, position)
        for at in range(0, len(content), CHUNK_BYTES):
            writer.write(content[at : at + CHUNK_BYTES])
        manifest = Manifest(PARTITION, replica, position, 3, 1, b"members", 0, ())
        return self.folder.add(replica, writer.finish(manifest))


class Wire:
    """Carries calls from the follower's node to the leader's. `fault` may raise, or change a reply."""

    def __init__(self, source: Side) -> None:
        self.source = source
        self.replies: list[Reply] = []
        self.fault: Callable[[int, Reply], Reply] = lambda _, reply: reply

    async def call(self, address: str, method: str, message: bytes, timeout: float) -> bytes:  # noqa: ASYNC109
        """One request and its answer."""
        assert (address, method, timeout > 0) == (f"node-{SOURCE_NODE}", METHOD, True)
        reply = Reply.FromString(await self.source.source.serve(message))
        self.replies.append(reply)
        return self.fault(len(self.replies), reply).SerializeToString()


class Transfer:
    """Both sides."""

    def __init__(self) -> None:
        self.source = Side(SOURCE_NODE, FakeHosted(FakeReplica(LEADER)))
        self.target = Side(NODE, FakeHosted(FakeReplica(REPLICA, wanted_snapshot=10)))
        self.wire = Wire(self.source)
        self.target.transport = cast(Transport, self.wire)

    @property
    def chunks(self) -> list[int]:
        """The numbers of the chunks that were sent."""
        return [reply.chunk for reply in self.wire.replies if reply.state == Reply.CHUNK]

    async def fetch(self) -> Snapshot | None:
        """What the installer fetches."""
        return await self.target.installer._fetch(cast(HostedReplica, self.target.fake))

    def content(self) -> bytes:
        """What is durable on the target after a power cut."""
        self.target.disk.crash(Random(3))
        folder = SnapshotFolder(self.target.disk, "snapshots")
        folder.open()
        snapshot = folder.newest(PARTITION, REPLICA)
        assert snapshot is not None
        return b"".join(folder.chunks(snapshot))


def run(story: Callable[[Transfer], Coroutine[Any, Any, None]]) -> None:
    """Run a story in virtual time."""

    async def main() -> None:
        await story(Transfer())

    run_virtual(main())


def test_it_arrives_whole_and_durable() -> None:
    async def story(transfer: Transfer) -> None:
        transfer.source.put(12)
        snapshot = await transfer.fetch()
        assert snapshot is not None
        assert (snapshot.position, snapshot.manifest.replica, snapshot.manifest.membership) == (12, LEADER, b"members")
        assert transfer.chunks == [0, 1, 2, 3, 4, 5]
        assert max(len(reply.data) for reply in transfer.wire.replies) <= 1 << 20
        assert transfer.content() == CONTENT

    run(story)


def test_it_goes_on_where_the_connection_broke() -> None:
    async def story(transfer: Transfer) -> None:
        transfer.source.put(12)

        def broken(number: int, reply: Reply) -> Reply:
            if number in (3, 4):
                raise TransportError("cut")
            return reply

        transfer.wire.fault = broken
        assert await transfer.fetch() is not None
        assert transfer.chunks == [0, 1, 2, 2, 2, 3, 4, 5]
        assert transfer.content() == CONTENT

    run(story)


def test_a_harmed_chunk_is_asked_for_again() -> None:
    async def story(transfer: Transfer) -> None:
        transfer.source.put(12)

        def harmed(number: int, reply: Reply) -> Reply:
            changed = Reply.FromString(reply.SerializeToString())
            if number == 2:
                changed.data = b"?" + changed.data[1:]
            elif number == 4:
                changed.data = changed.data[:-1]
            elif number == 6:
                changed.chunk += 1
            return changed

        transfer.wire.fault = harmed
        assert await transfer.fetch() is not None
        assert transfer.chunks == [0, 1, 1, 2, 2, 3, 3, 4, 5]
        assert transfer.content() == CONTENT

    run(story)


def test_another_snapshot_begins_anew() -> None:
    """Another leader has another one; so has the same one that found its own damaged."""

    async def story(transfer: Transfer) -> None:
        transfer.source.put(12)
        other = Side(SOURCE_NODE, transfer.source.fake)
        content = CONTENT[::-1]
        other.put(15, content)

        def changes(number: int, reply: Reply) -> Reply:
            if number == 3:
                transfer.wire.source = other
            return reply

        transfer.wire.fault = changes
        snapshot = await transfer.fetch()
        assert snapshot is not None
        assert snapshot.position == 15
        assert transfer.chunks == [0, 1, 2, 0, 1, 2, 3, 4, 5]
        assert len(transfer.target.disk.list("snapshots")) == 2
        assert transfer.content() == content

    run(story)


def test_a_newer_one_does_not_disturb_the_one_under_way() -> None:
    async def story(transfer: Transfer) -> None:
        transfer.source.put(12)

        def newer(number: int, reply: Reply) -> Reply:
            if number == 3:
                transfer.source.folder.remove_older(transfer.source.put(20, b"newer"))
            return reply

        transfer.wire.fault = newer
        snapshot = await transfer.fetch()
        assert snapshot is not None
        assert snapshot.position == 12
        assert transfer.content() == CONTENT
        assert transfer.source.keeper.sending == {PARTITION: 12}, "the log after it stays"

    run(story)


def test_who_waits_for_anothers_state_has_none_to_give() -> None:
    async def story(transfer: Transfer) -> None:
        transfer.source.put(12)
        transfer.source.fake.replica.wanted_snapshot = 20
        assert not await transfer.target.installer.mend(cast(HostedReplica, transfer.target.fake), LEADER)
        assert [reply.state for reply in transfer.wire.replies] == [Reply.NONE]

    run(story)


def test_one_that_is_replaced_just_when_it_is_asked_for_is_asked_for_again() -> None:
    """It goes between the look at what there is and the opening of its file."""

    async def story(transfer: Transfer) -> None:
        folder = transfer.source.folder
        older, read = transfer.source.put(12), folder.read

        def replaced(snapshot: Snapshot) -> SnapshotReader:
            if snapshot == older:
                folder.remove(older)
                transfer.source.put(15)
            return read(snapshot)

        transfer.source.folder.read = replaced  # type: ignore[method-assign]
        snapshot = await transfer.fetch()
        assert snapshot is not None
        assert snapshot.position == 15
        assert transfer.wire.replies[0].state == Reply.PREPARING
        assert transfer.content() == CONTENT

    run(story)


def test_one_that_does_not_reach_far_enough_is_made_first() -> None:
    async def story(transfer: Transfer) -> None:
        transfer.source.put(9)

        def prepared(number: int, reply: Reply) -> Reply:
            if number == 2:
                assert PARTITION in transfer.source.keeper._wanted
                transfer.source.put(30)
            return reply

        transfer.wire.fault = prepared
        snapshot = await transfer.fetch()
        assert snapshot is not None
        assert snapshot.position == 30
        assert [reply.state for reply in transfer.wire.replies[:3]] == [Reply.PREPARING, Reply.PREPARING, Reply.CHUNK]

    run(story)


def test_the_source_notices_its_own_damage() -> None:
    async def story(transfer: Transfer) -> None:
        snapshot = transfer.source.put(12)
        transfer.source.disk.flip_bit(f"snapshots/{snapshot.name}.data", 3 * CHUNK_BYTES + 5)

        def repaired(_: int, reply: Reply) -> Reply:
            if reply.state == Reply.PREPARING:
                assert transfer.source.folder.newest(PARTITION, LEADER) is None
                transfer.source.put(13)
            return reply

        transfer.wire.fault = repaired
        fetched = await transfer.fetch()
        assert fetched is not None
        assert fetched.position == 13
        assert transfer.chunks == [0, 1, 2, 0, 1, 2, 3, 4, 5]
        assert transfer.content() == CONTENT

    run(story)


@pytest.mark.parametrize("change", ["not wanted", "no leader", "dropped"])
def test_it_ends_when_it_is_of_no_use_any_more(change: str) -> None:
    async def story(transfer: Transfer) -> None:
        transfer.source.put(12)
        fake = transfer.target.fake

        def changes(number: int, reply: Reply) -> Reply:
            if number == 3:
                if change == "not wanted":
                    fake.replica.wanted_snapshot = None
                elif change == "no leader":
                    fake.replica.leader = 0
                else:
                    fake.dropped = True
            return reply

        transfer.wire.fault = changes
        assert await transfer.fetch() is None
        assert transfer.chunks == [0, 1, 2]
        assert transfer.target.disk.list("snapshots") == []

    run(story)


def test_it_is_as_slow_as_it_was_set() -> None:
    """Here 4 MiB a second, for what is sent and for what is received."""

    async def story(transfer: Transfer) -> None:
        transfer.source.put(12)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await transfer.fetch()
        least = len(CONTENT) / (4 * CHUNK_BYTES)
        assert 2 * least <= loop.time() - began + 0.001 < 2.1 * least

    run(story)


@pytest.mark.parametrize("wrong", ["cluster", "node", "partition", "state"])
def test_who_asks_the_wrong_node_gets_nothing(wrong: str) -> None:
    async def story(transfer: Transfer) -> None:
        transfer.source.put(12)
        request = Request(cluster_id="c", from_node=NODE, to_node=SOURCE_NODE, partition=PARTITION, position=10)
        if wrong == "cluster":
            request.cluster_id = "other"
        elif wrong == "node":
            request.to_node = 99
        elif wrong == "partition":
            request.partition = 8
        else:
            transfer.source.fake.replica.lacks_state = True
        reply = Reply.FromString(await transfer.source.source.serve(request.SerializeToString()))
        assert reply == Reply(state=Reply.NONE)

    run(story)


def test_pace_holds_its_rate_over_many_small_steps() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        hurries = False
        pace = Pace(1000, SimulatedClock(), asyncio.sleep, lambda: hurries)
        began = loop.time()
        await asyncio.gather(*(pace.take(10) for _ in range(50)))
        for _ in range(50):
            await pace.take(10)
        assert loop.time() - began == pytest.approx(1.0)
        await asyncio.sleep(10.0)
        began = loop.time()
        await pace.take(500)
        assert loop.time() - began == pytest.approx(0.5), "what was not used is not saved up"
        hurries, began = True, loop.time()
        await pace.take(500)
        assert loop.time() - began == pytest.approx(0.5 / HURRY)

    run_virtual(story())


def test_pace_leaves_most_to_clients_while_they_write() -> None:
    async def story() -> None:
        loop, clock = asyncio.get_running_loop(), SimulatedClock()
        flushes = 0
        busy = Busy(clock, lambda: flushes)
        pace = Pace(1000, clock, asyncio.sleep, lambda: False, busy)
        assert not busy()
        for per_second, share in ((2 * BUSY_FLUSHES, BUSY_SHARE), (BUSY_FLUSHES // 2, 1)):
            await asyncio.sleep(LOOK_SECONDS)
            flushes += int(per_second * LOOK_SECONDS)
            began = loop.time()
            await pace.take(100)
            assert loop.time() - began == pytest.approx(0.1 * share)

    run_virtual(story())
