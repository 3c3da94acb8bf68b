"""Full replicas are spread over the nodes of a zone: a new node takes its share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from autoadmin.actions import AddReplica
from autoadmin.plans.members import URGENCY, Budget
from autoadmin.plans.situation import Situation
from cluster.topology import MembershipChange, Partition

TOLERATED = 0.2
"""What is left alone: a difference of up to this part of the larger number, or of one."""


def differs(more: int, fewer: int) -> bool:
    """Whether two loads differ so much that something is moved."""
    return more - fewer >= 2 and more - fewer > TOLERATED * more


def plan_balance(situation: Situation, budget: Budget) -> Iterator[AddReplica]:
    """Moves from the fullest to the emptiest usable node of each zone, while they differ too much.

    Not while anything is repaired: that itself changes what nodes hold.
    """
    if budget.planned or any(partition.change in URGENCY for partition in situation.active):
        return
    zones: dict[str, list[int]] = {}
    for node in situation.topology.nodes.values():
        if node.id in situation.health.usable:
            zones.setdefault(node.zone, []).append(node.id)
    if all(len(nodes) == 1 for nodes in zones.values()):
        return
    counts = situation.loads + budget.planned
    movable = [partition for partition in situation.active if _is_movable(situation, partition)]
    for zone in sorted(zones):
        yield from _balanced(situation, sorted(zones[zone]), movable, counts, budget)


def _is_movable(situation: Situation, partition: Partition) -> bool:
    """Whether all is well with the partition: its replicas all vote, in zones of their own, and their nodes report."""
    leader = situation.settled_leader(partition)
    return (
        leader is not None
        and not partition.leaving
        and {place.replica for place in partition.replicas} == set(leader.voters)
        and all(situation.is_usable(place) for place in partition.replicas)
        and len({place.zone for place in partition.replicas}) == len(partition.replicas)
    )


def _balanced(
    situation: Situation, nodes: list[int], movable: list[Partition], counts: Counter[int], budget: Budget
) -> Iterator[AddReplica]:
    names = {node: situation.topology.nodes[node].name for node in nodes}
    while True:
        most = max(nodes, key=lambda node: (counts[node], names[node], node))
        least = min(nodes, key=lambda node: (counts[node], names[node], node))
        if not differs(counts[most], counts[least]):
            return
        step = _move(situation, most, least, movable)
        if step is None or not budget.take(step):
            return
        movable[:] = [partition for partition in movable if partition.id != step.partition]
        counts[most] -= 1
        counts[least] += 1
        yield step


def _move(situation: Situation, most: int, least: int, movable: list[Partition]) -> AddReplica | None:
    """A partition of which one node has a replica and the other none; one that is led elsewhere, where there is one."""
    found = None
    for partition in movable:
        place = partition.replica_on(most)
        if place is None or partition.replica_on(least) or any(order.node == least for order in partition.dropping):
            continue
        step = AddReplica(partition.id, least, (place.replica,), MembershipChange.BALANCE)
        if situation.leaders[partition.id].replica != place.replica:
            return step
        found = found or step
    return found
