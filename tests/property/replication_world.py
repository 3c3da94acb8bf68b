"""A partition's replicas in virtual time, with everything going wrong, and checks after every event.

One seed gives one history. Messages are late, lost, doubled and overtake each other; nodes crash (and lose what was not
flushed; a machine loses its clock and its state too, and sometimes its snapshot), freeze, and are cut off in one or
both directions; clocks run apart as far as `Timing.drift` allows. A broken promise raises `ViolationError` with the
seed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from random import Random

from replication.contact import NodeContact
from replication.heartbeats import Beat, BeatReply, FollowerBeats, LeaderBeats
from replication.lease import NEVER
from replication.membership import Membership
from replication.messages import MEMBERSHIP, NORMAL, AppendReply, Entry, Message
from replication.timing import Timing
from tests.unit.replication_member import Disk, Installed, Member, Record

PARTITION = 7
LANE_TIMEOUT = 0.4
FAULTS = ("crash", "crash", "machine", "cut", "isolate", "freeze", "hand over", "rumour", "rumour")
AT_LEADERS = ("hand over", "rumour")
Content = Message | Beat | BeatReply


class ViolationError(AssertionError):
    """A promise of replication was broken."""


class Node:
    """One node with its replica, its clock and its beats.

    `replica`: its id, 0 for none; a founder has its node's number. `member` is None while the node is down.
    """

    def __init__(self, world: World, number: int, *, founder: bool = True) -> None:
        self.world = world
        self.number = number
        self.replica = number if founder else 0
        self.log_only = False
        self.membership = world.membership
        self.disk = Disk()
        self.peers = [other for other in world.numbers if other != number]
        self.incarnation = 0
        self.member: Member | None = None
        self.frozen_until = 0.0
        self.rate = 1.0
        self.offset = 0.0
        self.epoch_checked = 0
        self.start(new=True)

    @property
    def now(self) -> float:
        """This node's clock."""
        return self.offset + self.rate * self.world.time

    def start(self, *, new: bool = False) -> None:
        """A new process on what the disk holds. Does nothing on a node without a replica."""
        world = self.world
        if not self.replica:
            return
        if new or self.offset == NEVER:
            drift = world.timing.drift
            self.rate = world.random.uniform(1 - drift, 1 + drift)
            self.offset = world.random.uniform(0, 1000)
        self.disk.restore()
        self.incarnation += 1
        self.leads = {peer: LeaderBeats(self.incarnation << 32) for peer in self.peers}
        self.follows = {peer: FollowerBeats(world.timing, world.random) for peer in self.peers}
        self.lane_busy: dict[int, int] = {}
        self.flushing = self.applying = False
        self.timer_at = float("inf")
        self.commit_told = self.commit_checked = 0
        self.member = Member(
            self.replica,
            self.membership,
            world.timing,
            disk=self.disk,
            seed=world.random.getrandbits(32),
            now=self.now,
            restarted_at=NEVER if new else self.now + world.restart_error,
            contact=NodeContact(PARTITION, world.places, self.leads, self.follows),
            memory_bytes=world.memory_bytes,
            log_only=self.log_only,
            committed=lambda position: world.committed[:position],
        )
        self.installing = False
        self.later(world.random.uniform(0, world.timing.beat), self.beat)

    def crash(self, *, machine: bool) -> None:
        """The process ends, or the whole machine: the state on it is then not trusted, and its clock begins anew."""
        self.member = None
        if machine:
            self.disk.applied = 0
            self.offset = NEVER
            if self.world.may_lose_state(self) and self.world.random.random() < 0.4:
                self.disk.snapshot = 0

    def later(self, delay: float, what: Callable[[], None]) -> None:
        """Does `what` after a while, unless the process has ended by then; a frozen one does it when it thaws."""
        incarnation = self.incarnation

        def happen() -> None:
            if self.member is None or self.incarnation != incarnation:
                return
            if self.world.time < self.frozen_until:
                self.world.after(self.frozen_until - self.world.time, happen)
                return
            what()
            self.after_event()

        self.world.after(delay, happen)

    def beat(self) -> None:
        """The beat timer: beats to every peer, overdue elections, the leader's majority."""
        member, world = self.alive(), self.world
        member.perform(member.replica.check_quorum(self.now))
        for peer, beats in self.follows.items():
            if PARTITION in beats.overdue(self.now):
                assert peer != self.number
                member.perform(member.replica.stand(self.now))
        self.send_beats()
        if world.random.random() < 0.3:
            member.perform(member.replica.ask_installing())
            member.perform(member.replica.tell_held(self.now))
        if world.trims and world.random.random() < 0.5:
            self.trim()
        self.later(world.timing.beat / self.rate, self.beat)

    def trim(self) -> None:
        """Make a snapshot, and trim some of the log that it covers."""
        member = self.alive()
        if self.log_only:
            if member.replica.held >= member.replica.first_position:
                member.trim(self.world.random.randint(member.replica.first_position, member.replica.held + 1))
        elif not self.installing and not member.replica.lacks_state and self.disk.applied >= self.disk.first:
            member.trim(self.world.random.randint(self.disk.first, self.disk.applied + 1))

    def fetch_snapshot(self) -> None:
        """Bring a snapshot here from the node that was named, if it can be reached, and begin to install it."""
        member, self.installing = self.alive(), False
        wanted, asked = member.replica.wanted_snapshot, member.install
        if wanted is None or asked is None:
            member.install = None
            return
        source = self.world.nodes[self.world.places[asked.source]]
        gone = source.member is None or source.replica != asked.source or source.log_only
        if gone or self.world.is_cut(source.number, self.number):
            member.install = None  # asked for again with the next Append
            return
        assert source.member is not None
        if source.disk.snapshot < wanted and not source.member.replica.lacks_state and not source.installing:
            source.disk.snapshot = source.disk.applied
        if source.disk.snapshot < wanted:
            member.install = None
            return
        self.installing = True
        self.world.installs += 1
        membership = source.member.replica.membership_at(source.disk.snapshot)
        member.begin_install(source.disk.entries[: source.disk.snapshot], membership)

    def finish_install(self) -> None:
        """The snapshot's state is in place."""
        self.installing = False
        self.alive().finish_install()

    def hear_rumour(self) -> None:
        """The leader is said to be gone. Sometimes the process ends over it."""
        member = self.alive()
        member.perform(member.replica.leader_gone(member.replica.epoch, self.now))
        if self.world.random.random() < 0.3:
            self.crash(machine=False)
            self.start()

    def stand(self) -> None:
        """Stands out of turn."""
        member = self.alive()
        member.perform(member.replica.stand(self.now))

    def send_beats(self) -> None:
        """One beat to each peer."""
        for peer, beats in self.leads.items():
            self.world.send(self.number, peer, beats.beat(self.now))

    def alive(self) -> Member:
        """The running member."""
        assert self.member is not None
        return self.member

    def receive(self, sender: int, content: Content) -> None:
        """A message that has arrived."""
        member = self.alive()
        match content:
            case Beat():
                answer = self.follows[sender].receive(content, self.now, lambda _, epoch: member.replica.follows(epoch))
                self.world.send(self.number, sender, answer.reply)
                for _, epoch, position in answer.commits:
                    member.perform(member.replica.commit_heard(position, epoch))
                for _, epoch in answer.withdrawn:
                    member.perform(member.replica.leader_gone(epoch, self.now))
            case BeatReply():
                for _ in self.leads[sender].answered(content, self.now):
                    for peer in member.replica.membership.members:
                        if self.world.places[peer.replica] == sender:
                            member.perform(member.replica.not_followed(peer.replica))
            case _:
                if isinstance(content, AppendReply):
                    self.lane_busy.pop(content.sender, None)
                member.perform(member.replica.step(content, self.now))

    def after_event(self) -> None:
        """Sees to everything that the member's queues ask for, then has the world checked."""
        member, world = self.alive(), self.world
        if member.unflushed and not self.flushing:
            self.flushing = True
            self.later(world.flush_time(), self.flush)
        if member.install is not None and not self.installing:
            self.installing = True
            self.later(world.random.uniform(0.01, 1.0), self.fetch_snapshot)
        if (member.to_apply or member.loading) and not self.applying:
            self.applying = True
            self.later(world.random.uniform(0, 0.003), self.apply)
        if world.acknowledge_early:
            early = [record for record in member.unflushed if not isinstance(record, Record)]
            member.unflushed = [record for record in member.unflushed if isinstance(record, Record)]
            member.outbox.extend(early)
        for message in member.sent():
            world.send(self.number, world.places[message.to], message)
        self.pump()
        if any(beats.changed for beats in self.leads.values()):
            self.send_beats()
        if member.replica.role == "leader" and member.replica.commit != self.commit_told:
            self.commit_told = member.replica.commit
            for beats in self.leads.values():
                beats.commit_moved(PARTITION, self.commit_told)
        self.arm()

    def pump(self) -> None:
        """Fills free lanes."""
        member = self.alive()
        for peer in [each.replica for each in member.replica.membership.members]:
            if peer not in self.lane_busy and member.replica.has_for(peer):
                append = member.append_for(peer, self.world.random.choice((1, 200, 1 << 20)))
                if append is not None:
                    token = self.lane_busy[peer] = next(self.world.ties)
                    self.world.send(self.number, self.world.places[peer], append)
                    self.later(LANE_TIMEOUT, partial(self.lane_timeout, peer, token))

    def lane_timeout(self, peer: int, token: int) -> None:
        """No answer came."""
        if self.lane_busy.get(peer) == token:
            del self.lane_busy[peer]
            self.alive().replica.lane_broken(peer)

    def flush(self) -> None:
        """The flush that was under way ends; what came since is the next one's."""
        self.flushing = False
        member = self.alive()
        installed = any(isinstance(record, Installed) for record in member.unflushed)
        member.flush()
        if installed:
            self.later(self.world.random.uniform(0.001, 0.2), self.finish_install)

    def apply(self) -> None:
        """Applies what was handed out."""
        self.applying = False
        member = self.alive()
        member.load(self.world.random.randint(1, 4))
        for entry in member.apply():
            self.world.applied(self, entry)

    def arm(self) -> None:
        """Sets the timer for the replica's deadline."""
        deadline = self.alive().replica.deadline()
        if deadline is None or deadline == self.timer_at:
            return
        self.timer_at = deadline
        self.later(max(0.0, (deadline - self.now) / self.rate) + 1e-6, self.tick)

    def tick(self) -> None:
        """The timer went off."""
        self.timer_at = float("inf")
        self.alive().perform(self.alive().replica.tick(self.now))


