"""The world of `replication_world` with members that come and go, whatever else goes wrong.

Replicas are added on spare nodes, full or with a log only, promoted one for another or alone, and removed, the leader
too; removed ones are dropped at some time or linger, and their disks are lost. A voter's disk may be lost for good, as
long as a majority of every set of voters that may count is left.
"""

from __future__ import annotations

from functools import partial
from itertools import count

from replication.changes import AddLearner, Change, Promote, RemoveLearner
from replication.membership import UNKNOWN, Member, Membership
from replication.messages import MEMBERSHIP
from tests.property.replication_world import FAULTS, Node, World
from tests.unit.replication_member import Disk
from tests.unit.replication_member import Member as MemberShell

MEMBERSHIP_FAULTS = (*FAULTS, "lose")
VOTERS_MAX = 4


class MembershipWorld(World):
    """Three or five founders and two spare nodes. `joined`: who was promoted, `log_replicas`: of a log only."""

    def __init__(self, seed: int, size: int = 3) -> None:
        super().__init__(seed, size, spares=2)
        self.faults = MEMBERSHIP_FAULTS
        self.fresh = count(100)
        self.awaited: dict[int, int] = {}
        """Node → replica that is to be opened there once the one that lingers is dropped."""
        self.voters_max = max(VOTERS_MAX, size)
        self.joined: set[int] = set()
        self.log_replicas: set[int] = set()
        self.lost = 0
        self.committed_membership = self.membership
        self.after(0.5, self.reshape)

    # What is changed

    def reshape(self) -> None:
        """Some leader takes one step, if it may."""
        if not self.stormy:
            return
        for node in self.nodes.values():
            if node.member is not None and node.member.replica.may_change():
                node.later(0.0, partial(self._change, node))
        self._drop_someone()
        self.after(self.random.uniform(0.05, 0.5), self.reshape)

    def _change(self, node: Node) -> None:
        replica = node.alive().replica
        if replica.may_change() and (change := self._choose(node)) is not None:
            node.alive().perform(replica.change(change, node.now))

    def _choose(self, node: Node) -> Change | None:
        replica = node.alive().replica
        membership, random = replica.membership, self.random
        ready = [
            learner for learner in membership.learners if self._is_ready(replica.match_of(learner), replica.commit)
        ]
        if ready and random.random() < 0.8:
            return self._promotion(membership, random.choice(ready))
        if membership.learners and random.random() < 0.1:
            return RemoveLearner(random.choice(membership.learners))
        # Where states get lost, two voters could not elect anybody.
        if len(membership.voters) > (3 if self.trims else 2) and random.random() < 0.1:
            return self._promotion(membership, 0)
        if len(membership.learners) < 2:
            return self._open(membership)
        return None

    def _is_ready(self, match: int | None, commit: int) -> bool:
        return bool(match) and (match or 0) >= commit - 20

    def _promotion(self, membership: Membership, learner: int) -> Change | None:
        """With one voter less, unless there is room for one more; none if no full voter would be left that can lead."""
        voters = list(membership.voters)
        alive = {node.replica for node in self.nodes.values()}
        gone = [voter for voter in voters if voter not in alive]
        if not learner or len(voters) >= self.voters_max or self.random.random() < 0.6:
            voters.remove(self.random.choice(gone or voters))
        voters += [learner] if learner else []
        full = [voter for voter in voters if not membership.is_log_only(voter) and voter in alive]
        if len(full) < 2 or 2 * len([voter for voter in voters if voter in alive]) <= len(voters):
            return None
        if learner:
            self.joined.add(learner)
        return Promote(tuple(voters))

    def _open(self, membership: Membership) -> Change | None:
        """A new replica on a spare node; sometimes a removed one lingers there, or it never hears that it is wanted."""
        taken = {self.places[member.replica] for member in membership.members}
        free = [node for node in self.nodes.values() if node.number not in taken and node.number not in self.awaited]
        free = [node for node in free if not node.replica or self.random.random() < 0.3]
        if not free:
            return None
        node, member = self.random.choice(free), next(self.fresh)
        log_only = self.random.random() < 0.3
        self.places[member] = node.number
        if log_only:
            self.log_replicas.add(member)
        if node.replica:
            self.awaited[node.number] = member
        elif self.random.random() < 0.9:
            self._begin(node, member)
        return AddLearner(Member(member, node.number, log_only))

    def _begin(self, node: Node, replica: int) -> None:
        """The node opens the replica, which knows nothing."""
        node.replica, node.log_only = replica, replica in self.log_replicas
        node.membership, node.disk = UNKNOWN, Disk()
        node.commit_checked = node.epoch_checked = 0
        node.start(new=True)

    def _begin_awaited(self, node: Node) -> None:
        """Until now the node was taken: a second one opened there would overwrite a disk that nobody lost."""
        self._begin(node, self.awaited.pop(node.number))

    # What goes for good

    def _wipe(self, node: Node) -> None:
        """The node is there, and has nothing."""
        self.lost_disks[node.replica] = node.disk
        node.member = None
        node.replica = 0
        node.disk = Disk()
        if node.number in self.awaited:
            self.after(self.random.uniform(0.1, 1.0), partial(self._begin_awaited, node))

    def _drop_someone(self) -> None:
        """An order reaches one that is no member any more, in a membership as new as any that it knows of."""
        for node in self.nodes.values():
            if node.member is not None and node.member.replica.membership_committed:
                membership = node.member.replica.membership
                if membership.version > self.committed_membership.version and not membership.joint:
                    self.committed_membership = membership
        latest = self.committed_membership
        for node in self.nodes.values():
            if node.member is None or self.random.random() < 0.9 or latest.member(node.replica):
                continue
            own = node.member.replica.membership
            if own.version <= latest.version and own is not UNKNOWN:
                self._wipe(node)

    def _check_node(self, node: Node, member: MemberShell) -> None:
        super()._check_node(node, member)
        history = member.replica._history
        if history.position >= member.replica.first_position:
            entry = member.log[history.position - 1] if history.position <= len(member.log) else None
            if entry is None or entry.kind != MEMBERSHIP or entry.payload != history.current.encode():
                self.fail(f"node {node.number} has a membership that its log does not hold")

    def storm(self) -> None:
        """Now and then a disk is lost instead of what else goes wrong."""
        if self.stormy and "lose" in self.faults and self.random.random() < 0.06:
            node = self.random.choice(list(self.nodes.values()))
            if node.replica and self._may_be_lost(node.replica):
                self.lost += 1
                self._wipe(node)
        super().storm()

    def _sets(self) -> list[tuple[int, ...]]:
        """Every set of voters that may count, as far as anybody running knows, or ever knew to be committed."""
        known = [node.member.replica.membership for node in self.nodes.values() if node.member is not None]
        return [
            voters
            for membership in (self.committed_membership, *known)
            if membership.version >= self.committed_membership.version
            for voters in membership.sets()
        ]

    def may_lose_state(self, victim: Node) -> bool:
        """Whoever is without its state does not stand: not where a voter is gone for good as well."""
        there = {node.replica for node in self.nodes.values()}
        return super().may_lose_state(victim) and all(there.issuperset(voters) for voters in self._sets())

    def _may_be_lost(self, replica: int) -> bool:
        """Whether a majority of every set that may count, full voters among it, is left with all that it needs."""
        replicas = [node for node in self.nodes.values() if node.replica]
        if any(
            node.member is None or node.disk.applied < node.disk.first - 1 for node in replicas if not node.log_only
        ):
            return False  # nobody can tell what one that is down knows
        left = {node.replica for node in replicas} - {replica}
        full = {node.replica for node in replicas if not node.log_only} - {replica}
        return all(
            2 * len(left.intersection(voters)) > len(voters) and len(full.intersection(voters)) > 1
            for voters in self._sets()
        )
