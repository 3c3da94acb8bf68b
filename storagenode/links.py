"""From this node to one other: two lanes of appends, votes, and the heartbeats of what this node leads.

A lane is one stream with one batch in flight. Whatever arrives meanwhile, of all partitions, is the next batch: on few
cores fuller messages beat more of them (design §12). The live lane carries new entries, the bulk lane old ones that
had to
be read back from the log, so that catching up one follower holds up nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from cluster import convert
from cluster.clock import Clock
from cluster.transport import Stream, Transport, TransportError
from cluster.wire import replication_pb2
from replication.effects import Fetch
from replication.heartbeats import BeatReply, LeaderBeats
from replication.messages import Append, HandOver, Message, VoteReply, VoteRequest
from storagenode.appends import append_to_wire
from storagenode.hosted import HostedReplica

METHOD = "Peer/Replicate"
BATCH_BYTES = 1 << 20
RECONNECT_SECONDS = 0.1
SILENT_SECONDS = 2.0
"""A peer that answers nothing for so long is connected to anew: a broken network may swallow a stream without a
word."""
UNANSWERED_SECONDS = 3.0
"""So is a lane whose batch is not answered for so long, though the other lives: nothing else would be sent on it."""


class LinkHost(Protocol):
    """What a link needs of its node."""

    @property
    def clock(self) -> Clock:
        """The node's clock."""
        ...

    @property
    def transport(self) -> Transport:
        """The node's network."""
        ...

    def frame(self, to_node: int) -> replication_pb2.PeerFrame:
        """An empty frame addressed to that node."""
        ...

    def connected(self, link: PeerLink) -> None:
        """A new stream was opened."""
        ...

    def lane_changed(self, link: PeerLink) -> None:
        """What was in flight on the old stream may not have arrived; what waits may go on the new one."""
        ...

    def not_followed(self, link: PeerLink, partitions: tuple[int, ...]) -> None:
        """That node answered a beat without following these partitions."""
        ...

    def accepts(self, frame: replication_pb2.PeerFrame) -> bool:
        """Whether the frame is meant for this node's present life, by a known life of its sender."""
        ...

    def hosted(self, partition: int, replica: int) -> HostedReplica | None:
        """The replica on this node, if it is (still) here under this id."""
        ...

    def fetch(self, link: PeerLink, hosted: HostedReplica, fetch: Fetch) -> None:
        """Read old entries, then hand them to `PeerLink.fetched`."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        ...


class Lane:
    """One stream, one batch in flight. `collect` makes the next batch, or nothing."""

    def __init__(self, link: PeerLink, collect: Callable[[], list[replication_pb2.Append]]) -> None:
        self._link = link
        self._collect = collect
        self._stream: Stream | None = None
        self._frames: list[bytes] = []
        self._wanted = asyncio.Event()
        self._sequence = 0
        self._in_flight = False
        self._sent_at = 0.0
        self._collecting = False
        self._carried: dict[int, tuple[int, int]] = {}

    def push(self, frame: replication_pb2.PeerFrame) -> None:
        """Send this frame as soon as may be; it is lost when the peer is not connected."""
        if self._stream is not None:
            self._frames.append(frame.SerializeToString())
            self._wanted.set()

    def kick(self) -> None:
        """There may be something to collect."""
        self._collecting = True
        self._wanted.set()

    def answered(self, sequence: int) -> dict[int, tuple[int, int]] | None:
        """The batch of this number was answered; None if it is not the one that was waited for.

        Returns whom it carried something from and to: (our replica, theirs) by partition.
        """
        if not self._in_flight or sequence != self._sequence:
            return None
        self._in_flight = False
        self.kick()
        return self._carried

    def look_after(self, now: float) -> None:
        """Connect anew if the batch in flight has got lost."""
        if self._in_flight and now - self._sent_at > UNANSWERED_SECONDS:
            self._sent_at = now
            self.reset()

    def reset(self) -> None:
        """Connect anew."""
        if self._stream is not None:
            self._stream.close()

    async def run(self) -> None:
        """Keep the stream open and feed it, until cancelled."""
        while True:
            try:
                self._stream = await self._link.open()
            except TransportError:
                await self._link.pause()
                continue
            self._link.connected()
            self._in_flight = False
            self._link.changed()
            writer = asyncio.ensure_future(self._write(self._stream))
            try:
                while (message := await self._stream.receive()) is not None:
                    self._link.receive(replication_pb2.PeerFrame.FromString(message), self)
            finally:
                writer.cancel()
                self._stream.close()
                self._stream = None
                self._frames.clear()
            await self._link.pause()

    async def _write(self, stream: Stream) -> None:
        try:
            while True:
                await self._wanted.wait()
                self._wanted.clear()
                frames, self._frames = self._frames, []
                for frame in frames:
                    await stream.send(frame)
                if self._collecting and not self._in_flight:
                    self._collecting = False
                    await self._send_batch(stream)
        except TransportError:
            stream.close()

    async def _send_batch(self, stream: Stream) -> None:
        appends = self._collect()
        if not appends:
            return
        self._sequence += 1
        self._in_flight = True
        self._sent_at = self._link.now()
        self._carried = {append.partition: (append.from_replica, append.to_replica) for append in appends}
        frame = self._link.frame()
        frame.appends.sequence = self._sequence
        frame.appends.appends.extend(appends)
        await stream.send(frame.SerializeToString())


class PeerLink:
    """Everything that this node sends to one other."""

    def __init__(self, host: LinkHost, node: int, address: str, beats: LeaderBeats) -> None:
        self.node = node
        self.address = address
        self.beats = beats
        self._host = host
        self._live = Lane(self, self._collect_live)
        self._bulk = Lane(self, self._collect_bulk)
        self._dirty: dict[HostedReplica, int] = {}
        self._fetching: set[HostedReplica] = set()
        self._fetched: list[tuple[HostedReplica, Append]] = []
        self._last_heard = host.clock.boottime()
        self._beats_unanswered = 0
        self._enrolled_something = False

    async def run(self) -> None:
        """Keep both lanes up, until cancelled."""
        await asyncio.gather(self._live.run(), self._bulk.run())

    # --- sending ---

    def wake(self, hosted: HostedReplica, peer: int) -> None:
        """There is something for replica `peer`, which is on that node."""
        if hosted not in self._fetching:
            self._dirty[hosted] = peer
            self._live.kick()

    def send(self, hosted: HostedReplica, message: Message) -> None:
        """Send a vote or an order at once."""
        frame = self.frame()
        if isinstance(message, VoteRequest):
            frame.votes.requests.append(convert.vote_request_to_wire(hosted.partition_id, message))
        elif isinstance(message, VoteReply):
            frame.votes.replies.append(convert.vote_reply_to_wire(hosted.partition_id, message))
        elif isinstance(message, HandOver):
            frame.votes.hand_overs.append(convert.hand_over_to_wire(hosted.partition_id, message))
        else:
            raise AssertionError(f"{type(message).__name__} travels in batches")
        self._live.push(frame)

    def beat(self) -> None:
        """Send the next heartbeat; connect anew when none has been answered for long."""
        now = self.now()
        self._live.look_after(now)
        self._bulk.look_after(now)
        beat = self.beats.beat(now)
        if not beat.enrolled and not self._enrolled_something:
            return
        self._enrolled_something = bool(beat.enrolled)
        frame = self.frame()
        frame.beat.sequence = beat.sequence
        frame.beat.enrolled = beat.enrolled
        frame.beat.commits = beat.commits
        self._live.push(frame)
        self._beats_unanswered += 1
        if self._beats_unanswered > 1 and now - self._last_heard > SILENT_SECONDS:
            self._last_heard = now
            self._live.reset()
            self._bulk.reset()

    def _collect_live(self) -> list[replication_pb2.Append]:
        appends: list[replication_pb2.Append] = []
        room = BATCH_BYTES
        while self._dirty and room > 0:
            hosted = next(iter(self._dirty))
            made = hosted.replica.append_for(self._dirty.pop(hosted), room)
            if isinstance(made, Fetch):
                self._fetching.add(hosted)
                self._host.fetch(self, hosted, made)
            elif made is not None:
                append = append_to_wire(hosted.partition_id, made)
                appends.append(append)
                room -= len(append.entries)
        if self._dirty:
            self._live.kick()
        return appends

    def _collect_bulk(self) -> list[replication_pb2.Append]:
        fetched, self._fetched = self._fetched, []
        return [append_to_wire(hosted.partition_id, append) for hosted, append in fetched]

    def fetched(self, hosted: HostedReplica, append: Append | None) -> None:
        """Old entries were read; they go by the bulk lane."""
        if append is None:
            self._fetching.discard(hosted)
            return
        self._fetched.append((hosted, append))
        self._bulk.kick()

    # --- receiving ---

    def receive(self, frame: replication_pb2.PeerFrame, lane: Lane) -> None:
        """An answer on one of the lanes."""
        if not self._host.accepts(frame):
            return
        self._last_heard = self._host.clock.boottime()
        if frame.HasField("beat_reply"):
            self._beats_unanswered = 0
            reply = BeatReply(frame.beat_reply.sequence, frame.beat_reply.unfollowed)
            if unfollowed := self.beats.answered(reply, self._last_heard):
                self._host.not_followed(self, unfollowed)
        elif frame.HasField("appended"):
            self._take_answer(frame.appended, lane)

    def _take_answer(self, answer: replication_pb2.AppendBatchReply, lane: Lane) -> None:
        carried = lane.answered(answer.sequence)
        if carried is None:
            return
        unanswered = dict(carried)
        for appended in answer.appended:
            unanswered.pop(appended.partition, None)
            if (hosted := self._host.hosted(appended.partition, appended.to_replica)) is not None:
                self._fetching.discard(hosted)
                hosted.step(convert.append_reply_from_wire(appended))
        for partition, (replica, peer) in unanswered.items():
            # The replica is not open there, or not yet. The answer to a beat will say that it does not follow, and ask
            # for another try.
            if (hosted := self._host.hosted(partition, replica)) is not None:
                self._fetching.discard(hosted)
                hosted.replica.lane_broken(peer)

    def changed(self) -> None:
        """A lane has a new stream: what was in flight on the old one may not have arrived."""
        self._fetched.clear()
        self._fetching.clear()
        self._host.lane_changed(self)
        self._live.kick()

    def connected(self) -> None:
        """A stream was opened, to whichever life of that node there is now."""
        self._last_heard = self._host.clock.boottime()
        self._beats_unanswered = 0
        self._host.connected(self)

    def now(self) -> float:
        """The node's clock."""
        return self._host.clock.boottime()

    def frame(self) -> replication_pb2.PeerFrame:
        """An empty frame for that node."""
        return self._host.frame(self.node)

    async def open(self) -> Stream:
        """A new stream. Raises TransportError."""
        return await self._host.transport.open_stream(self.address, METHOD)

    async def pause(self) -> None:
        """Wait before connecting anew."""
        await self._host.sleep(RECONNECT_SECONDS)
