"""From this member to one other, by its address: entries, votes, heartbeats, and the question who is there.

Each is a call of its own, whose answer says which replica answered. So a member that came back with an empty disk, and
thus as another replica, is noticed at once, and nothing that was meant for the old one reaches the new one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol

from google.protobuf.message import DecodeError

from autoadmin.wire import PARTITION, answer_of, beat_to_wire, put_message
from cluster.clock import Clock
from cluster.transport import Transport, TransportError
from cluster.wire import members_pb2
from replication.effects import Fetch
from replication.heartbeats import BeatReply, FollowerBeats, LeaderBeats
from replication.lease import NEVER
from replication.membership import Membership
from replication.messages import Append, Entry, Message
from replication.replica import Replica

METHOD = "Member/Step"
BATCH_BYTES = 1 << 20
CALL_SECONDS = 2.0
BEAT_SECONDS = 0.3
"""How long a beat, or the question who is there, may go unanswered before the next."""
PAUSE_SECONDS = 0.1
"""Between two tries to bring entries to a peer that does not answer."""


class PeerHost(Protocol):
    """What a peer needs of its member."""

    clock: Clock
    transport: Transport

    @property
    def core(self) -> Replica | None:
        """The member's replica; None while it is of no group, or starts over."""
        ...

    def frame(self, to_replica: int) -> members_pb2.Frame:
        """An empty frame for that replica; 0: for whoever is there."""
        ...

    def take(self, message: Message) -> None:
        """A peer's answer for the core."""
        ...

    def not_followed(self, replica: int) -> None:
        """A peer answered a beat without following."""
        ...

    def entries(self, fetch: Fetch) -> tuple[Entry, ...]:
        """Entries that the core no longer has in memory."""
        ...

    def heard(self, peer: Peer) -> None:
        """The peer said who it is."""
        ...

    def start_work(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` beside everything else."""
        ...


class MemberContact:
    """The core's `Contact`: beats by replica. What was promised to a replica is kept when another takes its address."""

    def __init__(self) -> None:
        self.leads: dict[int, LeaderBeats] = {}
        self.follows: dict[int, FollowerBeats] = {}
        self._led: int | None = None
        self._voters: set[int] = set()

    def know(self, replica: int, leads: LeaderBeats, follows: FollowerBeats) -> None:
        """A peer is there as this replica."""
        self.leads[replica], self.follows[replica] = leads, follows
        if self._led is not None:
            leads.enrol(PARTITION, self._led)

    def answered_at(self) -> float:
        """When a beat was last answered, whoever led."""
        return max((beats.answered_at(PARTITION) for beats in self.follows.values()), default=NEVER)

    def confirmed_at(self, peer: int, epoch: int) -> float:
        """Sending time of the latest beat that the peer answered for this epoch."""
        beats = self.leads.get(peer)
        return NEVER if beats is None else beats.confirmed_at(PARTITION, epoch)

    def changed(self, epoch: int, leader: int, leads: bool, now: float) -> None:
        """Enrols in, or withdraws from, the beats to all peers, and moves among those that are answered."""
        self._led = epoch if leads else None
        for follows in self.follows.values():
            follows.left(PARTITION)
        for beats in self.leads.values():
            if leads:
                beats.enrol(PARTITION, epoch)
            else:
                beats.withdraw(PARTITION)
        if leader in self.follows and not leads:
            self.follows[leader].followed(PARTITION, now)

    def members_changed(self, membership: Membership, epoch: int) -> None:
        """Beats go to all peers, whether they vote or not; but what one answered before it voted is not a voter's
        word."""
        voters = set(membership.replicas())
        for replica, beats in self.leads.items():
            if epoch and replica in voters - self._voters:
                beats.withdraw(PARTITION)
                beats.enrol(PARTITION, epoch)
        self._voters = voters


class Peer:
    """One other member. `replica`: who answered last, 0 before anyone did; `group` and `epoch`: what it said of itself,
    `membership`: what it knows of the members."""

    def __init__(self, host: PeerHost, address: str) -> None:
        self.address = address
        self.replica = 0
        self.group = ""
        self.epoch = 0
        self.membership = b""
        self.heard_at = NEVER
        self._host = host
        self._wanted = asyncio.Event()
        self._asking = False

    def wake(self) -> None:
        """There are entries for it."""
        self._wanted.set()

    # --- calls ---

    async def call(self, frame: members_pb2.Frame, timeout: float) -> members_pb2.Reply | None:  # noqa: ASYNC109
        """Its answer, if it is the replica that is meant; None when there is none."""
        try:
            answer = await self._host.transport.call(self.address, METHOD, frame.SerializeToString(), timeout)
            reply = members_pb2.Reply.FromString(answer)
        except (TransportError, DecodeError, OSError):
            return None
        if not reply.replica:
            return None  # of another cluster
        self.replica, self.group, self.epoch = reply.replica, reply.group, reply.epoch
        self.membership = reply.membership
        self.heard_at = self._host.clock.boottime()
        self._host.heard(self)
        return reply if frame.to_replica in (0, reply.replica) else None

    async def ask(self) -> bool:
        """Ask who is there; whether anyone answered."""
        return await self.call(self._host.frame(0), BEAT_SECONDS) is not None

    def send(self, message: Message) -> None:
        """Bring a question or an order to it; the answer goes to the core."""
        self._host.start_work(self._send(message))

    async def _send(self, message: Message) -> None:
        frame = self._host.frame(message.to)
        put_message(frame, message)
        reply = await self.call(frame, CALL_SECONDS)
        answer = None if reply is None else answer_of(reply)
        if answer is not None:
            self._host.take(answer)

    # --- heartbeats ---

    def beat(self, beats: LeaderBeats | None) -> None:
        """Send the next heartbeat, or ask who is there, unless the last is still under way."""
        if not self._asking:
            self._asking = True
            self._host.start_work(self._beat(beats))

    async def _beat(self, beats: LeaderBeats | None) -> None:
        try:
            if beats is None or not self.replica:
                await self.ask()
                return
            frame = self._host.frame(self.replica)
            frame.beat.CopyFrom(beat_to_wire(beats.beat(self._host.clock.boottime())))
            reply = await self.call(frame, BEAT_SECONDS)
        finally:
            self._asking = False
        if reply is not None and reply.HasField("beat"):
            answer = BeatReply(reply.beat.sequence, reply.beat.unfollowed)
            if beats.answered(answer, self._host.clock.boottime()):
                self._host.not_followed(self.replica)

    # --- entries ---

    async def run(self) -> None:
        """Bring entries to it, one batch at a time, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            while self._has_more():
                append = self._next()
                # None: what it lacks is just being trimmed, and the core will know in a moment.
                if append is None or not await self._bring(append):
                    await asyncio.sleep(PAUSE_SECONDS)

    async def _bring(self, append: Append) -> bool:
        """Bring one batch to it; whether it was answered."""
        frame = self._host.frame(append.to)
        put_message(frame, append)
        reply = await self.call(frame, CALL_SECONDS)
        answer = None if reply is None else answer_of(reply)
        if answer is not None:
            self._host.take(answer)
        elif (core := self._host.core) is not None:
            core.lane_broken(append.to)
        return answer is not None

    def _has_more(self) -> bool:
        return self._host.core is not None and self._host.core.has_for(self.replica)

    def _next(self) -> Append | None:
        core, peer = self._host.core, self.replica
        if core is None:
            return None
        made = core.append_for(peer, BATCH_BYTES)
        return made if not isinstance(made, Fetch) else core.fetched(peer, self._host.entries(made))
