"""This node among the others: links to each, heartbeats both ways, and the frames that arrive from them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Protocol

from cluster import convert
from cluster.clock import Clock
from cluster.topology import NodePlace
from cluster.transport import Stream, Transport, TransportError
from cluster.wire import replication_pb2
from replication.effects import Fetch
from replication.heartbeats import Beat, FollowerBeats, LeaderBeats
from replication.messages import AppendReply, Message
from replication.timing import Timing
from storagenode.appends import append_from_wire
from storagenode.hosted import HostedReplica
from storagenode.identity import Identity
from storagenode.links import PeerLink

INCARNATION_SHIFT = 32
EARLY_VOTES_MAX = 1024


class PeersHost(Protocol):
    """What the peers need of their node."""

    @property
    def clock(self) -> Clock:
        """The node's clock."""
        ...

    @property
    def transport(self) -> Transport:
        """The node's network."""
        ...

    def hosted(self, partition: int) -> HostedReplica | None:
        """This node's replica of the partition."""
        ...

    def hosted_all(self) -> Iterator[HostedReplica]:
        """Every replica on this node."""
        ...

    def start_link(self, link: PeerLink) -> Callable[[], None]:
        """Run a link; call what this returns to end it."""
        ...

    def fetch(self, link: PeerLink, hosted: HostedReplica, fetch: Fetch) -> None:
        """Read old entries, then hand them to `PeerLink.fetched`."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        ...


class Outbox:
    """Frames that leave in order on one stream."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._frames: list[bytes] = []
        self._wanted = asyncio.Event()

    def push(self, frame: replication_pb2.PeerFrame) -> None:
        """Send this frame after those before it."""
        self._frames.append(frame.SerializeToString())
        self._wanted.set()

    async def run(self) -> None:
        """Send until cancelled or the stream breaks."""
        try:
            while True:
                await self._wanted.wait()
                self._wanted.clear()
                frames, self._frames = self._frames, []
                for frame in frames:
                    await self._stream.send(frame)
        except TransportError:
            self._stream.close()


class InboundBatch:
    """One AppendBatch and its acknowledgements, which leave in one message once all are durable."""

    def __init__(self, outbox: Outbox, frame: replication_pb2.PeerFrame, sequence: int, appends: int) -> None:
        self._outbox = outbox
        self._frame = frame
        self._frame.appended.sequence = sequence
        self._awaited = appends

    def reply(self, partition: int, reply: AppendReply | None) -> None:
        """One partition's acknowledgement; None when its replica has nothing to say."""
        if reply is not None:
            self._frame.appended.appended.append(convert.append_reply_to_wire(partition, reply))
        self._awaited -= 1
        if self._awaited == 0:
            self._outbox.push(self._frame)


