"""Catalog and topology as an immutable view."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cluster.topology import (
    REMOVALS_KEPT,
    CatalogTable,
    CatalogUpdate,
    NodePlace,
    Partition,
    PartitionState,
    ReplicaPlace,
    Topology,
    UpdateRefused,
)
from dynamo.table import KeySchema, Table

LAST = b"\xff" * 16


def table(id: int, name: str, version: int) -> CatalogTable:  # noqa: A002
    return CatalogTable(Table(id, name, 1, {"pk": "S"}, KeySchema(("pk",)), 0.0), version)


def partition(id: int, table: int, low: int, high: bytes, version: int = 1) -> Partition:  # noqa: A002
    replicas = tuple(ReplicaPlace(10 * id + n, n, f"zone-{n}") for n in (1, 2, 3))
    return Partition(id, table, bytes([low]) + bytes(15), high, replicas, version=version)


def node(id: int, version: int = 1) -> NodePlace:  # noqa: A002
    return NodePlace(id, f"n{id}", "us-east-1", f"zone-{id}", f"127.0.0.1:{id}", version=version)


HALF = b"\x7f" + b"\xff" * 15

WHOLE = CatalogUpdate(
    "c",
    1,
    0,
    5,
    tables=(table(1, "a", 3), table(2, "b", 5)),
    partitions=(partition(2, 1, 0x80, LAST, 3), partition(1, 1, 0, HALF, 3), partition(3, 2, 0, LAST, 5)),
    nodes=(node(1), node(2, 2)),
)


def test_a_hash_finds_its_partition_at_the_edges_too() -> None:
    topology = Topology().with_update(WHOLE)
    for hash, expected in (  # noqa: A001
        (bytes(16), 1),
        (HALF, 1),
        (b"\x80" + bytes(15), 2),
        (LAST, 2),
    ):
        assert topology.partition_for(1, hash).id == expected
    assert [part.id for part in topology.partitions_of(1)] == [1, 2]
    assert topology.partitions_of(99) == ()
    with pytest.raises(LookupError):
        topology.partition_for(99, LAST)


def test_a_hole_in_the_map_is_not_filled_by_a_neighbour() -> None:
    update = CatalogUpdate("c", 1, 0, 1, tables=(table(1, "a", 1),), partitions=(partition(1, 1, 0x10, HALF),))
    topology = Topology().with_update(update)
    for hash in (bytes(16), LAST):  # noqa: A001
        with pytest.raises(LookupError):
            topology.partition_for(1, hash)


def test_names_and_ids() -> None:
    topology = Topology().with_update(WHOLE)
    found = topology.table_named("b")
    assert found is not None
    assert found.id == 2
    assert topology.table_named("B") is None
    assert topology.table_names() == ["a", "b"]
    assert topology.node(2) == node(2, 2)
    assert topology.node(3) is None
    assert {part.id for part in topology.partitions_on(1)} == {1, 2, 3}
    part = topology.partition(1)
    assert part is not None
    assert part.replica_on(2) == part.replica(12)


def test_a_difference_brings_a_follower_to_the_same_view() -> None:
    leader = Topology().with_update(WHOLE)
    follower = leader
    dropped = Partition(3, 2, bytes(16), LAST, (), 1, 0, PartitionState.DROPPED, 6)
    leader = leader.with_update(
        CatalogUpdate("c", 1, 5, 6, removed_tables=(2,), partitions=(dropped,), nodes=(node(3, 6),))
    )
    leader = leader.with_update(CatalogUpdate("c", 1, 6, 7, removed_partitions=(3,), removed_nodes=(1,)))

    difference = leader.difference(1, follower.version)
    assert difference.from_version == 5
    caught_up = follower.with_update(difference)
    for view in (caught_up, Topology().with_update(leader.full())):
        assert view.at == leader.at == (1, 7)
        assert view.tables == leader.tables
        assert view.partitions == leader.partitions
        assert view.nodes == leader.nodes
        assert view.partitions_of(2) == ()
        assert view.table_named("b") is None
        assert view.partitions_of(1) == leader.partitions_of(1)


def test_a_node_that_was_removed_is_known_as_such_only() -> None:
    gone = replace(node(1, 6), removed=True)
    leader = Topology().with_update(WHOLE).with_update(CatalogUpdate("c", 1, 5, 6, nodes=(gone,)))
    caught_up = Topology().with_update(WHOLE).with_update(leader.difference(1, 5))
    for view in (leader, caught_up, Topology().with_update(leader.full())):
        assert view.node(1) is None
        assert list(view.nodes) == [2]
        assert view.former_nodes == {1: gone}
    forgotten = leader.with_update(CatalogUpdate("c", 1, 6, 7, removed_nodes=(1,)))
    assert forgotten.former_nodes == {}


def test_the_wanted_voters_are_those_that_do_not_leave() -> None:
    before = partition(1, 1, 0, LAST)
    after = replace(before, leaving=(12,))
    assert [place.replica for place in before.wanted_voters] == [11, 12, 13]
    assert [place.replica for place in after.wanted_voters] == [11, 13]


def test_a_dropped_partition_is_an_order_and_serves_nothing() -> None:
    dropped = Partition(3, 2, bytes(16), LAST, (ReplicaPlace(31, 1, "zone-1"),), 1, 0, PartitionState.DROPPED, 6)
    topology = Topology().with_update(WHOLE).with_update(CatalogUpdate("c", 1, 5, 6, partitions=(dropped,)))
    assert topology.partitions_of(2) == ()
    assert dropped in topology.partitions_on(1)


@pytest.mark.parametrize("epoch_version", [(1, 5), (1, 4), (0, 9)])
def test_what_is_not_newer_changes_nothing(epoch_version: tuple[int, int]) -> None:
    topology = Topology().with_update(WHOLE)
    assert topology.with_update(CatalogUpdate("c", epoch_version[0], 0, epoch_version[1])) is topology


@pytest.mark.parametrize(
    "update",
    [
        CatalogUpdate("other", 1, 0, 9),
        CatalogUpdate("c", 1, 6, 9),
        CatalogUpdate("c", 2, 5, 9),
    ],
    ids=["another cluster", "a gap", "a difference across epochs"],
)
def test_what_does_not_fit_is_refused(update: CatalogUpdate) -> None:
    with pytest.raises(UpdateRefused):
        Topology().with_update(WHOLE).with_update(update)


def test_whoever_is_too_far_behind_gets_the_whole() -> None:
    topology = Topology().with_update(CatalogUpdate("c", 1, 0, 1))
    for version in range(2, REMOVALS_KEPT + 12):
        topology = topology.with_update(CatalogUpdate("c", 1, version - 1, version, removed_tables=(version,)))
    assert len(topology.removals) == REMOVALS_KEPT
    oldest = topology.removals[0].version
    assert topology.difference(1, oldest - 1).from_version == oldest - 1
    assert topology.difference(1, oldest - 2).from_version == 0
    assert topology.difference(2, topology.version).from_version == 0
    assert topology.difference(1, topology.version + 1).from_version == 0


def test_founders_are_the_first_replicas_for_ever() -> None:
    """They are taken from the record when it is made, and stay when others come."""
    first = Partition(1, 2, bytes(16), b"\xff" * 16, (ReplicaPlace(5, 1, "a"), ReplicaPlace(6, 2, "b")))
    later = replace(first, replicas=(*first.replicas, ReplicaPlace(9, 3, "c")), leaving=(5,))
    assert first.founders == later.founders == (5, 6)
