"""The catalog that auto-admin keeps, and every change of it. Changes are computed here and made durable elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from cluster.topology import (
    CatalogTable,
    CatalogUpdate,
    CatalogUser,
    MembershipChange,
    NodePlace,
    Partition,
    PartitionState,
    ReplicaPlace,
    Topology,
)
from dynamo.errors import ApiError, internal, limit_exceeded, resource_in_use, table_not_found, validation
from dynamo.regions import readers_of
from dynamo.table import Index, Table
from dynamo.user import USERS_MAX, User, check_user, user_exists, user_not_found

TABLES_MAX = 2_500
ADOPTED_ID_GAP = 1_000_000
"""How far ids jump when a copy is adopted: past all that were given out, and perhaps dropped again, after that copy."""

_SCHEMA_MEMBERS = ("attribute_types", "keys", "local_indexes", "streams", "ttl_attribute")


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
    replicas += [order.replica for partition in partitions for order in partition.dropping]
    counters = Counters(
        max(copy.tables, default=0) + ADOPTED_ID_GAP,
        max(copy.partitions, default=0) + ADOPTED_ID_GAP,
        max(replicas, default=0) + ADOPTED_ID_GAP,
    )
    return Change(replace(copy.full(), epoch=copy.epoch + 1, version=version), counters)


def with_node(catalog: Catalog, node: NodePlace) -> Change | None:
    """The node made known, or its new address; None when nothing about it is new, or it was removed.

    Whether it is to be emptied is not its own to say.
    """
    if node.id in catalog.topology.former_nodes:
        return None
    known = catalog.topology.node(node.id)
    node = replace(node, draining=known is not None and known.draining, removed=False)
    if known is not None and replace(known, version=0) == replace(node, version=0):
        return None
    version = catalog.topology.version + 1
    return _step(catalog, nodes=(replace(node, version=version),))


def check_new_table(topology: Topology, table: Table) -> None:
    """Whether a table may be created under this name. Raises ApiError."""
    if topology.table_named(table.name) is not None:
        raise resource_in_use(f"Table already exists: {table.name}")
    if len(topology.table_names()) >= TABLES_MAX:
        raise limit_exceeded(f"Subscriber limit exceeded: There is a limit of {TABLES_MAX} tables per subscriber")


def with_new_table(
    catalog: Catalog,
    table: Table,
    placements: Sequence[Placement],
    index_placements: Sequence[Sequence[Placement]] = (),
) -> Change:
    """The table in status CREATING with its partitions, and a table for each of its global indexes, whose partitions go
    to `index_placements`; it is ACTIVE once their leaders serve. Raises ApiError."""
    check_new_table(catalog.topology, table)
    new = NewTables(catalog)
    table_id = new.take_id()
    made = msgspec.structs.replace(table, id=table_id, schema_version=1, status="CREATING")
    indexes = tuple(
        msgspec.structs.replace(index, table=new.take_id(), status="CREATING") for index in table.global_indexes
    )
    made = msgspec.structs.replace(made, global_indexes=indexes)
    new.add(made, placements)
    for index, places in zip(indexes, index_placements, strict=True):
        new.add(index_table(made, index), places)
    return new.change()


class NewTables:
    """Tables that one change makes, with their partitions, as they are gathered."""

    def __init__(self, catalog: Catalog) -> None:
        self.version = catalog.topology.version + 1
        self._catalog = catalog
        self._counters = catalog.counters
        self._tables: list[CatalogTable] = []
        self._partitions: list[Partition] = []

    def take_id(self) -> int:
        """The next table's id."""
        id_ = self._counters.table
        self._counters = replace(self._counters, table=id_ + 1)
        return id_

    def add(self, table: Table, placements: Sequence[Placement]) -> None:
        """A table whose id was taken, and its partitions."""
        self._tables.append(CatalogTable(table, self.version))
        counters = self._counters
        for number, placement in enumerate(placements):
            first = counters.replica + 3 * number
            replicas = tuple(ReplicaPlace(first + n, node.id, node.zone) for n, node in enumerate(placement.nodes))
            assert len(replicas) == 3
            self._partitions.append(
                Partition(
                    counters.partition + number,
                    table.id,
                    placement.low,
                    placement.high,
                    replicas,
                    preferred_leader=next(place.replica for place in replicas if place.node == placement.leader),
                    version=self.version,
                )
            )
        self._counters = Counters(
            counters.table, counters.partition + len(placements), counters.replica + 3 * len(placements)
        )

    def change(
        self,
        *,
        tables: tuple[CatalogTable, ...] = (),
        partitions: tuple[Partition, ...] = (),
        removed: Sequence[int] = (),
    ) -> Change:
        """The change that makes all of them, changes other `tables` and `partitions`, and removes tables by id."""
        step = _step(
            self._catalog,
            tables=(*tables, *self._tables),
            partitions=(*partitions, *self._partitions),
            removed_tables=tuple(removed),
        )
        return Change(step.update, self._counters)


