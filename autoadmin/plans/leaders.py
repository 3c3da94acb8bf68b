"""Where leaders should sit. A hint moves by one of these rules only, and leaders follow hints:

- spread: it falls to whoever leads once its replica's node is silent, is emptied, or the replica leaves; and it moves
  from one node to another when the numbers of leaders that they have differ too much;
- gathered: it names the chosen node, which is the one that most hints name already; where that has no replica, the
  next such node. It stays while the chosen node is away, and moves once that is lost or is to be emptied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from autoadmin.actions import PreferLeader
from autoadmin.plans.balance import differs
from autoadmin.plans.situation import Situation
from cluster.topology import Partition, ReplicaPlace

MOVES_AT_ONCE = 16
"""So many leaders are on their way to another node at the most, over the cluster."""


def plan_leaders(situation: Situation) -> Iterator[PreferLeader]:
    """Hints that are to change."""
    if situation.rules.leaders == "gathered":
        return _gathered(situation)
    return iter(_Spread(situation).steps())


def _gathered(situation: Situation) -> Iterator[PreferLeader]:
    out = situation.health.lost | situation.health.draining
    nodes = [node for node in situation.topology.nodes.values() if node.id not in out]
    hints = Counter(place.node for partition in situation.active if (place := _hint(partition)) is not None)
    nodes.sort(key=lambda node: (-hints[node.id], node.name, node.id))
    rank = {node.id: number for number, node in enumerate(nodes)}
    for partition in situation.active:
        able = [place for place in partition.wanted_voters if not place.log_only and place.node in rank]
        if able:
            first = min(able, key=lambda place: rank[place.node])
            if first.replica != partition.preferred_leader:
                yield PreferLeader(partition.id, first.replica)


def _hint(partition: Partition) -> ReplicaPlace | None:
    return partition.replica(partition.preferred_leader)


class _Spread:
    """One look at all leaders. `_counts` is what each node leads once every hint is followed."""

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._counts: Counter[int] = Counter()
        self._at: dict[int, int] = {}  # partitions that are led where they should be, and the node
        self._moving = 0

    def steps(self) -> list[PreferLeader]:
        steps, homeless = [], []
        for partition in self._situation.active:
            hint, leader = _hint(partition), self._leader(partition)
            if hint is not None and self._may_lead(partition, hint):
                self._counts[hint.node] += 1
                if leader == hint:
                    self._at[partition.id] = hint.node
                elif leader is not None:
                    self._moving += 1
            elif leader is not None and self._may_lead(partition, leader):
                steps.append(PreferLeader(partition.id, leader.replica))
                self._counts[leader.node] += 1
            elif leader is not None:
                homeless.append(partition)
        return [*steps, *self._housed(homeless), *self._levelled()]

    def _leader(self, partition: Partition) -> ReplicaPlace | None:
        seen = self._situation.leaders.get(partition.id)
        return None if seen is None or not seen.serving else partition.replica(seen.replica)

    def _may_lead(self, partition: Partition, place: ReplicaPlace) -> bool:
        return not place.log_only and place.replica not in partition.leaving and self._situation.is_usable(place)

    def _able(self, partition: Partition) -> list[ReplicaPlace]:
        """Voters that may lead the partition."""
        seen = self._situation.leaders.get(partition.id)
        voters = seen.voters if seen is not None else ()
        return [
            place
            for place in partition.wanted_voters
            if self._may_lead(partition, place) and (not voters or place.replica in voters)
        ]

    def _housed(self, homeless: list[Partition]) -> Iterator[PreferLeader]:
        """Leaders that are to go from where they are, to the node of theirs that leads least."""
        for partition in homeless:
            able = self._able(partition)
            if able and self._moving < MOVES_AT_ONCE:
                place = min(able, key=lambda place: (self._counts[place.node], self._name(place.node), place.node))
                self._counts[place.node] += 1
                self._moving += 1
                yield PreferLeader(partition.id, place.replica)

    def _levelled(self) -> Iterator[PreferLeader]:
        """Leaders moved from nodes that lead too many to such as lead too few."""
        while self._moving < MOVES_AT_ONCE and (move := self._next_move()) is not None:
            partition, place = move
            self._counts[self._at.pop(partition.id)] -= 1
            self._counts[place.node] += 1
            self._moving += 1
            yield PreferLeader(partition.id, place.replica)

    def _next_move(self) -> tuple[Partition, ReplicaPlace] | None:
        """Between the two nodes that differ most, of those between which something can be moved."""
        usable = self._situation.health.usable
        nodes = sorted(usable, key=lambda node: (self._counts[node], self._name(node), node))
        for most in reversed(nodes):
            for least in nodes:
                if not differs(self._counts[most], self._counts[least]):
                    break
                if least in self._situation.health.settled and (move := self._movable(most, least)) is not None:
                    return move
        return None

    def _movable(self, most: int, least: int) -> tuple[Partition, ReplicaPlace] | None:
        for id_, node in self._at.items():
            partition = self._situation.topology.partitions[id_]
            if node != most or partition.leaving:
                continue
            place = next((place for place in self._able(partition) if place.node == least), None)
            if place is not None:
                return partition, place
        return None

    def _name(self, node: int) -> str:
        return self._situation.topology.nodes[node].name
