"""Where new partitions go, and what is planned from what nodes report."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoadmin.actions import ActivateTables, ForgetReplicas
from autoadmin.catalog import Catalog, with_active_tables, without_table
from autoadmin.planner import Leaders, partition_count, place_table, plan
from autoadmin.view import SILENT_SECONDS, View
from dynamo.errors import ApiError
from dynamo.keys import split_hashes
from dynamo.table import Throughput
from tests.unit.autoadmin_samples import create, nodes, report, sample_catalog, sample_table


def _replicas_by_node(catalog: Catalog) -> Counter[int]:
    return Counter(place.node for partition in catalog.topology.partitions.values() for place in partition.replicas)


def _leaders_by_node(catalog: Catalog) -> Counter[int]:
    found: Counter[int] = Counter()
    for partition in catalog.topology.partitions.values():
        place = partition.replica(partition.preferred_leader)
        assert place is not None
        found[place.node] += 1
    return found


@given(
    st.integers(1, 4),
    st.integers(3, 5),
    st.lists(st.integers(1, 7), min_size=1, max_size=6),
    st.sampled_from(["spread", "gathered"]),
)
def test_every_partition_has_three_voters_in_three_zones_and_loads_are_even(
    per_zone: int, zones: int, tables: list[int], leaders: Leaders
) -> None:
    catalog = sample_catalog(nodes(per_zone, "abcde"[:zones]))
    for number, partitions in enumerate(tables):
        catalog = create(catalog, sample_table(f"t{number}"), partitions, leaders)
    for partition in catalog.topology.partitions.values():
        assert len({place.zone for place in partition.replicas}) == 3
        assert all(catalog.topology.nodes[place.node].zone == place.zone for place in partition.replicas)
        assert partition.replica(partition.preferred_leader) is not None
    for table, partitions in enumerate(tables, start=1):
        ranges = [(partition.low, partition.high) for partition in catalog.topology.partitions_of(table)]
        assert ranges == split_hashes(partitions)
    loads = _replicas_by_node(catalog)
    by_zone = [[loads[node.id] for node in catalog.topology.nodes.values() if node.zone == zone] for zone in "abc"]
    assert all(max(zone) - min(zone) <= 1 for zone in by_zone)
    replicas = [place.replica for partition in catalog.topology.partitions.values() for place in partition.replicas]
    assert len(set(replicas)) == len(replicas)


def test_leaders_are_spread_over_all_nodes_or_gathered_on_one() -> None:
    spread = gathered = sample_catalog(nodes())
    for number in range(4):
        spread = create(spread, sample_table(f"t{number}"), 3, "spread")
        gathered = create(gathered, sample_table(f"t{number}"), 3, "gathered")
    assert sorted(_leaders_by_node(spread).values()) == [4, 4, 4]
    assert list(_leaders_by_node(gathered).values()) == [12]


def test_the_same_view_gives_the_same_places_whatever_the_order_of_nodes() -> None:
    one, other = sample_catalog(nodes(3)), sample_catalog(nodes(3)[::-1])
    for number in range(3):
        one, other = (create(catalog, sample_table(f"t{number}"), 4) for catalog in (one, other))
    assert [partition.replicas for partition in one.topology.partitions.values()] == [
        partition.replicas for partition in other.topology.partitions.values()
    ]


def test_a_silent_node_gets_nothing_and_a_missing_zone_is_told() -> None:
    catalog = sample_catalog(nodes(2))
    placements = place_table(catalog.topology, {1, 3, 5}, 4, "spread")
    assert {node.id for placement in placements for node in placement.nodes} == {1, 3, 5}
    with pytest.raises(ApiError, match=r"live storage nodes in three zones; those with one are: a, c\.$") as caught:
        place_table(catalog.topology, {1, 2, 5}, 4, "spread")
    assert caught.value.type == "InternalServerError"


def test_dropped_partitions_are_no_load() -> None:
    catalog = _activated(create(sample_catalog(nodes(2)), sample_table("gone"), 1))
    before = _replicas_by_node(catalog)
    catalog = catalog.after(without_table(catalog, "gone"))
    catalog = create(catalog, sample_table("new"), 1)
    assert set(_replicas_by_node(catalog)) == set(before)


def _activated(catalog: Catalog) -> Catalog:
    change = with_active_tables(catalog, set(catalog.topology.tables))
    assert change is not None
    return catalog.after(change)


@pytest.mark.parametrize(
    ("read", "write", "partitions"),
    [(1, 1, 3), (9_000, 0, 3), (9_000, 1, 4), (3_000, 3_000, 4), (30_000, 10_000, 20)],
)
def test_provisioned_tables_start_with_what_their_units_need(read: int, write: int, partitions: int) -> None:
    assert partition_count("PROVISIONED", Throughput(read, write), 5) == partitions
    assert partition_count("PAY_PER_REQUEST", Throughput(), 5) == 5


def test_a_table_is_active_once_every_partition_is_served() -> None:
    catalog = create(sample_catalog(nodes()), sample_table(), 2)
    first, second = catalog.topology.partitions_of(1)
    view = View().with_report(report(1, serving=[first.replicas[0].replica]), 0.0)
    assert plan(catalog.topology, view, 0.0) == []
    view = view.with_report(report(2, serving=[second.replicas[1].replica]), 0.0)
    assert plan(catalog.topology, view, 0.0) == [ActivateTables(catalog.topology.at, frozenset({1}))]
    assert plan(_activated(catalog).topology, view, 0.0) == []
    assert plan(catalog.topology, view.without(1), 0.0) == []


def test_orders_to_drop_end_with_what_was_dropped() -> None:
    catalog = _activated(create(sample_catalog(nodes()), sample_table("gone"), 1))
    kept = create(catalog, sample_table("kept"), 1)
    replicas = [place.replica for place in kept.topology.partitions[1].replicas]
    alive = kept.topology.partitions[2].replicas[0].replica
    view = View().with_report(report(1, dropped=[replicas[0], alive]), 0.0)
    assert plan(kept.topology, view, 0.0) == []
    dropping = kept.after(without_table(kept, "gone"))
    assert plan(dropping.topology, view, 0.0) == [ForgetReplicas(dropping.topology.at, frozenset({replicas[0]}))]


def test_a_node_is_live_while_it_reports() -> None:
    view = View().with_report(report(1), 10.0).with_report(report(2), 11.0)
    assert view.live(10.0 + SILENT_SECONDS) == {1, 2}
    assert view.live(10.5 + SILENT_SECONDS) == {2}
    assert view.without(2).live(11.0) == {1}
