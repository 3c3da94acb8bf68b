"""Joins a replica to the beats of its node: a change in the replica takes effect there at once."""

from __future__ import annotations

from collections.abc import Mapping

from replication.heartbeats import FollowerBeats, LeaderBeats
from replication.lease import NEVER
from replication.membership import Membership


class NodeContact:
    """A `Contact` for the replica of one partition.

    `nodes`: replica id → node, of the other replicas, as far as is known; the membership may know more. `leads`,
    `follows`: node → the beats to it and from it, shared by all partitions of this node. All three are asked anew each
    time, so that replicas and nodes may be added later.
    """

    def __init__(
        self,
        partition: int,
        nodes: Mapping[int, int],
        leads: Mapping[int, LeaderBeats],
        follows: Mapping[int, FollowerBeats],
    ) -> None:
        self._partition = partition
        self._nodes = nodes
        self._leads = leads
        self._follows = follows
        self._membership = Membership(tuple(nodes))

    def answered_at(self) -> float:
        """When this node last answered a beat that covered the partition, whoever led, members or not by now."""
        partition = self._partition
        return max((beats.answered_at(partition) for beats in self._follows.values()), default=NEVER)

    def confirmed_at(self, peer: int, epoch: int) -> float:
        """Sending time of the latest beat that the peer's node answered for this partition and epoch."""
        beats = self._leads.get(self._node_of(peer))
        return NEVER if beats is None else beats.confirmed_at(self._partition, epoch)

    def changed(self, epoch: int, leader: int, leads: bool, now: float) -> None:
        """Enrols or withdraws the partition in the beats that this node sends, and moves it among those it answers."""
        for beats in self._follows.values():
            beats.left(self._partition)
        if leads:
            self._enrol(epoch)
            return
        for sent in self._leads.values():
            sent.withdraw(self._partition)
        followed = self._follows.get(self._node_of(leader))
        if leader and followed is not None:
            followed.followed(self._partition, now)

    def members_changed(self, membership: Membership, epoch: int) -> None:
        """Withdraws the partition where it has no member any more, and enrols it where it has a new one.

        It is also enrolled anew where a replica has become a voter: what its node answered before was not a voter's
        word, and may have been another replica's.
        """
        before = self._membership
        if epoch:
            stay = set(before.replicas()) & {member.replica for member in membership.members}
            for member in before.members:
                beats = self._leads.get(self._node_of(member.replica))
                if beats is not None and member.replica not in stay:
                    beats.withdraw(self._partition)
        self._membership = membership
        if epoch:
            self._enrol(epoch)

    def _enrol(self, epoch: int) -> None:
        for member in self._membership.members:
            beats = self._leads.get(self._node_of(member.replica))
            if beats is not None:
                beats.enrol(self._partition, epoch)

    def _node_of(self, replica: int) -> int:
        member = self._membership.member(replica)
        return self._nodes.get(replica, 0) or (0 if member is None else member.node)
