"""How members come together: who is there, which group this member is of, the heartbeats, and the leader's exchange of
members that are lost for new ones."""

from __future__ import annotations

import asyncio
import logging

import msgspec

from autoadmin.catalog import Change
from autoadmin.founding import Answer, Join, founding, join, next_change
from autoadmin.member import CHECKS_PER_BEAT, FULL_PAUSE_SECONDS, Machine, Member
from autoadmin.peers import Peer
from autoadmin.records import MemberRecord
from autoadmin.state import StateError
from autoadmin.wire import beat_from_wire, change_to_wire, message_of, put_answer
from cluster.ids import random_id
from cluster.wire import admin_pb2, members_pb2, replication_pb2
from replication.membership import UNKNOWN
from replication.messages import AppendReply, VoteReply
from replication.replica import Replica

ASK_SECONDS = 0.2
"""Between two rounds of asking while this member is of no group."""
HELLO_SECONDS = 1.0
"""How often a member that does not lead asks who the others are."""
PRESENT_SECONDS = 3.0
"""Who has not answered for so long is not there, and no member is exchanged until it is."""
STRANGERS_MAX = 100  # groups that are told of in the log
_GROUP_BYTES = 8

_log = logging.getLogger(__name__)


class Gathering:
    """Brings `member` into its group and keeps it there."""

    def __init__(self, member: Member, machine: Machine) -> None:
        self._member = member
        self._machine = machine
        self._beats_seen: dict[int, int] = {}
        self._strange_groups: dict[str, None] = {}
        self._written = (0, 0.0)
        self._installers_asked = 0.0

    async def load(self) -> None:
        """Read what is durable, and be somebody. Raises StateError."""
        member = self._member
        stored = await member.log.load()
        record = stored.member or MemberRecord(member.cluster_id, random_id(member.random))
        owner = stored.catalog.topology.cluster_id if stored.catalog is not None else record.cluster_id
        if owner != member.cluster_id:
            raise StateError(
                f"The data directory belongs to cluster {owner}, "
                f"and this auto-admin was started for cluster {member.cluster_id}."
            )
        if stored.member is None and stored.catalog is not None:
            # From before there were members: what is here counts as the first position of a log of this one's own.
            record = msgspec.structs.replace(record, epoch=1, base_position=1, base_epoch=1, applied=1)
        if not record.group and (not member.peers or stored.catalog is not None):
            record = self._in_group(record, Join(self._new_group(), founding([record.replica])))
        await self._write(msgspec.structs.replace(record, incarnation=record.incarnation + 1))
        member.restored(stored.catalog)
        if member.record.group:
            member.open(restarted=member.record.incarnation > 1)

    async def _write(self, record: MemberRecord) -> None:
        """Make it durable who this member is; on a full disk once there is room."""
        told = False
        while True:
            self._member.log.identify(record)
            try:
                await self._member.log.write()
                return
            except OSError as error:
                if not told:
                    _log.error("the state cannot be written (%s): this member takes part once it can be", error)
                told = True
                await asyncio.sleep(FULL_PAUSE_SECONDS)

    def start(self) -> None:
        """Gather, until the member stops."""
        self._member.start_work(self._run_beats())
        if not self._member.record.group:
            self._member.start_work(self._find_group())

    # --- the group ---

    def _new_group(self) -> str:
        return self._member.random.bytes(_GROUP_BYTES).hex()

    def _in_group(self, record: MemberRecord, found: Join) -> MemberRecord:
        membership = b"" if found.membership == UNKNOWN else found.membership.encode()
        return msgspec.structs.replace(record, group=found.group, membership=membership)

    async def _find_group(self) -> None:
        """Ask all others at once, again and again, until there is a group to be of."""
        member = self._member
        while True:
            answers = await asyncio.gather(*(self._ask(peer) for peer in member.peers))
            found = join(member.record.replica, answers, self._new_group())
            if found is not None:
                member.log.identify(self._in_group(member.record, found))
                if await member.log.flushed():
                    break
            await asyncio.sleep(ASK_SECONDS)
        _log.info("this member is of group %s now, as replica %d", found.group, member.record.replica)
        member.open(restarted=False)

    async def _ask(self, peer: Peer) -> Answer | None:
        if not await peer.ask() or not peer.replica:
            return None
        return Answer(peer.replica, peer.group, peer.epoch, peer.membership)

    # --- time ---

    async def _run_beats(self) -> None:
        """Beats, silent leaders and lost members, until cancelled."""
        member, check = self._member, 0
        while True:
            await asyncio.sleep(member.timing.beat / CHECKS_PER_BEAT)
            check = (check + 1) % CHECKS_PER_BEAT
            now = member.clock.boottime()
            if check == 0 and member.core is not None:
                if member.core.role == "leader":
                    member.beat()
                    self._look_after(member.core, now)
                else:
                    for peer in member.peers:
                        if now - peer.heard_at >= HELLO_SECONDS:
                            peer.beat(None)
            for beats in list(member.contact.follows.values()):
                if beats.overdue(now) and member.core is not None:
                    member.perform(member.core.stand(now))

    def _look_after(self, core: Replica, now: float) -> None:
        """What a leader does with every beat."""
        member = self._member
        member.perform(core.check_quorum(now))
        if core.role == "leader" and self._hangs(now):
            member.hand_over()
        if now - self._installers_asked >= HELLO_SECONDS:
            self._installers_asked = now
            member.perform(core.ask_installing())
        self._exchange(core, now)

    def _hangs(self, now: float) -> bool:
        """Whether the write under way has taken too long."""
        log = self._member.log
        if not log.writing or self._written[0] != log.flushes:
            self._written = (log.flushes, now)
        return now - self._written[1] > self._member.timing.flush_hang

    def _exchange(self, core: Replica, now: float) -> None:
        """Take the next step towards the members that are there, if all are."""
        member = self._member
        if not core.may_change():
            return
        for peer in member.peers:
            if not peer.replica or now - peer.heard_at > PRESENT_SECONDS or peer.group not in ("", member.record.group):
                return
        present = {member.record.replica, *(peer.replica for peer in member.peers)}
        if len(present) <= len(member.peers):
            return
        matched = [peer for peer in core.membership.learners if (core.match_of(peer) or 0) >= core.commit]
        step = next_change(core.membership, present, matched)
        if step is not None:
            _log.info("the members change: %s", step)
            try:
                member.perform(core.change(step, now))
            except ValueError as error:  # a learner was not heard of yet, say
                _log.debug("not now: %s", error)

    # --- what others ask ---

    async def answer(self, message: bytes) -> bytes:
        """Member/Step: answers what is meant for this replica, and tells everyone of the cluster who is there."""
        member = self._member
        frame = members_pb2.Frame.FromString(message)
        if frame.cluster_id != member.cluster_id:
            return members_pb2.Reply().SerializeToString()
        content = members_pb2.Reply()
        group, own = member.record.group, member.record.replica
        known = self._strange_groups
        if frame.group and group and frame.group != group and frame.group not in known and len(known) < STRANGERS_MAX:
            known[frame.group] = None
            _log.error(
                "replica %d is of group %s, and this member of %s: the members were founded twice; of one group, move "
                "the folders named state away",
                frame.from_replica,
                frame.group,
                group,
            )
        if frame.group and frame.group == group and frame.to_replica == own and member.core is not None:
            await self._answer(frame, member.core, content)
        core = member.core
        content.group, content.replica = member.record.group, own
        content.epoch = member.record.epoch if core is None else core.epoch
        content.membership = member.record.membership if core is None else core.membership.encode()
        return content.SerializeToString()

    async def _answer(self, frame: members_pb2.Frame, core: Replica, reply: members_pb2.Reply) -> None:
        match frame.WhichOneof("content"):
            case "beat":
                self._answer_beat(frame, core, reply)
            case "snapshot":
                self._answer_snapshot(frame.snapshot, core, reply)
            case None:
                pass
            case _:
                await self._step(frame, core, reply)

    async def _step(self, frame: members_pb2.Frame, core: Replica, reply: members_pb2.Reply) -> None:
        member, message = self._member, message_of(frame)
        assert message is not None
        effects = core.step(message, member.clock.boottime())
        member.perform(effects)
        for answer in effects.send_at_once:
            if isinstance(answer, VoteReply):
                put_answer(reply, answer)
        late = [answer for answer in effects.send_after_flush if isinstance(answer, VoteReply | AppendReply)]
        if late and await member.log.flushed():
            put_answer(reply, late[0])

    def _answer_beat(self, frame: members_pb2.Frame, core: Replica, reply: members_pb2.Reply) -> None:
        member, now, sender = self._member, self._member.clock.boottime(), frame.from_replica
        if frame.beat.sequence <= self._beats_seen.get(sender, -1):
            return  # an older call that was late
        self._beats_seen[sender] = frame.beat.sequence
        beat = beat_from_wire(frame.beat)
        received = member.know(sender).receive(beat, now, lambda _partition, epoch: core.follows(epoch))
        reply.beat.CopyFrom(
            replication_pb2.BeatReply(sequence=received.reply.sequence, unfollowed=received.reply.unfollowed)
        )
        for _, epoch, position in received.commits:
            member.perform(core.commit_heard(position, epoch))
        for _, epoch in received.withdrawn:
            member.perform(core.leader_gone(epoch, now))

    def _answer_snapshot(self, request: members_pb2.SnapshotRequest, core: Replica, reply: members_pb2.Reply) -> None:
        if core.lacks_state or core.applied < request.position:
            return
        catalog, position = self._machine.catalog, core.applied
        reply.snapshot.position = position
        reply.snapshot.epoch = self._member.log.epoch_at(position)
        reply.snapshot.membership = core.membership_at(position).encode()
        reply.snapshot.catalog.CopyFrom(change_to_wire(Change(catalog.topology.full(), catalog.counters)))

    def status(self) -> admin_pb2.MemberRecord:
        """This member as it sees itself."""
        record, core = self._member.record, self._member.core
        if core is None:
            return admin_pb2.MemberRecord(replica=record.replica, role="waiting")
        votes = record.replica in core.membership.replicas()
        return admin_pb2.MemberRecord(
            replica=record.replica,
            role=core.role if votes else "learner",
            epoch=core.epoch,
            leader=core.leader,
            voters=core.membership.voters,
            position=core.last_position,
            applied=core.applied,
            serving=core.may_write(),
        )
