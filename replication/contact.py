"""Joins a replica to the beats of its node: a change in the replica takes effect there at once."""

from __future__ import annotations

from collections.abc import Mapping

from replication.heartbeats import FollowerBeats, LeaderBeats
from replication.lease import NEVER


class NodeContact:
    """A `Contact` for the replica of one partition.

    `nodes`: replica id → node, of the other voters. `leads`, `follows`: node → the beats to it and from it, shared by
    all partitions of this node, and asked anew each time, so that a node may be added later.
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

    def answered_at(self) -> float:
        """When this node last answered a beat that covered the partition, whoever led."""
        partition = self._partition
        return max(
            (self._follows[node].answered_at(partition) for node in self._nodes.values() if node in self._follows),
            default=NEVER,
        )

    def confirmed_at(self, peer: int, epoch: int) -> float:
        """Sending time of the latest beat that the peer's node answered for this partition and epoch."""
        beats = self._leads.get(self._nodes[peer])
        return NEVER if beats is None else beats.confirmed_at(self._partition, epoch)

    def changed(self, epoch: int, leader: int, leads: bool, now: float) -> None:
        """Enrols or withdraws the partition in the beats that this node sends, and moves it among those it answers."""
        for node in self._nodes.values():
            if node in self._follows:
                self._follows[node].left(self._partition)
            if node in self._leads:
                if leads:
                    self._leads[node].enrol(self._partition, epoch)
                else:
                    self._leads[node].withdraw(self._partition)
        if leader and not leads:
            beats = self._follows.get(self._nodes[leader])
            if beats is not None:
                beats.followed(self._partition, now)
