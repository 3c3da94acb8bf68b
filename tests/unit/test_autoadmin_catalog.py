"""Every change of auto-admin's catalog."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from autoadmin import catalog as changes
from autoadmin.catalog import ADOPTED_ID_GAP, Catalog, Change
from cluster.topology import PartitionState
from dynamo.errors import ApiError
from dynamo.table import Index, KeySchema, Stream, Table, Throughput
from tests.unit.autoadmin_samples import create, nodes, sample_catalog, sample_table


def _made(catalog: Catalog, change: Change | None) -> Catalog:
    assert change is not None
    assert change.update.version == catalog.topology.version + 1
    return catalog.after(change)


def _active(table: Table | None = None) -> Catalog:
    catalog = create(sample_catalog(nodes()), table or sample_table())
    return _made(catalog, changes.with_active_tables(catalog, {1}))


def _table(catalog: Catalog) -> Table:
    table = catalog.topology.table_named("orders")
    assert table is not None
    return table


def test_a_node_is_taken_once_and_moves_with_its_address() -> None:
    catalog = sample_catalog(nodes())
    known = catalog.topology.nodes[1]
    assert changes.with_node(catalog, replace(known, version=0)) is None
    moved = _made(catalog, changes.with_node(catalog, replace(known, address="127.0.0.1:99")))
    assert moved.topology.nodes[1].address == "127.0.0.1:99"
    assert moved.topology.nodes[1].version == moved.topology.version


def test_a_new_table_is_being_created_with_ids_of_its_own() -> None:
    catalog = create(create(sample_catalog(nodes()), sample_table("a")), sample_table("b"), 2)
    assert [table.table.status for table in catalog.topology.tables.values()] == ["CREATING", "CREATING"]
    assert [table.table.schema_version for table in catalog.topology.tables.values()] == [1, 1]
    assert list(catalog.topology.tables) == [1, 2]
    assert list(catalog.topology.partitions) == [1, 2, 3, 4, 5]
    assert catalog.counters == changes.Counters(3, 6, 16)


def test_names_are_taken_once_and_case_counts() -> None:
    catalog = create(sample_catalog(nodes()), sample_table("orders"))
    with pytest.raises(ApiError, match="Table already exists: orders") as caught:
        create(catalog, sample_table("orders"))
    assert caught.value.type == "ResourceInUseException"
    create(catalog, sample_table("Orders"))


def test_there_is_a_bound_of_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "TABLES_MAX", 1)
    with pytest.raises(ApiError) as caught:
        create(create(sample_catalog(nodes()), sample_table("a")), sample_table("b"))
    assert caught.value.type == "LimitExceededException"


def test_only_tables_that_are_being_created_become_active() -> None:
    catalog = _active()
    assert _table(catalog).status == "ACTIVE"
    assert changes.with_active_tables(catalog, {1, 2}) is None


@pytest.mark.parametrize(
    ("members", "schema_version"),
    [
        ({"deletion_protection": True}, 1),
        ({"throughput": Throughput(5, 5), "billing": "PROVISIONED"}, 1),
        ({"tags": {"team": "x"}}, 1),
        ({"streams": (Stream("2026-11-30T00:00:00.000", "NEW_IMAGE", 1.0),)}, 2),
        ({"ttl_attribute": "expires"}, 2),
        ({"ttl_changed": 5.0}, 1),
        ({"attribute_types": {"pk": "S", "g": "N"}}, 2),
        ({"local_indexes": (Index("by_g", KeySchema(("pk",), ("g",)), "ALL"),)}, 2),
    ],
)
def test_the_schema_version_rises_with_what_nodes_must_know(members: dict[str, object], schema_version: int) -> None:
    catalog = _active()
    wanted = msgspec.structs.replace(_table(catalog), **members)
    changed = _made(catalog, changes.with_changed_table(catalog, "orders", wanted, 1))
    assert _table(changed) == msgspec.structs.replace(wanted, schema_version=schema_version)


def test_what_identifies_a_table_cannot_be_changed() -> None:
    catalog = _active()
    wanted = sample_table("another", created=1.0, deletion_protection=True)
    changed = _made(catalog, changes.with_changed_table(catalog, "orders", wanted, 1))
    assert _table(changed) == msgspec.structs.replace(_table(catalog), deletion_protection=True)


def test_a_change_computed_from_an_older_table_is_a_conflict() -> None:
    catalog = _active()
    record = catalog.topology.tables[1]
    wanted = msgspec.structs.replace(record.table, deletion_protection=True)
    for schema_version, table_version in ((2, 0), (1, record.version - 1)):
        with pytest.raises(ApiError) as caught:
            changes.with_changed_table(catalog, "orders", wanted, schema_version, table_version)
        assert caught.value.type == "Conflict"
    changed = _made(catalog, changes.with_changed_table(catalog, "orders", wanted, 1, record.version))
    with pytest.raises(ApiError, match="record"):
        changes.with_changed_table(changed, "orders", record.table, 1, record.version)


def test_a_deleted_table_leaves_its_name_free_and_orders_to_drop() -> None:
    catalog = _active()
    before = catalog.topology.partitions_of(1)
    gone = _made(catalog, changes.without_table(catalog, "orders"))
    assert gone.topology.table_named("orders") is None
    assert gone.topology.partitions_of(1) == ()
    for partition in before:
        order = gone.topology.partitions[partition.id]
        assert order == replace(partition, state=PartitionState.DROPPED, version=gone.topology.version)
    again = create(gone, sample_table())
    assert _table(again).id == 2
    assert {partition.id for partition in again.topology.partitions_of(2)}.isdisjoint(
        partition.id for partition in before
    )


def test_orders_shrink_with_what_was_dropped_and_then_end() -> None:
    catalog = _active()
    kept = create(catalog, sample_table("kept"))
    gone = _made(kept, changes.without_table(kept, "orders"))
    first = kept.topology.partitions[1]
    alive = kept.topology.partitions[4].replicas[0].replica
    rest = _made(gone, changes.without_replicas(gone, {first.replicas[0].replica, alive}))
    assert rest.topology.partitions[1].replicas == first.replicas[1:]
    assert rest.topology.partitions[1].membership_version == first.membership_version
    assert rest.topology.partitions[4] == kept.topology.partitions[4]
    done = _made(rest, changes.without_replicas(rest, {place.replica for place in first.replicas}))
    assert 1 not in done.topology.partitions
    assert changes.without_replicas(done, {place.replica for place in first.replicas}) is None


@pytest.mark.parametrize("name", ["missing", "ORDERS"])
def test_an_unknown_table_is_not_found(name: str) -> None:
    catalog = _active()
    calls: list[Callable[[], object]] = [
        lambda: changes.without_table(catalog, name),
        lambda: changes.with_changed_table(catalog, name, _table(catalog), 1),
    ]
    for call in calls:
        with pytest.raises(ApiError, match=f"^ResourceNotFoundException: .*: Table: {name} not found$"):
            call()


def test_a_table_that_is_being_created_or_protected_is_not_deleted() -> None:
    creating = create(sample_catalog(nodes()), sample_table())
    calls: list[Callable[[], object]] = [
        lambda: changes.without_table(creating, "orders"),
        lambda: changes.with_changed_table(creating, "orders", _table(creating), 1),
    ]
    for call in calls:
        with pytest.raises(ApiError) as caught:
            call()
        assert caught.value.type == "ResourceInUseException"
    with pytest.raises(ApiError, match="currently protected against deletion") as caught:
        changes.without_table(_active(sample_table(deletion_protection=True)), "orders")
    assert caught.value.type == "ValidationException"


def test_an_adopted_copy_is_a_new_epoch_and_gives_out_no_id_again() -> None:
    lost = _active()
    change = changes.adopted(lost.topology)
    catalog = sample_catalog().after(change)
    assert catalog.topology.at == (2, lost.topology.version + 1)
    assert catalog.topology.tables == lost.topology.tables
    assert catalog.topology.partitions == lost.topology.partitions
    assert change.counters.table > lost.counters.table
    assert change.counters.partition > lost.counters.partition
    assert change.counters.replica >= lost.counters.replica - 1 + ADOPTED_ID_GAP
