"""Global indexes in the catalog: tables of their own, made, filled and dropped with the table that they belong to."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from autoadmin import catalog as changes
from autoadmin.actions import ActivateIndexes, ActivateTables
from autoadmin.catalog import Catalog
from autoadmin.planner import place_tables, plan
from autoadmin.view import View
from cluster.topology import PartitionState
from cluster.wire import common_pb2, node_pb2
from dynamo.errors import ApiError
from dynamo.table import Index, KeySchema, Table
from tests.unit.autoadmin_samples import CLUSTER, create, nodes, sample_catalog, sample_table

BY_G = Index("by_g", KeySchema(("g",)), "ALL")
BY_H = Index("by_h", KeySchema(("h",), ("pk",)), "KEYS_ONLY")


def _indexed(*indexes: Index, **members: Any) -> Table:
    return sample_table(attribute_types={"pk": "S", "g": "N", "h": "S"}, global_indexes=indexes, **members)


def _active(*indexes: Index) -> Catalog:
    catalog = create(sample_catalog(nodes()), _indexed(*indexes), 2)
    change = changes.with_active_tables(catalog, set(catalog.topology.tables))
    assert change is not None
    return catalog.after(change)


def _base(catalog: Catalog) -> Table:
    table = catalog.topology.table_named("orders")
    assert table is not None
    return table


def _changed(catalog: Catalog, *indexes: Index) -> Catalog:
    wanted = msgspec.structs.replace(_base(catalog), global_indexes=indexes)
    added = changes.added_indexes(catalog.topology, "orders", wanted)
    places = place_tables(catalog.topology, frozenset(catalog.topology.nodes), [2] * len(added), "spread")
    schema_version = _base(catalog).schema_version
    return catalog.after(changes.with_changed_table(catalog, "orders", wanted, schema_version, index_placements=places))


def _serving(catalog: Catalog, *tables: int, filled: tuple[int, ...] = ()) -> View:
    """All partitions of these tables are served, and full of the indexes that `filled` names by their tables."""
    view = View()
    for node in catalog.topology.nodes:
        replicas = [
            node_pb2.ReplicaReport(
                partition=partition.id, replica=partition.preferred_leader, serving=True, filled_indexes=filled
            )
            for table in tables
            for partition in catalog.topology.partitions_of(table)
            if (place := partition.replica_on(node)) and place.replica == partition.preferred_leader
        ]
        report = node_pb2.Report(cluster_id=CLUSTER, node=common_pb2.NodeRecord(node=node), replicas=replicas)
        view = view.with_report(report, 0.0)
    return view


def test_an_index_is_a_nameless_table_with_partitions() -> None:
    catalog = create(sample_catalog(nodes()), _indexed(BY_G, BY_H), 2)
    assert catalog.topology.table_names() == ["orders"]
    base = _base(catalog)
    assert [index.table for index in base.global_indexes] == [2, 3]
    made = catalog.topology.table(3)
    assert made is not None
    assert (made.index_of, made.index_name) == (base.id, "by_h")
    assert (made.keys, made.base_keys, made.attribute_types) == (BY_H.keys, base.keys, base.attribute_types)
    assert [len(catalog.topology.partitions_of(table)) for table in (1, 2, 3)] == [2, 2, 2]
    assert catalog.counters == changes.Counters(4, 7, 19)


def test_tables_of_indexes_do_not_count_as_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "TABLES_MAX", 2)
    catalog = create(sample_catalog(nodes()), _indexed(BY_G, BY_H))
    create(catalog, sample_table("second"))


def test_a_table_is_active_when_its_indexes_are_served_too() -> None:
    catalog = create(sample_catalog(nodes()), _indexed(BY_G), 2)
    assert plan(catalog.topology, _serving(catalog, 1), 0.0) == []
    assert plan(catalog.topology, _serving(catalog, 2), 0.0) == [ActivateTables(catalog.topology.at, frozenset({2}))]
    assert plan(catalog.topology, _serving(catalog, 1, 2), 0.0) == [
        ActivateTables(catalog.topology.at, frozenset({1, 2}))
    ]


def test_indexes_that_came_with_their_table_need_no_filling() -> None:
    index = _base(_active(BY_G)).global_indexes[0]
    assert (index.status, index.backfilling) == ("ACTIVE", False)


def test_an_index_that_comes_later_is_made_then_filled_then_active() -> None:
    catalog = _changed(_active(BY_G), BY_G, BY_H)
    base = _base(catalog)
    assert (base.status, base.schema_version) == ("UPDATING", 2)
    assert [(index.table, index.status) for index in base.global_indexes] == [(2, "ACTIVE"), (3, "CREATING")]
    assert plan(catalog.topology, _serving(catalog, 1, 2), 0.0) == []

    made = changes.with_active_tables(catalog, {1, 3})
    assert made is not None
    catalog = catalog.after(made)
    base = _base(catalog)
    assert (base.status, base.schema_version) == ("ACTIVE", 2)
    assert [(index.status, index.backfilling) for index in base.global_indexes] == [
        ("ACTIVE", False),
        ("CREATING", True),
    ]
    assert plan(catalog.topology, _serving(catalog, 1, 2, 3, filled=(2,)), 0.0) == []
    assert plan(catalog.topology, _serving(catalog, 1, 2, 3, filled=(2, 3)), 0.0) == [
        ActivateIndexes(catalog.topology.at, frozenset({3}))
    ]

    filled = changes.with_active_indexes(catalog, {3})
    assert filled is not None
    catalog = catalog.after(filled)
    base = _base(catalog)
    assert base.schema_version == 2, "no router has to plan anew for it"
    assert [(index.status, index.backfilling) for index in base.global_indexes] == [("ACTIVE", False)] * 2
    assert changes.with_active_indexes(catalog, {3}) is None


def test_what_an_index_is_made_of_cannot_be_changed() -> None:
    catalog = _active(BY_G)
    known = _base(catalog).global_indexes[0]
    wanted = Index("by_g", KeySchema(("h",)), "KEYS_ONLY", on_demand_read=7, table=99, status="CREATING")
    catalog = _changed(catalog, wanted)
    assert _base(catalog).global_indexes == (msgspec.structs.replace(known, on_demand_read=7),)
    assert _base(catalog).schema_version == 1


def test_an_index_that_is_left_out_goes_with_its_partitions() -> None:
    catalog = _changed(_active(BY_G, BY_H), BY_H)
    base = _base(catalog)
    assert (base.status, base.schema_version) == ("ACTIVE", 2)
    assert [index.name for index in base.global_indexes] == ["by_h"]
    assert catalog.topology.table(2) is None
    states = {partition.table: partition.state for partition in catalog.topology.partitions.values()}
    assert states == {1: PartitionState.ACTIVE, 2: PartitionState.DROPPED, 3: PartitionState.ACTIVE}


def test_a_table_goes_with_its_indexes() -> None:
    catalog = _active(BY_G, BY_H)
    catalog = catalog.after(changes.without_table(catalog, "orders"))
    assert not catalog.topology.tables
    assert {partition.state for partition in catalog.topology.partitions.values()} == {PartitionState.DROPPED}


def test_nothing_is_changed_while_an_index_is_made() -> None:
    catalog = _changed(_active(BY_G), BY_G, BY_H)
    with pytest.raises(ApiError) as caught:
        _changed(catalog, BY_G)
    assert caught.value.type == "ResourceInUseException"