def index_table(base: Table, index: Index) -> Table:
    """The table that holds the rows of a global index of `base`."""
    return Table(
        id=index.table,
        name="",
        schema_version=1,
        attribute_types=base.attribute_types,
        keys=index.keys,
        created=base.created,
        billing=base.billing,
        throughput=index.throughput,
        index_of=base.id,
        index_name=index.name,
        base_keys=base.keys,
    )


def with_active_tables(catalog: Catalog, tables: Collection[int]) -> Change | None:
    """The tables of these ids, as far as they or their indexes are being made, in status ACTIVE."""
    version = catalog.topology.version + 1
    records = tuple(
        CatalogTable(_activated(record.table), version)
        for table in sorted(tables)
        if (record := catalog.topology.tables.get(table)) and record.table.status in ("CREATING", "UPDATING")
    )
    return _step(catalog, tables=records) if records else None


def _activated(table: Table) -> Table:
    """Indexes that came with their table are there with it; those that came later are filled first."""
    filling = table.status == "UPDATING"
    indexes = tuple(
        index
        if index.status != "CREATING"
        else msgspec.structs.replace(index, status="CREATING" if filling else "ACTIVE", backfilling=filling)
        for index in table.global_indexes
    )
    return msgspec.structs.replace(table, status="ACTIVE", global_indexes=indexes)


def with_active_indexes(catalog: Catalog, indexes: Collection[int]) -> Change | None:
    """The global indexes, by their tables' ids, as far as they are being filled, in status ACTIVE."""
    version = catalog.topology.version + 1
    records = []
    for record in catalog.topology.tables.values():
        table = record.table
        if any(index.table in indexes and index.backfilling for index in table.global_indexes):
            changed = tuple(
                msgspec.structs.replace(index, status="ACTIVE", backfilling=False)
                if index.table in indexes and index.backfilling
                else index
                for index in table.global_indexes
            )
            records.append(CatalogTable(msgspec.structs.replace(table, global_indexes=changed), version))
    return _step(catalog, tables=tuple(records)) if records else None


def added_indexes(topology: Topology, name: str, wanted: Table) -> tuple[Index, ...]:
    """The global indexes of `wanted` that the table of this name does not have. Raises ApiError."""
    known = {index.name for index in _existing(topology, name).global_indexes}
    return tuple(index for index in wanted.global_indexes if index.name not in known)


def with_changed_table(
    catalog: Catalog,
    name: str,
    wanted: Table,
    schema_version: int,
    table_version: int = 0,
    index_placements: Sequence[Sequence[Placement]] = (),
) -> Change:
    """The table as `wanted`, which was computed from `schema_version` and, when not 0, from that version of its record.

    Id, name, key and creation stay what they are, and so do keys and projections of indexes. An index that it did not
    have gets a table of its own at the next of `index_placements`; the table of one that `wanted` lacks is dropped.
    Raises ApiError: "Conflict", which no client sees, when the table has moved meanwhile and the caller is to look
    again.
    """
    record = catalog.topology.tables[_existing(catalog.topology, name).id]
    table = record.table
    if table.status != "ACTIVE":
        raise resource_in_use(f"Attempt to change a resource which is still in use: Table is being created: {name}")
    if table.schema_version != schema_version or table_version not in (0, record.version):
        raise ApiError("Conflict", f"Table {name} is at schema version {table.schema_version}, record {record.version}")
    added = added_indexes(catalog.topology, name, wanted)
    new = NewTables(catalog)
    changed = msgspec.structs.replace(
        wanted,
        id=table.id,
        name=table.name,
        keys=table.keys,
        created=table.created,
        table_id=table.table_id,
        schema_version=schema_version,
        status="UPDATING" if added else "ACTIVE",
        global_indexes=_merged(table, wanted, new),
    )
    if _schema(changed) != _schema(table):
        changed = msgspec.structs.replace(changed, schema_version=schema_version + 1)
    for index, places in zip(added, index_placements, strict=True):
        made = next(index_ for index_ in changed.global_indexes if index_.name == index.name)
        new.add(index_table(changed, made), places)
    gone = _tables_of(table) - _tables_of(changed)
    return new.change(
        tables=(CatalogTable(changed, new.version),),
        partitions=_dropped(catalog.topology, gone, new.version),
        removed=sorted(gone),
    )


