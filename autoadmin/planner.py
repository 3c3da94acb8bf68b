"""Where new partitions go, and what is to be done next. Pure: the same view and time give the same plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from math import ceil
from typing import Literal, TypeAlias

from autoadmin.actions import Action, ActivateIndexes, ActivateTables, ForgetReplicas
from autoadmin.catalog import Placement, no_room
from autoadmin.view import View
from cluster.topology import NodePlace, Partition, PartitionState, Topology
from dynamo.keys import split_hashes
from dynamo.table import Throughput

VOTERS = 3
PARTITION_READ_UNITS = 3_000  # a second, of one partition (design §9)
PARTITION_WRITE_UNITS = 1_000
PARTITIONS_MIN_PROVISIONED = 3

Leaders: TypeAlias = Literal["spread", "gathered"]


def plan(wanted: Topology, seen: View, now: float) -> list[Action]:  # noqa: ARG001 - time matters to repairs only
    """The next safe steps; empty when there is nothing to do."""
    actions: list[Action] = []
    if served := _served(wanted, seen.serving()):
        actions.append(ActivateTables(wanted.at, served))
    if gone := _dropped(wanted, seen.dropped()):
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


def _dropped(wanted: Topology, dropped: Collection[int]) -> frozenset[int]:
    """Replicas that drop orders still name although they are gone."""
    return frozenset(
        place.replica
        for partition in wanted.partitions.values()
        if partition.state is PartitionState.DROPPED
        for place in partition.replicas
        if place.replica in dropped
    )


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