class World:
    """The nodes, the network between them, the faults, and what must hold."""

    def __init__(self, seed: int, size: int = 3, timing: Timing | None = None, spares: int = 0) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.timing = timing or Timing()
        self.numbers = list(range(1, size + spares + 1))
        self.membership = Membership(tuple(self.numbers[:size]))
        self.places = {number: number for number in self.membership.voters}
        """Replica → node, of all that there ever were."""
        self.time = 0.0
        self.ties = count()
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.stormy = True
        self.faults: tuple[str, ...] = FAULTS
        self.acknowledge_early = False
        self.restart_error = 0.0
        self.trims = False
        self.installs = 0
        self.memory_bytes = self.random.choice((300, 1 << 20))
        self.cut: dict[tuple[int, int], float] = {}
        self.leaders: dict[int, int] = {}
        self.committed: list[Entry] = []
        self.known: dict[tuple[int, int], tuple[Entry, int]] = {}
        self.proposed = 0
        self.reads = 0
        self.acknowledged = 0
        self.lost_disks: dict[int, Disk] = {}
        """What replicas held that are gone for good: who is gone does not vote for anybody either."""
        self.nodes: dict[int, Node] = {}
        for number in self.numbers:
            self.nodes[number] = Node(self, number, founder=number <= size)

    # Running

    def after(self, delay: float, what: Callable[[], None]) -> None:
        """An event; equal times run oldest first."""
        heappush(self.events, (self.time + delay, next(self.ties), what))

    def run(self, duration: float, check: bool = True) -> None:
        """Lets time pass, checking after every event."""
        end = self.time + duration
        while self.events and self.events[0][0] <= end:
            self.time, _, what = heappop(self.events)
            what()
            if check:
                self.check()
        self.time = end

    def flush_time(self) -> float:
        """Seconds that one flush takes."""
        slow = self.stormy and self.random.random() < 0.05
        return self.random.uniform(0.1, 0.5) if slow else self.random.uniform(0.0005, 0.005)

    def is_cut(self, sender: int, to: int) -> bool:
        """Whether nothing gets from the one to the other."""
        return self.cut.get((sender, to), 0.0) > self.time

    def may_lose_state(self, victim: Node) -> bool:
        """Whether every other node has its state or a snapshot to make it from: no more than one may lose both."""
        return self.trims and all(
            max(node.disk.applied, node.disk.snapshot) >= node.disk.first - 1
            for node in self.nodes.values()
            if node is not victim and node.replica and not node.log_only
        )

    def send(self, sender: int, to: int, content: Content) -> None:
        """Puts a message on the network."""
        copies = 1
        if self.stormy:
            if self.is_cut(sender, to) or self.random.random() < 0.03:
                return
            copies += self.random.random() < 0.03
        incarnation = self.nodes[to].incarnation
        for _ in range(copies):
            late = self.stormy and self.random.random() < 0.05
            delay = self.random.uniform(0.05, 1.0) if late else self.random.uniform(0.0002, 0.004)
            self.after(delay, lambda: self.arrive(sender, to, incarnation, content))

    def arrive(self, sender: int, to: int, incarnation: int, content: Content) -> None:
        """Hands a message to the process that it was meant for."""
        node = self.nodes[to]
        if node.member is not None and node.incarnation == incarnation:
            node.later(0.0, lambda: node.receive(sender, content))

    # What goes wrong, and the load

    def storm(self) -> None:
        """One fault now, the next a little later."""
        if not self.stormy:
            return
        leading = self._leading_nodes()
        fault = self.random.choice(self.faults)
        node = self.random.choice(leading if leading and fault in AT_LEADERS else [*self.nodes.values(), *leading])
        length = self.random.uniform(0.02, 2.0)
        if fault in ("crash", "machine"):
            node.crash(machine=fault == "machine")
            self.after(self.random.choice((0.01, 0.2, length)), lambda: self.restart(node))
        elif fault == "cut":
            self.cut[node.number, self.random.choice(node.peers)] = self.time + length
        elif fault == "isolate":
            for peer in node.peers:
                self.cut[node.number, peer] = self.cut[peer, node.number] = self.time + length
        elif fault == "freeze":
            node.frozen_until = self.time + length
        elif fault in AT_LEADERS and node.member is not None and node.member.replica.role == "leader":
            to = self.random.choice([heir for heir in node.member.replica.heirs if heir != node.replica] or [0])
            if to and self.random.random() < 0.7:
                self.cut[self.places[to], node.number] = self.time + length
            if to and fault == "hand over":
                node.later(0.0, lambda: self._hand_over(node, to))
            elif to:
                self._rumour(self.places[to])
        self.after(self.random.uniform(0.1, 1.2), self.storm)

    def _hand_over(self, node: Node, to: int) -> None:
        member = node.alive()
        if member.replica.role == "leader" and to in member.replica.heirs:
            member.perform(member.replica.hand_over(to, node.now))

    def _rumour(self, candidate: int) -> None:
        """Followers hear that their leader is gone, and one stands at once: leases alone keep the promises then."""
        for node in self.nodes.values():
            if node.member is not None and node.member.replica.role == "follower":
                node.later(0.0, node.hear_rumour)
        self.after(0.001, lambda: self.nodes[candidate].later(0.0, self.nodes[candidate].stand))

    def _leading_nodes(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.member and node.member.replica.role == "leader"]

    def restart(self, node: Node) -> None:
        """Starts a node that is down."""
        if node.member is None:
            node.start()

    def heal(self) -> None:
        """No more faults; everything is up."""
        self.stormy = False
        for node in self.nodes.values():
            node.frozen_until = 0.0
            self.restart(node)

    def load(self) -> None:
        """Every serving leader proposes now and then; a deposed one that thinks it serves does, too."""
        for node in self.nodes.values():
            if node.member is not None and node.member.replica.may_write():
                node.later(0.0, partial(self._propose, node))
        self.after(self.random.uniform(0.005, 0.06), self.load)

    def _propose(self, node: Node) -> None:
        member = node.alive()
        if member.replica.may_write():
            payloads = []
            for _ in range(self.random.randint(1, 3)):
                self.proposed += 1
                payloads.append(b"%d" % self.proposed)
            member.perform(member.replica.propose(payloads, node.now))

    def epochs(self) -> set[int]:
        """The epochs that the members are in."""
        return {node.member.replica.epoch for node in self.members() if node.member is not None}

    def members(self) -> list[Node]:
        """The nodes of the members that run, as the newest membership says that is known to be committed."""
        replicas = [node.member.replica for node in self.nodes.values() if node.member is not None]
        known = [replica.membership for replica in replicas if replica.membership_committed]
        newest = max(known, key=lambda membership: membership.version)
        return [node for node in self.nodes.values() if newest.member(node.replica) and node.member is not None]

    # What must hold

    def fail(self, text: str) -> None:
        """A promise was broken."""
        raise ViolationError(f"seed {self.seed}, time {self.time:.4f}: {text}")

    def applied(self, node: Node, entry: Entry) -> None:
        """A leader that applies a command of its own epoch acknowledges it."""
        replica = node.alive().replica
        if replica.role == "leader" and (entry.epoch, entry.kind) == (replica.epoch, NORMAL):
            self.acknowledged = max(self.acknowledged, entry.position)

    def check(self) -> None:
        """Everything that can be seen from outside at this moment."""
        for node in self.nodes.values():
            if node.member is not None:
                self._check_node(node, node.member)
        self._check_leases()

    def _check_node(self, node: Node, member: Member) -> None:
        replica = member.replica
        if replica.role == "leader" and self.leaders.setdefault(replica.epoch, node.replica) != node.replica:
            self.fail(f"epoch {replica.epoch} has two leaders")
        if replica.log_only and (replica.may_write() or replica.may_read(node.now)):
            self.fail(f"node {node.number} serves without a state")
        if node.disk.applied > len(node.disk.entries):
            self.fail(f"node {node.number} applied what its disk does not hold")
        if replica.lacks_state and replica.role == "leader":
            self.fail(f"node {node.number} leads without its state")
        self._check_log(member)
        for entry in member.log[len(self.committed) : replica.commit]:
            self.committed.append(entry)
            self._check_majority(entry, replica.membership)
            if entry.kind == MEMBERSHIP:
                self._check_majority(entry, Membership.decode(entry.payload))
        seen = slice(node.commit_checked, replica.commit)
        if replica.commit > len(member.log) or member.log[seen] != self.committed[seen]:
            self.fail(f"node {node.number} has another committed log")
        node.commit_checked = replica.commit
        if replica.role == "leader" and replica.epoch > node.epoch_checked:
            node.epoch_checked = replica.epoch
            if node.replica not in replica.membership.replicas():
                self.fail(f"node {node.number} was elected without being a voter")
            if replica.epoch == max(self.leaders) and member.log[: len(self.committed)] != self.committed:
                self.fail(f"leader {node.number} of epoch {replica.epoch} lacks committed entries")

    def _check_log(self, member: Member) -> None:
        """The same position and epoch hold the same entry after the same epoch: then equal epochs mean equal logs."""
        for entry in reversed(member.log[-8:]):
            before = member.log[entry.position - 2].epoch if entry.position > 1 else 0
            if self.known.setdefault((entry.position, entry.epoch), (entry, before)) != (entry, before):
                self.fail(f"two entries at position {entry.position} of epoch {entry.epoch}")

    def _check_majority(self, entry: Entry, membership: Membership) -> None:
        index = entry.position - 1
        disks = {**self.lost_disks, **{node.replica: node.disk for node in self.nodes.values()}}
        holders = [replica for replica, disk in disks.items() if disk.entries[index : index + 1] == [entry]]
        for voters in membership.sets():
            if 2 * sum(voter in holders for voter in voters) <= len(voters):
                self.fail(f"position {entry.position} is committed and on the disks of {holders} only, of {voters}")

    def _check_leases(self) -> None:
        """Who may read has all that was acknowledged, and nobody newer may write."""
        members = [(node, node.member.replica) for node in self.nodes.values() if node.member is not None]
        for node, replica in members:
            if not replica.may_read(node.now):
                continue
            self.reads += 1
            if replica.applied < self.acknowledged:
                self.fail(f"node {node.number} may read at {replica.applied} of {self.acknowledged}")
            for other, newer in members:
                if newer.epoch > replica.epoch and newer.may_write():
                    self.fail(f"node {node.number} may read while node {other.number} may write")