def _merged(table: Table, wanted: Table, new: NewTables) -> tuple[Index, ...]:
    """The global indexes of `wanted`: what is known of them stays, new ones get the next table ids."""
    known = {index.name: index for index in table.global_indexes}
    merged = []
    for index in wanted.global_indexes:
        old = known.get(index.name)
        if old is None:
            merged.append(msgspec.structs.replace(index, table=new.take_id(), status="CREATING", backfilling=False))
        else:
            merged.append(
                msgspec.structs.replace(
                    index,
                    keys=old.keys,
                    projection=old.projection,
                    non_key_attributes=old.non_key_attributes,
                    table=old.table,
                    status=old.status,
                    backfilling=old.backfilling,
                )
            )
    return tuple(merged)


def _schema(table: Table) -> list[object]:
    """What a storage node must know of a table before it may write an item: if it changes, the schema version rises."""
    members: list[object] = [getattr(table, member) for member in _SCHEMA_MEMBERS]
    members += [table.region, table.origins, [replica.number for replica in readers_of(table)]]
    return members + [(index.table, index.keys, index.projection) for index in table.global_indexes]


def _tables_of(table: Table) -> set[int]:
    return {index.table for index in table.global_indexes}


def _dropped(topology: Topology, tables: Collection[int], version: int) -> tuple[Partition, ...]:
    """Orders to drop the replicas of all partitions of these tables, those included that were to be dropped anyway."""
    return tuple(
        replace(
            partition,
            state=PartitionState.DROPPED,
            replicas=(*partition.replicas, *_ordered(topology, partition)),
            leaving=(),
            dropping=(),
            change=MembershipChange.NONE,
            version=version,
        )
        for table in sorted(tables)
        for partition in topology.partitions_of(table)
    )


def _ordered(topology: Topology, partition: Partition) -> Iterator[ReplicaPlace]:
    """The replicas of which there are orders, as places."""
    for order in partition.dropping:
        node = topology.nodes.get(order.node)
        yield ReplicaPlace(order.replica, order.node, "" if node is None else node.zone)


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
    gone = (table.id, *sorted(_tables_of(table)))
    dropped = _dropped(catalog.topology, gone, catalog.topology.version + 1)
    return _step(catalog, removed_tables=gone, partitions=dropped)


def with_user(catalog: Catalog, user: User, version: int) -> Change:
    """The user put in place of the record of that version; 0: there is to be none yet. Raises ApiError: "Conflict" when
    the record has moved meanwhile and the caller is to look again."""
    check_user(user)
    users = catalog.topology.users
    known = users.get(user.id)
    if known is None:
        if version:
            raise user_not_found(user.name)
        if len(users) >= USERS_MAX:
            raise limit_exceeded(f"There is a limit of {USERS_MAX} users per cluster")
    elif not version:
        raise user_exists(user.name)
    elif version != known.version:
        raise ApiError("Conflict", f"The user {user.name} was changed meanwhile")
    for other in users.values():
        taken = [key.id for key in other.user.keys if other.user.name != user.name and user.key(key.id) is not None]
        if taken:
            raise resource_in_use(f"The access key {taken[0]} is that of another user")
    return _step(catalog, users=(CatalogUser(user, catalog.topology.version + 1),))


def without_user(catalog: Catalog, name: str) -> Change:
    """The user gone, with keys and policies. Raises ApiError."""
    found = next((record.user for record in catalog.topology.users.values() if record.user.name == name), None)
    if found is None:
        raise user_not_found(name)
    return _step(catalog, removed_users=(found.id,))


def without_replicas(catalog: Catalog, replicas: Collection[int]) -> Change | None:
    """Drop orders without the replicas that are gone; a dropped partition with none left goes too.

    Only orders are touched, whatever a node claims to have dropped.
    """
    version = catalog.topology.version + 1
    shorter, done = [], []
    for partition in catalog.topology.partitions.values():
        left, orders = partition.replicas, partition.dropping
        if partition.state is PartitionState.DROPPED:
            left = tuple(place for place in left if place.replica not in replicas)
        else:
            orders = tuple(order for order in orders if order.replica not in replicas)
        if not left:
            done.append(partition.id)
        elif (left, orders) != (partition.replicas, partition.dropping):
            shorter.append(replace(partition, replicas=left, dropping=orders, version=version))
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
    users: tuple[CatalogUser, ...] = (),
    removed_users: tuple[int, ...] = (),
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
        users=users,
        removed_users=removed_users,
    )
    return Change(update, catalog.counters)


def no_room(live_zones: Collection[str]) -> ApiError:
    """The answer to a creation while fewer than three zones have a live node; SDKs retry it."""
    found = ", ".join(sorted(live_zones)) or "none"
    return internal(f"A table needs live storage nodes in three zones; those with one are: {found}.")