class Peers:
    """All other nodes of the cluster, as this one deals with them. `leads` and `follows` are what replicas look at."""

    def __init__(self, host: PeersHost, identity: Identity, timing: Timing, random: Random) -> None:
        self.leads: dict[int, LeaderBeats] = {}
        self.follows: dict[int, FollowerBeats] = {}
        self._host = host
        self._identity = identity
        self._timing = timing
        self._random = random
        self._links: dict[int, PeerLink] = {}
        self._ends: dict[int, Callable[[], None]] = {}
        self._incarnations: dict[int, int] = {}  # the newest life heard of, by node
        self._addressed: dict[int, int] = {}  # the life that the present connection leads to, by node
        self._early_votes: dict[int, list[Message]] = {}

    # --- who is there ---

    def know(self, place: NodePlace) -> None:
        """Link to this node; anew if its address changed."""
        if place.id == self._identity.node:
            return
        known = self._links.get(place.id)
        if known is not None and known.address == place.address:
            return
        self.forget(place.id)
        if place.id not in self.leads:
            self.leads[place.id] = LeaderBeats(self._identity.incarnation << INCARNATION_SHIFT)
            self.follows[place.id] = FollowerBeats(self._timing, self._random)
        link = PeerLink(self, place.id, place.address, self.leads[place.id])
        self._links[place.id] = link
        self._ends[place.id] = self._host.start_link(link)

    def forget(self, node: int) -> None:
        """Link to this node no more. What was promised to it, or by it, stays known."""
        self._links.pop(node, None)
        if (end := self._ends.pop(node, None)) is not None:
            end()

    def link(self, node: int) -> PeerLink | None:
        """The link to this node."""
        return self._links.get(node)

    # --- what this node leads and follows ---

    def beat(self) -> None:
        """Send every peer a heartbeat."""
        for link in self._links.values():
            link.beat()

    def overdue(self) -> list[int]:
        """Partitions whose leader has fallen silent for as long as they wait."""
        now = self._host.clock.boottime()
        return [partition for beats in self.follows.values() for partition in beats.overdue(now)]

    # --- LinkHost ---

    @property
    def clock(self) -> Clock:
        """The node's clock."""
        return self._host.clock

    @property
    def transport(self) -> Transport:
        """The node's network."""
        return self._host.transport

    def frame(self, to_node: int) -> replication_pb2.PeerFrame:
        """An empty frame addressed to that node."""
        return replication_pb2.PeerFrame(
            cluster_id=self._identity.cluster_id,
            from_node=self._identity.node,
            to_node=to_node,
            from_incarnation=self._identity.incarnation,
            to_incarnation=self._addressed.get(to_node, 0),
        )

    def accepts(self, frame: replication_pb2.PeerFrame) -> bool:
        """Whether the frame is meant for this node's present life, and not from an earlier life of its sender."""
        mine = self._identity
        if frame.cluster_id != mine.cluster_id or frame.to_node != mine.node:
            return False
        if frame.to_incarnation not in (0, mine.incarnation):
            return False
        if frame.from_incarnation < self._incarnations.get(frame.from_node, 0):
            return False
        self._incarnations[frame.from_node] = self._addressed[frame.from_node] = frame.from_incarnation
        return True

    def hosted(self, partition: int, replica: int) -> HostedReplica | None:
        """The replica on this node, if it is here under this id."""
        hosted = self._host.hosted(partition)
        return hosted if hosted is not None and hosted.replica.replica == replica else None

    def fetch(self, link: PeerLink, hosted: HostedReplica, fetch: Fetch) -> None:
        """Read old entries, then hand them to `PeerLink.fetched`."""
        self._host.fetch(link, hosted, fetch)

    def connected(self, link: PeerLink) -> None:
        """A new stream leads to whatever life of that node is there now."""
        self._addressed.pop(link.node, None)

    def lane_changed(self, link: PeerLink) -> None:
        """A lane was opened anew: nothing is known to have arrived but what was acknowledged."""
        for hosted in self._host.hosted_all():
            peer = hosted.replica_on(link.node)
            if peer is not None and hosted.replica.role == "leader":
                hosted.replica.lane_broken(peer)
                link.wake(hosted, peer)

    def not_followed(self, link: PeerLink, partitions: tuple[int, ...]) -> None:
        """That node answered a beat without following these partitions of ours."""
        for partition in partitions:
            hosted = self._host.hosted(partition)
            peer = None if hosted is None else hosted.replica_on(link.node)
            if hosted is not None and peer is not None:
                hosted.perform(hosted.replica.not_followed(peer))

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        await self._host.sleep(seconds)

    # --- frames that arrive ---

    async def serve(self, stream: Stream) -> None:
        """One lane of another node."""
        outbox = Outbox(stream)
        sender = asyncio.ensure_future(outbox.run())
        try:
            while (message := await stream.receive()) is not None:
                frame = replication_pb2.PeerFrame.FromString(message)
                if self.accepts(frame):
                    self._take(frame, outbox)
        finally:
            sender.cancel()

    def _take(self, frame: replication_pb2.PeerFrame, outbox: Outbox) -> None:
        content = frame.WhichOneof("content")
        if content == "appends":
            self._take_appends(frame, outbox)
        elif content == "beat":
            self._take_beat(frame, outbox)
        elif content == "votes":
            self._take_votes(frame.votes, frame.from_node)

    def _take_appends(self, frame: replication_pb2.PeerFrame, outbox: Outbox) -> None:
        batch = InboundBatch(outbox, self.frame(frame.from_node), frame.appends.sequence, len(frame.appends.appends))
        for append in frame.appends.appends:
            hosted = self.hosted(append.partition, append.to_replica)
            if hosted is None:
                batch.reply(append.partition, None)
            else:
                hosted.heard_from(append.from_replica, frame.from_node)
                hosted.step_append(append_from_wire(append), append.entries, partial(batch.reply, append.partition))

    def _take_beat(self, frame: replication_pb2.PeerFrame, outbox: Outbox) -> None:
        beats = self.follows.get(frame.from_node)
        if beats is None:
            return
        beat = Beat(frame.beat.sequence, frame.beat.enrolled, frame.beat.commits)
        received = beats.receive(beat, self._host.clock.boottime(), self._follows)
        reply = self.frame(frame.from_node)
        reply.beat_reply.sequence = received.reply.sequence
        reply.beat_reply.unfollowed = received.reply.unfollowed
        outbox.push(reply)
        for partition, epoch, position in received.commits:
            if (hosted := self._host.hosted(partition)) is not None:
                hosted.perform(hosted.replica.commit_heard(position, epoch))
        for partition, epoch in received.withdrawn:
            if (hosted := self._host.hosted(partition)) is not None:
                hosted.perform(hosted.replica.leader_gone(epoch, self._host.clock.boottime()))

    def _take_votes(self, votes: replication_pb2.Votes, node: int) -> None:
        for request in votes.requests:
            self._step(request.partition, convert.vote_request_from_wire(request), node)
        for reply in votes.replies:
            self._step(reply.partition, convert.vote_reply_from_wire(reply), node)
        for order in votes.hand_overs:
            self._step(order.partition, convert.hand_over_from_wire(order), node)

    def _step(self, partition: int, message: Message, node: int) -> None:
        hosted = self._host.hosted(partition)
        if hosted is not None:
            hosted.heard_from(message.sender, node)
            hosted.step(message)
        elif len(self._early_votes) < EARLY_VOTES_MAX:
            # A new partition's first candidate may be faster than the order to open the replica here.
            self._early_votes.setdefault(partition, []).append(message)

    def opened(self, hosted: HostedReplica) -> None:
        """A replica was opened: what came too early for it is delivered now."""
        for message in self._early_votes.pop(hosted.partition_id, ()):
            hosted.step(message)

    def _follows(self, partition: int, epoch: int) -> bool:
        hosted = self._host.hosted(partition)
        return hosted is not None and hosted.replica.follows(epoch)
