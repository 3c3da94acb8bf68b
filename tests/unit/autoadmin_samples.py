"""Nodes, tables and catalogs for the tests of auto-admin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from autoadmin.catalog import Catalog, Counters, first_change, with_new_table, with_node
from autoadmin.planner import Leaders, place_tables
from cluster.topology import NodePlace, Topology
from cluster.wire import common_pb2, node_pb2
from dynamo.table import KeySchema, Table

CLUSTER = "c1"


def nodes(per_zone: int = 1, zones: Sequence[str] = ("a", "b", "c")) -> list[NodePlace]:
    """Nodes with ids from 1, zone by zone."""
    names = [(zone, f"{zone}{n}") for zone in zones for n in range(1, per_zone + 1)]
    return [
        NodePlace(number, name, "us-east-1", zone, f"127.0.0.1:{number}")
        for number, (zone, name) in enumerate(names, start=1)
    ]


def sample_table(name: str = "orders", **members: Any) -> Table:
    """A table as a router asks for it."""
    defaults: dict[str, Any] = {
        "billing": "PAY_PER_REQUEST",
        "created": 1_700_000_000.0,
        "attribute_types": {"pk": "S"},
    }
    return Table(id=0, name=name, schema_version=0, keys=KeySchema(("pk",)), **(defaults | members))


def sample_catalog(places: Sequence[NodePlace] = ()) -> Catalog:
    """A new cluster's catalog that knows some nodes."""
    catalog = Catalog(Topology(), Counters()).after(first_change(CLUSTER))
    for place in places:
        change = with_node(catalog, place)
        assert change is not None
        catalog = catalog.after(change)
    return catalog


def create(catalog: Catalog, table: Table, partitions: int = 3, leaders: Leaders = "spread") -> Catalog:
    """The catalog with one more table, its indexes included, placed on all its nodes."""
    counts = [partitions] * (1 + len(table.global_indexes))
    placements, *of_indexes = place_tables(catalog.topology, frozenset(catalog.topology.nodes), counts, leaders)
    return catalog.after(with_new_table(catalog, table, placements, of_indexes))


def report(node: int, serving: Sequence[int] = (), dropped: Sequence[int] = ()) -> node_pb2.Report:
    """A node's report."""
    return node_pb2.Report(
        cluster_id=CLUSTER,
        node=common_pb2.NodeRecord(node=node),
        replicas=[node_pb2.ReplicaReport(replica=replica, role="leader", serving=True) for replica in serving],
        dropped_replicas=dropped,
    )
