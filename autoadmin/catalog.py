"""The catalog that auto-admin keeps, and every change of it. Changes are computed here and made durable elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import msgspec

from cluster.topology import CatalogTable, CatalogUpdate, NodePlace, Partition, PartitionState, ReplicaPlace, Topology
from dynamo.errors import ApiError, internal, limit_exceeded, resource_in_use, table_not_found, validation
from dynamo.table import Table

TABLES_MAX = 2_500
ADOPTED_ID_GAP = 1_000_000
"""How far ids jump when a copy is adopted: past all that were given out, and perhaps dropped again, after that copy."""

_SCHEMA_MEMBERS = ("attribute_types", "keys", "local_indexes", "global_indexes", "stream_view")
"""What a storage node must know of a table before it may write an item: a change of these raises the schema version."""


@dataclass(frozen=True)
class Counters:
    """The next id of each kind. Ids are given out once."""

    table: int = 1
    partition: int = 1
    replica: int = 1


@dataclass(frozen=True)
class Catalog:
    """What is durable."""

    topology: Topology
    counters: Counters

    def after(self, change: Change) -> Catalog:
        """The catalog once `change` is durable."""
        return Catalog(self.topology.with_update(change.update), change.counters)


@dataclass(frozen=True)
class Change:
    """One step of the catalog, saved in one transaction."""

    update: CatalogUpdate
    counters: Counters


@dataclass(frozen=True)
class Placement:
    """Where one new partition goes: its range, its three nodes, and which of these should lead."""

    low: bytes
    high: bytes
    nodes: tuple[NodePlace, ...]
    leader: int  # a node id


def first_change(cluster_id: str) -> Change:
    """The catalog of a new cluster. Version 0 means "nothing" to watchers, so it starts at 1."""
    return Change(CatalogUpdate(cluster_id, epoch=1, from_version=0, version=1), Counters())


def adopted(copy: Topology) -> Change:
    """The whole catalog as a storage node holds it, in a new epoch: auto-admin has lost its own."""
    version = copy.version + 1
    partitions = copy.partitions.values()
    replicas = [place.replica for partition in partitions for place in partition.replicas]
    counters = Counters(
        max(copy.tables, default=0) + ADOPTED_ID_GAP,
        max(copy.partitions, default=0) + ADOPTED_ID_GAP,
        max(replicas, default=0) + ADOPTED_ID_GAP,
    )
    return Change(replace(copy.full(), epoch=copy.epoch + 1, version=version), counters)


def with_node(catalog: Catalog, node: NodePlace) -> Change | None:
    """The node made known, or its new address; None when nothing about it is new."""
    known = catalog.topology.node(node.id)
    if known is not None and replace(known, version=0) == replace(node, version=0):
        return None
    version = catalog.topology.version + 1
    return _step(catalog, nodes=(replace(node, version=version),))


def check_new_table(topology: Topology, table: Table) -> None:
    """Whether a table may be created under this name. Raises ApiError."""
    if topology.table_named(table.name) is not None:
        raise resource_in_use(f"Table already exists: {table.name}")
    if len(topology.tables) >= TABLES_MAX:
        raise limit_exceeded(f"Subscriber limit exceeded: There is a limit of {TABLES_MAX} tables per subscriber")


def with_new_table(catalog: Catalog, table: Table, placements: Sequence[Placement]) -> Change:
    """The table in status CREATING with its partitions; it is ACTIVE once their leaders serve. Raises ApiError."""
    check_new_table(catalog.topology, table)
    version = catalog.topology.version + 1
    counters = catalog.counters
    partitions: list[Partition] = []
    for number, placement in enumerate(placements):
        first = counters.replica + 3 * number
        replicas = tuple(ReplicaPlace(first + n, node.id, node.zone) for n, node in enumerate(placement.nodes))
        assert len(replicas) == 3
        partitions.append(
            Partition(
                counters.partition + number,
                counters.table,
                placement.low,
                placement.high,
                replicas,
                preferred_leader=next(place.replica for place in replicas if place.node == placement.leader),
                version=version,
            )
        )
    made = msgspec.structs.replace(table, id=counters.table, schema_version=1, status="CREATING")
    counters = Counters(
        counters.table + 1, counters.partition + len(placements), counters.replica + 3 * len(placements)
    )
    step = _step(catalog, tables=(CatalogTable(made, version),), partitions=tuple(partitions))
    return Change(step.update, counters)


def with_active_tables(catalog: Catalog, tables: Collection[int]) -> Change | None:
    """The tables of these ids, as far as they are being created, in status ACTIVE."""
    version = catalog.topology.version + 1
    records = tuple(
        CatalogTable(msgspec.structs.replace(record.table, status="ACTIVE"), version)
        for table in sorted(tables)
        if (record := catalog.topology.tables.get(table)) and record.table.status == "CREATING"
    )
    return _step(catalog, tables=records) if records else None


def with_changed_table(
    catalog: Catalog, name: str, wanted: Table, schema_version: int, table_version: int = 0
) -> Change:
    """The table as `wanted`, which was computed from `schema_version` and, when not 0, from that version of its record.

    Id, name, key and creation stay what they are. Raises ApiError: "Conflict", which no client sees, when the table has
    moved meanwhile and the caller is to look again.
    """
    record = catalog.topology.tables[_existing(catalog.topology, name).id]
    table = record.table
    if table.status != "ACTIVE":
        raise resource_in_use(f"Attempt to change a resource which is still in use: Table is being created: {name}")
    if table.schema_version != schema_version or table_version not in (0, record.version):
        raise ApiError("Conflict", f"Table {name} is at schema version {table.schema_version}, record {record.version}")
    changed = msgspec.structs.replace(
        wanted,
        id=table.id,
        name=table.name,
        keys=table.keys,
        created=table.created,
        table_id=table.table_id,
        schema_version=table.schema_version,
        status="ACTIVE",
    )
    if any(getattr(changed, member) != getattr(table, member) for member in _SCHEMA_MEMBERS):
        changed = msgspec.structs.replace(changed, schema_version=schema_version + 1)
    return _step(catalog, tables=(CatalogTable(changed, catalog.topology.version + 1),))


def without_table(catalog: Catalog, name: str) -> Change:
    """The table gone and its name free; its partitions become orders to drop their replicas. Raises ApiError."""
    table = _existing(catalog.topology, name)
    if table.status == "CREATING":
        raise resource_in_use(f"Attempt to change a resource which is still in use: Table is being created: {name}")
    if table.deletion_protection:
        raise validation(
            "Resource cannot be deleted as it is currently protected against deletion. "
            "Disable deletion protection first."
        )
    version = catalog.topology.version + 1
    dropped = tuple(
        replace(partition, state=PartitionState.DROPPED, version=version)
        for partition in catalog.topology.partitions_of(table.id)
    )
    return _step(catalog, removed_tables=(table.id,), partitions=dropped)


def without_replicas(catalog: Catalog, replicas: Collection[int]) -> Change | None:
    """Drop orders without the replicas that are gone; an order with none left goes too.

    Only dropped partitions are touched, whatever a node claims to have dropped.
    """
    version = catalog.topology.version + 1
    shorter, done = [], []
    for partition in catalog.topology.partitions.values():
        if partition.state is not PartitionState.DROPPED:
            continue
        left = tuple(place for place in partition.replicas if place.replica not in replicas)
        if not left:
            done.append(partition.id)
        elif len(left) < len(partition.replicas):
            shorter.append(replace(partition, replicas=left, version=version))
    if not shorter and not done:
        return None
    return _step(catalog, partitions=tuple(shorter), removed_partitions=tuple(done))


def _existing(topology: Topology, name: str) -> Table:
    table = topology.table_named(name)
    if table is None:
        raise table_not_found(name)
    return table


def _step(
    catalog: Catalog,
    *,
    tables: tuple[CatalogTable, ...] = (),
    removed_tables: tuple[int, ...] = (),
    partitions: tuple[Partition, ...] = (),
    removed_partitions: tuple[int, ...] = (),
    nodes: tuple[NodePlace, ...] = (),
) -> Change:
    """The change from the catalog's version to the next."""
    topology = catalog.topology
    update = CatalogUpdate(
        topology.cluster_id,
        topology.epoch,
        topology.version,
        topology.version + 1,
        tables=tables,
        removed_tables=removed_tables,
        partitions=partitions,
        removed_partitions=removed_partitions,
        nodes=nodes,
    )
    return Change(update, catalog.counters)


def no_room(live_zones: Collection[str]) -> ApiError:
    """The answer to a creation while fewer than three zones have a live node; SDKs retry it."""
    found = ", ".join(sorted(live_zones)) or "none"
    return internal(f"A table needs live storage nodes in three zones; those with one are: {found}.")
