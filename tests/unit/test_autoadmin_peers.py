"""What a member brings to another, and how it goes on when that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, cast

import pytest

from autoadmin import peers as module
from autoadmin.peers import METHOD, Peer, PeerHost
from autoadmin.wire import put_answer
from cluster.memory_transport import MemoryNetwork, MemoryTransport
from cluster.transport import Handlers
from cluster.wire import members_pb2
from replication.effects import Fetch
from replication.messages import Append, AppendReply, Entry, Message
from replication.replica import Replica
from tests.integration.autoadmin_world import ManualClock
from tests.unit.autoadmin_samples import CLUSTER

OWN, OTHER = 1, 2
BATCH = Append(OWN, OTHER, 3, 4, 3, (Entry(3, 5, b"x"),), 4)


class FakeCore:
    """Has one batch for the other replica, which is no longer in memory."""

    def __init__(self) -> None:
        self.sent = False
        self.broken = 0

    def has_for(self, peer: int) -> bool:
        return peer == OTHER and not self.sent

    def append_for(self, peer: int, _max_bytes: int) -> Fetch:
        return Fetch(peer, 5, 100)

    def fetched(self, _peer: int, entries: tuple[Entry, ...]) -> Append | None:
        self.sent = bool(entries)
        return BATCH if entries else None

    def lane_broken(self, _peer: int) -> None:
        self.broken += 1
        self.sent = False


class World:
    """One member's view of another, which answers as told."""

    def __init__(self) -> None:
        network = MemoryNetwork()
        self.clock = ManualClock()
        self.transport = MemoryTransport(network)
        self.fake = FakeCore()
        self.core = cast(Replica, self.fake)
        self.readable: list[tuple[Entry, ...]] = []
        self.replica, self.answers = OTHER, True
        self.taken: asyncio.Queue[Message] = asyncio.Queue()
        self.asked = 0
        self.peer = Peer(cast(PeerHost, self), "there:1")

    def frame(self, to_replica: int) -> members_pb2.Frame:
        return members_pb2.Frame(cluster_id=CLUSTER, group="g", from_replica=OWN, to_replica=to_replica)

    def take(self, message: Message) -> None:
        self.taken.put_nowait(message)

    def heard(self, peer: Peer) -> None:
        assert peer.replica == self.replica

    def entries(self, _: Fetch) -> tuple[Entry, ...]:
        return self.readable.pop(0)

    def start_work(self, work: Coroutine[Any, Any, None]) -> None:
        raise AssertionError(work)

    async def serve(self) -> None:
        await self.transport.serve("there:1", Handlers({METHOD: self._answer}))
        assert await self.peer.ask()
        self.peer.wake()

    async def _answer(self, message: bytes) -> bytes:
        frame = members_pb2.Frame.FromString(message)
        reply = members_pb2.Reply(group="g", replica=self.replica)
        self.asked += frame.to_replica == OTHER
        if frame.to_replica == self.replica and self.answers:
            put_answer(reply, AppendReply(OTHER, OWN, 3, accepted=True, match=5))
        return reply.SerializeToString()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.001)
    return World()


async def _runs(world: World) -> asyncio.Task[None]:
    await world.serve()
    return asyncio.create_task(world.peer.run())


async def test_entries_are_brought_and_the_answer_is_the_cores(world: World) -> None:
    world.readable = [BATCH.entries]
    running = await _runs(world)
    assert await world.taken.get() == AppendReply(OTHER, OWN, 3, accepted=True, match=5)
    running.cancel()


async def test_it_goes_on_when_what_was_to_be_read_is_just_being_trimmed(world: World) -> None:
    world.readable = [(), (), BATCH.entries]
    running = await _runs(world)
    await world.taken.get()
    assert world.readable == []
    running.cancel()


async def test_what_is_not_answered_is_brought_again(world: World) -> None:
    world.readable = [BATCH.entries, BATCH.entries]
    world.answers = False
    running = await _runs(world)
    while not world.fake.broken:  # noqa: ASYNC110 (the fake counts)
        await asyncio.sleep(0)
    world.answers = True
    await world.taken.get()
    running.cancel()


async def test_another_replica_at_the_address_gets_nothing_of_what_was_meant_for_the_first(world: World) -> None:
    world.readable = [BATCH.entries]
    await world.serve()
    world.replica = 9  # its disk was lost
    running = asyncio.create_task(world.peer.run())
    while world.peer.replica != 9:  # noqa: ASYNC110 (nothing tells of it)
        await asyncio.sleep(0)
    assert world.taken.empty()
    assert world.fake.broken == 1
    running.cancel()
