"""Where new partitions go, and what is to be done next. Pure: the same view and time give the same plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from math import ceil

from autoadmin.actions import (
    Action,
    ActivateIndexes,
    ActivateTables,
    ChangePartitions,
    ForgetReplicas,
    RemoveNodes,
    Step,
)
from autoadmin.catalog import Placement, no_room
from autoadmin.plans.balance import plan_balance
from autoadmin.plans.leaders import plan_leaders
from autoadmin.plans.members import Budget, plan_members
from autoadmin.plans.orders import carried_out, plan_orders
from autoadmin.plans.situation import VOTERS, Leaders, Rules, Situation
from autoadmin.view import View
from cluster.topology import NodePlace, Partition, PartitionState, Topology
from dynamo.keys import split_hashes
from dynamo.table import Throughput

PARTITION_READ_UNITS = 3_000  # a second, of one partition (design §9)
PARTITION_WRITE_UNITS = 1_000
PARTITIONS_MIN_PROVISIONED = 3

__all__ = ["VOTERS", "Leaders", "Rules", "partition_count", "place_table", "place_tables", "plan", "plan_repairs"]


def plan(wanted: Topology, seen: View, now: float, rules: Rules = Rules()) -> list[Action]:  # noqa: B008 - frozen
    """The next safe steps; empty when there is nothing to do. `now`: seconds of boot time."""
    return [*plan_tables(wanted, seen), *plan_repairs(wanted, seen, now, rules)]


def plan_repairs(wanted: Topology, seen: View, now: float, rules: Rules) -> list[Action]:
    """Which replicas and leaders are to be elsewhere, and what follows from what has been done about it.

    One change per partition in a plan: what is planned next rests on the record as it is then.
    """
    if any(node.catalog_at > wanted.at for node in seen.nodes.values()):
        return []  # auto-admin has lost its state, and knows less than the nodes do
    situation = Situation.of(wanted, seen, now, rules)
    budget = Budget.of(situation)
    steps = list(plan_orders(situation, seen))
    steps += plan_members(situation, budget)
    steps += plan_balance(situation, budget)
    steps += plan_leaders(situation)
    first: dict[int, Step] = {}
    for step in steps:
        first.setdefault(step.partition, step)
    actions: list[Action] = []
    if first:
        actions.append(ChangePartitions(wanted.at, tuple(first.values())))
    if replaced := _replaced_nodes(situation):
        actions.append(RemoveNodes(wanted.at, replaced))
    return actions


def _replaced_nodes(situation: Situation) -> tuple[int, ...]:
    """Nodes in whose place others have come, and that no partition in use names any more."""
    if not situation.health.successors:
        return ()
    holders = {place.node for partition in situation.active for place in partition.replicas}
    return tuple(node for node in sorted(situation.health.successors) if node not in holders)


def plan_tables(wanted: Topology, seen: View) -> list[Action]:
    """What the reports say is done: tables and indexes that are there, replicas that are gone."""
    actions: list[Action] = []
    if served := _served(wanted, seen.serving()):
        actions.append(ActivateTables(wanted.at, served))
    if gone := _dropped(wanted, seen):
        actions.append(ForgetReplicas(wanted.at, gone))
    if filled := _filled(wanted, seen.filled()):
        actions.append(ActivateIndexes(wanted.at, filled))
    return actions


def _served(wanted: Topology, serving: Collection[int]) -> frozenset[int]:
    """Tables that are being made, or get an index, whose every partition has a serving leader, and those of their
    global indexes too."""
    return frozenset(
        record.table.id
        for record in wanted.tables.values()
        if record.table.status in ("CREATING", "UPDATING")
        and all(
            _all_served(wanted.partitions_of(table), serving)
            for table in (record.table.id, *(index.table for index in record.table.global_indexes))
        )
    )


def _filled(wanted: Topology, filled: Collection[tuple[int, int]]) -> frozenset[int]:
    """Global indexes, by their tables, that every partition of the table which they belong to has filled."""
    return frozenset(
        index.table
        for record in wanted.tables.values()
        for index in record.table.global_indexes
        if index.backfilling
        and all((partition.id, index.table) in filled for partition in wanted.partitions_of(record.table.id))
    )


def _all_served(partitions: Iterable[Partition], serving: Collection[int]) -> bool:
    return all(any(place.replica in serving for place in partition.replicas) for partition in partitions)


def _dropped(wanted: Topology, seen: View) -> frozenset[int]:
    """Replicas that orders still name, in partitions in use or dropped, although they are gone."""
    dropped = seen.dropped()
    ordered: set[int] = set()
    for partition in wanted.partitions.values():
        if partition.state is PartitionState.DROPPED:
            ordered.update(place.replica for place in partition.replicas)
    return frozenset(ordered & dropped) | carried_out(wanted, seen)


def partition_count(billing: str, throughput: Throughput, on_demand: int) -> int:
    """How many partitions a new table, or index, starts with: `on_demand`, or what its provisioned units need
    (design §4)."""
    if billing == "PAY_PER_REQUEST":
        return on_demand
    units = throughput.read / PARTITION_READ_UNITS + throughput.write / PARTITION_WRITE_UNITS
    return max(PARTITIONS_MIN_PROVISIONED, ceil(units))


def place_table(topology: Topology, live: Collection[int], count: int, leaders: Leaders) -> tuple[Placement, ...]:
    """Places for a table of `count` new partitions. As `place_tables`."""
    return place_tables(topology, live, (count,), leaders)[0]


def place_tables(
    topology: Topology, live: Collection[int], counts: Sequence[int], leaders: Leaders
) -> list[tuple[Placement, ...]]:
    """Places for so many new partitions of each table, of equal ranges: three voters each, in three zones, on the least
    loaded live node of each zone. Raises ApiError when fewer than three zones have a live node.
    """
    zones: dict[str, list[NodePlace]] = {}
    for node in topology.nodes.values():
        if node.id in live:
            zones.setdefault(node.zone, []).append(node)
    if len(zones) < VOTERS:
        raise no_room(zones)
    load = _Load(topology)
    return [tuple(_place(zones, load, low, high, leaders) for low, high in split_hashes(count)) for count in counts]


class _Load:
    """How many replicas and preferred leaders each node has, those just placed included."""

    def __init__(self, topology: Topology) -> None:
        self.replicas: Counter[int] = Counter()
        self.leaders: Counter[int] = Counter()
        for partition in topology.partitions.values():
            if partition.state is PartitionState.ACTIVE:
                preferred = partition.replica(partition.preferred_leader)
                self.add((place.node for place in partition.replicas), preferred.node if preferred else 0)

    def add(self, nodes: Iterable[int], leader: int) -> None:
        self.replicas.update(nodes)
        self.leaders[leader] += 1


def _place(zones: dict[str, list[NodePlace]], load: _Load, low: bytes, high: bytes, leaders: Leaders) -> Placement:
    # Equal loads are told apart by name, then id, so that one view always gives one plan.
    lightest = [
        min(nodes, key=lambda node: (load.replicas[node.id], load.leaders[node.id], node.name, node.id))
        for nodes in zones.values()
    ]
    lightest.sort(key=lambda node: (load.replicas[node.id], node.zone))
    chosen = tuple(sorted(lightest[:VOTERS], key=lambda node: node.zone))
    leader = _leader(chosen, load, leaders)
    load.add((node.id for node in chosen), leader)
    return Placement(low, high, chosen, leader)


def _leader(nodes: Sequence[NodePlace], load: _Load, leaders: Leaders) -> int:
    """The node that leads least so far ("spread") or most ("gathered")."""
    sign = 1 if leaders == "spread" else -1
    return min(nodes, key=lambda node: (sign * load.leaders[node.id], node.name, node.id)).id
