"""The link to one other node: what its answers mean to the replicas that asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import Any, cast

from cluster.wire import replication_pb2
from replication.heartbeats import LeaderBeats
from replication.messages import Append, AppendReply
from storagenode.links import UNANSWERED_SECONDS, PeerLink

PARTITION, OURS, THEIRS = 7, 11, 12
ACCEPTED = replication_pb2.Appended(
    partition=PARTITION, from_replica=THEIRS, to_replica=OURS, epoch=1, accepted=True, match=3
)


class Pipe:
    """A stream whose other end is the test."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[replication_pb2.PeerFrame] = asyncio.Queue()
        self.coming: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.closed = asyncio.Event()

    async def send(self, message: bytes) -> None:
        self.sent.put_nowait(replication_pb2.PeerFrame.FromString(message))

    async def receive(self) -> bytes | None:
        return await self.coming.get()

    def close(self) -> None:
        self.closed.set()
        self.coming.put_nowait(None)

    async def next_appends(self) -> replication_pb2.AppendBatch:
        """The next batch that the link sent."""
        async with asyncio.timeout(5):
            while not (frame := await self.sent.get()).HasField("appends"):
                pass
        return frame.appends

    def answer(self, sequence: int, *appended: replication_pb2.Appended) -> None:
        """Answer the batch of this number."""
        reply = replication_pb2.AppendBatchReply(sequence=sequence, appended=appended)
        self.coming.put_nowait(replication_pb2.PeerFrame(appended=reply).SerializeToString())


class Replica:
    """A leader's replica that always has an empty Append to send, and notes what it hears."""

    def __init__(self) -> None:
        self.partition_id = PARTITION
        self.replica = self
        self.heard: list[AppendReply] = []
        self.broken: list[int] = []
        self.news = asyncio.Event()

    def append_for(self, peer: int, max_bytes: int) -> Append:  # noqa: ARG002
        return Append(OURS, peer, 1, 0, 0, (), 0)

    def step(self, message: AppendReply) -> None:
        self.heard.append(message)
        self.news.set()

    def lane_broken(self, peer: int) -> None:
        self.broken.append(peer)
        self.news.set()


@asynccontextmanager
async def linked(replica: Replica, now: Callable[[], float] = lambda: 0.0) -> AsyncIterator[tuple[PeerLink, Pipe]]:
    """A running link on whose far end sits the test; the pipe of its live lane."""
    pipes: list[Pipe] = []
    both = asyncio.Event()

    async def open_stream(address: str, method: str) -> Pipe:  # noqa: ARG001
        pipes.append(Pipe())
        if len(pipes) == 2:
            both.set()
        return pipes[-1]

    host = SimpleNamespace(
        clock=SimpleNamespace(boottime=now),
        transport=SimpleNamespace(open_stream=open_stream),
        frame=lambda node: replication_pb2.PeerFrame(to_node=node),
        connected=lambda link: None,  # noqa: ARG005
        lane_changed=lambda link: None,  # noqa: ARG005
        accepts=lambda frame: True,  # noqa: ARG005
        hosted=lambda partition, id_: replica if (partition, id_) == (PARTITION, OURS) else None,
        sleep=asyncio.sleep,
    )
    link = PeerLink(cast("Any", host), 2, "127.0.0.1:1", LeaderBeats())
    running = asyncio.ensure_future(link.run())
    try:
        async with asyncio.timeout(5):
            await both.wait()
        yield link, pipes[0]
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def test_an_answer_reaches_the_replica_that_asked() -> None:
    replica = Replica()
    async with linked(replica) as (link, pipe):
        link.wake(cast("Any", replica), THEIRS)
        batch = await pipe.next_appends()
        pipe.answer(batch.sequence, ACCEPTED)
        async with asyncio.timeout(5):
            await replica.news.wait()
    assert [(reply.sender, reply.match) for reply in replica.heard] == [(THEIRS, 3)]
    assert replica.broken == []


async def test_a_replica_that_is_not_open_there_yet_is_asked_again_later() -> None:
    replica = Replica()
    async with linked(replica) as (link, pipe):
        link.wake(cast("Any", replica), THEIRS)
        pipe.answer((await pipe.next_appends()).sequence)
        async with asyncio.timeout(5):
            await replica.news.wait()
        assert replica.broken == [THEIRS]
        assert pipe.sent.empty(), "it waits for the next beat's answer"
        link.wake(cast("Any", replica), THEIRS)
        batch = await pipe.next_appends()
        assert [append.partition for append in batch.appends] == [PARTITION]


async def test_an_answer_to_another_batch_means_nothing() -> None:
    replica = Replica()
    async with linked(replica) as (link, pipe):
        link.wake(cast("Any", replica), THEIRS)
        sequence = (await pipe.next_appends()).sequence
        for answered in (sequence - 1, sequence, sequence):
            pipe.answer(answered)
        link.wake(cast("Any", replica), THEIRS)
        pipe.answer((await pipe.next_appends()).sequence, ACCEPTED)
        async with asyncio.timeout(5):
            while not replica.heard:
                await replica.news.wait()
                replica.news.clear()
    assert replica.broken == [THEIRS]


async def test_a_lane_whose_batch_got_lost_is_connected_anew() -> None:
    """No beat would tell, as long as the other lane is answered; and nothing else is sent on this one."""
    replica, now = Replica(), 0.0
    async with linked(replica, lambda: now) as (link, pipe):
        link.wake(cast("Any", replica), THEIRS)
        await pipe.next_appends()
        now = UNANSWERED_SECONDS
        link.beat()
        assert not pipe.closed.is_set()
        now += 0.01
        link.beat()
        assert pipe.closed.is_set()


async def test_an_answered_lane_is_left_alone() -> None:
    replica, now = Replica(), 0.0
    async with linked(replica, lambda: now) as (link, pipe):
        link.wake(cast("Any", replica), THEIRS)
        pipe.answer((await pipe.next_appends()).sequence, ACCEPTED)
        async with asyncio.timeout(5):
            await replica.news.wait()
        now = 10 * UNANSWERED_SECONDS
        link.beat()
        assert not pipe.closed.is_set()
