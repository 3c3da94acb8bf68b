"""What every plan looks at: the catalog, the leaders' reports, the nodes' health and the rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from autoadmin.health import Health, health
from autoadmin.view import LeaderSeen, View
from cluster.topology import NodePlace, Partition, PartitionState, ReplicaPlace, Topology

VOTERS = 3

Leaders: TypeAlias = Literal["spread", "gathered"]


@dataclass(frozen=True)
class Rules:
    """What the settings say: after how many seconds of silence a node's replicas are made anew, how many are made at
    once in the whole cluster, and where leaders sit."""

    replace_after: float = 300.0
    rebuilds_at_once: int = 4
    leaders: Leaders = "spread"


@dataclass(frozen=True)
class Situation:
    """Everything that plans depend on."""

    topology: Topology
    health: Health
    rules: Rules
    leaders: dict[int, LeaderSeen] = field(default_factory=dict)

    @classmethod
    def of(cls, topology: Topology, seen: View, now: float, rules: Rules) -> Situation:
        """The situation at `now` (seconds of boot time)."""
        return cls(topology, health(topology, seen, now, rules.replace_after), rules, seen.leaders())

    @cached_property
    def active(self) -> tuple[Partition, ...]:
        """Partitions in use, in order of id."""
        partitions = self.topology.partitions
        return tuple(partitions[id] for id in sorted(partitions) if partitions[id].state is PartitionState.ACTIVE)  # noqa: A001

    @cached_property
    def loads(self) -> Counter[int]:
        """Full replicas that each node holds or is to hold, without those that leave it."""
        return Counter(
            place.node for partition in self.active for place in partition.wanted_voters if not place.log_only
        )

    def settled_leader(self, partition: Partition) -> LeaderSeen | None:
        """The partition's leader, if it says who votes, and no two sets of voters do just now."""
        leader = self.leaders.get(partition.id)
        return leader if leader is not None and leader.voters and not leader.joint else None

    def is_usable(self, place: ReplicaPlace) -> bool:
        """Whether the replica's node reports and is to keep what it holds."""
        return place.node in self.health.usable

    def is_lost(self, place: ReplicaPlace) -> bool:
        """Whether the replica's node is given up; also when it was removed from the cluster."""
        return place.node in self.health.lost or place.node not in self.topology.nodes

    def is_draining(self, place: ReplicaPlace) -> bool:
        """Whether the replica's node is to be emptied."""
        return place.node in self.health.draining

    def is_under_way(self, partition: Partition) -> bool:
        """Whether replicas are joining the partition and do not vote yet, as far as is known."""
        leader = self.leaders.get(partition.id)
        if leader is None or not leader.voters:
            return bool(partition.leaving)
        if not partition.leaving and not leader.joint and len(partition.replicas) == len(leader.voters):
            return False
        return leader.joint or any(place.replica not in leader.voters for place in partition.wanted_voters)


def choose(
    situation: Situation,
    partition: Partition,
    without: Collection[int],
    planned: Counter[int],
    *,
    last_resort: bool = False,
) -> list[int]:
    """The nodes that may take a new replica of the partition in the place of those `without` (by id), best first.

    They hold none of it, and are in a zone that no staying voter is in, in that of the replaced one where there is a
    choice. Only when those zones have no node left at all, any other zone will do; and only when there is none either,
    and as the `last_resort`, a node that is to be emptied. Empty: the nodes there are awaited. `planned` is what was
    promised to nodes besides.
    """
    nodes = left(situation, partition, without)
    able = situation.health.usable
    if last_resort and not nodes:
        kept = _kept(partition, without)
        nodes = [node for node in situation.topology.nodes.values() if node.id not in kept]
        able = situation.health.live - situation.health.lost
    busy = _nodes_of(partition)
    free = [node for node in nodes if node.id in able and node.id not in busy]
    zones = {place.zone for place in partition.wanted_voters if place.replica in without}

    def order(node: NodePlace) -> tuple[bool, int, str, int]:
        return node.zone not in zones, situation.loads[node.id] + planned[node.id], node.name, node.id

    return [node.id for node in sorted(free, key=order)]


def left(situation: Situation, partition: Partition, without: Collection[int]) -> list[NodePlace]:
    """The nodes that may take the place of those `without`, now or once they are back or free: all of the zones that no
    staying voter is in, or else of any zone.

    Not the nodes whose own replica of the partition goes only once the new one votes: nobody is to wait for these.
    """
    taken = {place.zone for place in partition.wanted_voters if place.replica not in without}
    kept = _kept(partition, without)
    nodes = [node for node in situation.topology.nodes.values() if node.id not in kept and not _is_out(situation, node)]
    return [node for node in nodes if node.zone not in taken] or nodes


def _kept(partition: Partition, without: Collection[int]) -> set[int]:
    """Nodes that keep what they have of the partition until another replica votes: log replicas go at once, except
    those that vote, and so does what is to be dropped."""
    log_replicas = {place.node for place in partition.replicas if place.log_only and place.replica not in without}
    return _nodes_of(partition) - log_replicas - {order.node for order in partition.dropping}


def _is_out(situation: Situation, node: NodePlace) -> bool:
    """Whether there is no waiting for this node."""
    return node.id in situation.health.lost or node.id in situation.health.draining


def _nodes_of(partition: Partition) -> set[int]:
    """Nodes with a replica of the partition, those included that are yet to drop one."""
    holders: Iterable[int] = (place.node for place in partition.replicas)
    return {*holders, *(order.node for order in partition.dropping)}
