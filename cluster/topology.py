"""Catalog and topology as one immutable, versioned view: which tables there are, and where their partitions live.

Auto-admin makes it, storage nodes keep a durable copy, routers a copy in memory. It moves by `CatalogUpdate`s, each of
which either is the whole (`from_version` 0) or holds what changed after a version. The map is a hint: the replicas'
logs are the truth about membership and leaders.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from types import MappingProxyType
from typing import Literal, TypeAlias

from dynamo.table import Table
from dynamo.user import User

REMOVALS_KEPT = 1_000
"""How many removals a view remembers; whoever is further behind gets the whole catalog."""


class PartitionState(IntEnum):
    """ACTIVE, or DROPPED: the order to drop exactly the replicas listed. The numbers are those of the wire."""

    ACTIVE = 0
    DROPPED = 1


class MembershipChange(IntEnum):
    """Why replicas join and leave a partition: the node of one is lost, is to be emptied, shares its zone with that of
    another voter, or holds more than others of its zone. The numbers are those of the wire."""

    NONE = 0
    REPLACE = 1
    DRAIN = 2
    ZONE = 3
    BALANCE = 4


@dataclass(frozen=True, slots=True)
class NodePlace:
    """A storage node and how to reach it. `metrics` is its HTTP status address.

    `draining`: its replicas are to leave it. `removed`: it is no longer of the cluster; the record stays, so that it is
    never taken for a new node. Both are auto-admin's to set.
    """

    id: int
    name: str
    region: str
    zone: str
    address: str
    metrics: str = ""
    version: int = 0
    draining: bool = False
    removed: bool = False


@dataclass(frozen=True, slots=True)
class ReplicaPlace:
    """One replica of a partition, on its node. `log_only`: it keeps the log and votes, but has no state."""

    replica: int
    node: int
    zone: str
    log_only: bool = False


@dataclass(frozen=True, slots=True)
class DropOrder:
    """The order to drop one replica that is no longer a member, as of that version of the partition's membership."""

    replica: int
    node: int
    membership_version: int


@dataclass(frozen=True, slots=True)
class Partition:
    """The hash range `low`..`high` (16 bytes each, both inclusive) of a table, and its replicas.

    `replicas` are those that should exist, `wanted_voters` those that should vote: all but the `leaving` (by id), which
    go once the others vote. `membership_version` is the newest that auto-admin took from a leader's report.
    `preferred_leader` is a replica id, or 0 when any will do. `founders` are the first voters, by id: all of `replicas`
    when the record is made, and then for ever. Any other replica begins as a learner.
    """

    id: int
    table: int
    low: bytes
    high: bytes
    replicas: tuple[ReplicaPlace, ...]
    membership_version: int = 1
    preferred_leader: int = 0
    state: PartitionState = PartitionState.ACTIVE
    version: int = 0
    leaving: tuple[int, ...] = ()
    dropping: tuple[DropOrder, ...] = ()
    change: MembershipChange = MembershipChange.NONE
    founders: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.founders:
            object.__setattr__(self, "founders", tuple(place.replica for place in self.replicas))

    @property
    def wanted_voters(self) -> tuple[ReplicaPlace, ...]:
        """The replicas that vote once the change of membership under way, if any, is done."""
        if not self.leaving:
            return self.replicas
        return tuple(place for place in self.replicas if place.replica not in self.leaving)

    def replica_on(self, node: int) -> ReplicaPlace | None:
        """The replica that `node` holds, if any."""
        return next((place for place in self.replicas if place.node == node), None)

    def replica(self, replica: int) -> ReplicaPlace | None:
        """The replica of this id, if it is a member."""
        return next((place for place in self.replicas if place.replica == replica), None)


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table's description and the catalog version of its last change."""

    table: Table
    version: int = 0


@dataclass(frozen=True, slots=True)
class CatalogUser:
    """A user and the catalog version of its last change."""

    user: User
    version: int = 0


@dataclass(frozen=True, slots=True)
class CatalogUpdate:
    """What changed after `from_version`; `from_version` 0 is the whole."""

    cluster_id: str
    epoch: int
    from_version: int
    version: int
    tables: tuple[CatalogTable, ...] = ()
    removed_tables: tuple[int, ...] = ()
    partitions: tuple[Partition, ...] = ()
    removed_partitions: tuple[int, ...] = ()
    nodes: tuple[NodePlace, ...] = ()
    removed_nodes: tuple[int, ...] = ()
    users: tuple[CatalogUser, ...] = ()
    removed_users: tuple[int, ...] = ()


Kind: TypeAlias = Literal["table", "partition", "node", "user"]


@dataclass(frozen=True, slots=True)
class Removal:
    """A record that was taken out at `version`."""

    version: int
    kind: Kind
    id: int


class UpdateRefused(Exception):  # noqa: N818 - a refusal, not a fault
    """An update that cannot be taken: another cluster's, or one that leaves a gap. The holder asks for the whole."""


@dataclass(frozen=True, slots=True)
class _Range:
    """A table's partitions in hash order, with their lower bounds for searching."""

    lows: tuple[bytes, ...]
    partitions: tuple[Partition, ...]


@dataclass(frozen=True)
class Topology:
    """One version of catalog and topology. Never changed: `with_update` gives the next.

    `cluster_id` is empty until the first update names it. Mappings are by id and include dropped partitions. Nodes that
    were removed are not among `nodes`, but `former_nodes`.
    """

    cluster_id: str = ""
    epoch: int = 0
    version: int = 0
    tables: Mapping[int, CatalogTable] = field(default_factory=dict)
    partitions: Mapping[int, Partition] = field(default_factory=dict)
    nodes: Mapping[int, NodePlace] = field(default_factory=dict)
    former_nodes: Mapping[int, NodePlace] = field(default_factory=dict)
    users: Mapping[int, CatalogUser] = field(default_factory=dict)
    removals: tuple[Removal, ...] = ()
    complete_since: int = 0  # differences from this version on are known; earlier ones are given as the whole
    _names: Mapping[str, int] = field(default_factory=dict, repr=False)
    _internal: Mapping[str, int] = field(default_factory=dict, repr=False)
    _ranges: Mapping[int, _Range] = field(default_factory=dict, repr=False)

    @property
    def at(self) -> tuple[int, int]:
        """(epoch, version), by which views are compared."""
        return self.epoch, self.version

    def table(self, table: int) -> Table | None:
        """The table of this id."""
        found = self.tables.get(table)
        return found.table if found else None

    def table_named(self, name: str) -> Table | None:
        """The table of this name (case-sensitive)."""
        table = self._names.get(name)
        return None if table is None else self.tables[table].table

    def internal_table(self, purpose: str) -> Table | None:
        """The cluster's own table for this purpose (`Table.internal`), if it was made."""
        table = self._internal.get(purpose)
        return None if table is None else self.tables[table].table

    def table_names(self) -> list[str]:
        """All names, in UTF-8 order, which is the order of ListTables."""
        return sorted(self._names)

    def node(self, node: int) -> NodePlace | None:
        """The node of this id."""
        return self.nodes.get(node)

    def partition(self, partition: int) -> Partition | None:
        """The partition of this id, dropped ones included."""
        return self.partitions.get(partition)

    def partition_for(self, table: int, hash: bytes) -> Partition:  # noqa: A002
        """The active partition whose range holds `hash` (16 bytes). Raises LookupError when there is none."""
        ranges = self._ranges.get(table)
        if ranges is None:
            raise LookupError(f"table {table} has no partitions in catalog version {self.version}")
        index = bisect_right(ranges.lows, hash) - 1
        if index >= 0 and hash <= ranges.partitions[index].high:
            return ranges.partitions[index]
        raise LookupError(f"no partition of table {table} holds {hash.hex()} in catalog version {self.version}")

    def partitions_of(self, table: int) -> tuple[Partition, ...]:
        """The table's active partitions in hash order; empty when it is unknown."""
        ranges = self._ranges.get(table)
        return ranges.partitions if ranges else ()

    def partitions_on(self, node: int) -> list[Partition]:
        """Every partition, dropped ones included, of which `node` holds a replica."""
        return [partition for partition in self.partitions.values() if partition.replica_on(node)]

    def with_update(self, update: CatalogUpdate) -> Topology:
        """The view after `update`: this same object when the update is not newer.

        Raises UpdateRefused when the update is of another cluster, or builds on a version that this view has not seen.
        """
        if self.cluster_id and update.cluster_id != self.cluster_id:
            raise UpdateRefused(f"the update is of cluster {update.cluster_id}, not of {self.cluster_id}")
        if (update.epoch, update.version) <= self.at:
            return self
        if update.from_version == 0:
            return _replaced(update)
        if update.epoch != self.epoch or update.from_version > self.version:
            raise UpdateRefused(
                f"the update starts from {update.epoch}.{update.from_version}, "
                f"this view is at {self.epoch}.{self.version}"
            )
        return _advanced(self, update)

    def difference(self, epoch: int, from_version: int) -> CatalogUpdate:
        """What a holder of (`epoch`, `from_version`) lacks; the whole when that cannot be told."""
        if epoch != self.epoch or not self.complete_since <= from_version <= self.version or from_version == 0:
            return self.full()
        removed = [removal for removal in self.removals if removal.version > from_version]
        return CatalogUpdate(
            self.cluster_id,
            self.epoch,
            from_version,
            self.version,
            tables=tuple(record for record in self.tables.values() if record.version > from_version),
            removed_tables=tuple(removal.id for removal in removed if removal.kind == "table"),
            partitions=tuple(record for record in self.partitions.values() if record.version > from_version),
            removed_partitions=tuple(removal.id for removal in removed if removal.kind == "partition"),
            nodes=tuple(record for record in self._all_nodes() if record.version > from_version),
            removed_nodes=tuple(removal.id for removal in removed if removal.kind == "node"),
            users=tuple(record for record in self.users.values() if record.version > from_version),
            removed_users=tuple(removal.id for removal in removed if removal.kind == "user"),
        )

    def full(self) -> CatalogUpdate:
        """The whole of it."""
        return CatalogUpdate(
            self.cluster_id,
            self.epoch,
            0,
            self.version,
            tables=tuple(self.tables.values()),
            partitions=tuple(self.partitions.values()),
            nodes=self._all_nodes(),
            users=tuple(self.users.values()),
        )

    def _all_nodes(self) -> tuple[NodePlace, ...]:
        return (*self.nodes.values(), *self.former_nodes.values())


def _replaced(update: CatalogUpdate) -> Topology:
    """The view that a whole update describes. What was removed before is not known to it."""
    partitions = {record.id: record for record in update.partitions}
    tables = {record.table.id: record for record in update.tables}
    return Topology(
        update.cluster_id,
        update.epoch,
        update.version,
        tables=MappingProxyType(tables),
        partitions=MappingProxyType(partitions),
        nodes=MappingProxyType({record.id: record for record in update.nodes if not record.removed}),
        former_nodes=MappingProxyType({record.id: record for record in update.nodes if record.removed}),
        users=MappingProxyType({record.user.id: record for record in update.users}),
        complete_since=update.version,
        _names=_names(tables.values()),
        _internal=_internal(tables.values()),
        _ranges=_ranges(partitions.values(), {record.table for record in update.partitions}, {}),
    )


def _advanced(topology: Topology, update: CatalogUpdate) -> Topology:
    """The view after a difference."""
    tables = {**topology.tables, **{record.table.id: record for record in update.tables}}
    partitions = {**topology.partitions, **{record.id: record for record in update.partitions}}
    known = {**topology.nodes, **topology.former_nodes, **{record.id: record for record in update.nodes}}
    touched = {record.table for record in update.partitions}
    for partition in update.removed_partitions:
        if removed := partitions.pop(partition, None):
            touched.add(removed.table)
    for table in update.removed_tables:
        tables.pop(table, None)
    for node in update.removed_nodes:
        known.pop(node, None)
    removals, complete_since = _remembered(topology, update)
    return replace(
        topology,
        version=update.version,
        tables=MappingProxyType(tables),
        partitions=MappingProxyType(partitions),
        nodes=MappingProxyType({id: record for id, record in known.items() if not record.removed}),  # noqa: A001
        former_nodes=MappingProxyType({id: record for id, record in known.items() if record.removed}),  # noqa: A001
        users=_users(topology, update),
        removals=removals,
        complete_since=complete_since,
        _names=_names(tables.values()) if update.tables or update.removed_tables else topology._names,
        _internal=_internal(tables.values()) if update.tables or update.removed_tables else topology._internal,
        _ranges=_ranges(partitions.values(), touched, topology._ranges) if touched else topology._ranges,
    )


def _users(topology: Topology, update: CatalogUpdate) -> Mapping[int, CatalogUser]:
    """The users after a difference: the same object when none has changed, by which holders see that."""
    if not update.users and not update.removed_users:
        return topology.users
    users = {**topology.users, **{record.user.id: record for record in update.users}}
    for user in update.removed_users:
        users.pop(user, None)
    return MappingProxyType(users)


def _remembered(topology: Topology, update: CatalogUpdate) -> tuple[tuple[Removal, ...], int]:
    """The newest removals, and the version from which on they are all there."""
    removals = (
        *topology.removals,
        *(Removal(update.version, "table", table) for table in update.removed_tables),
        *(Removal(update.version, "partition", partition) for partition in update.removed_partitions),
        *(Removal(update.version, "node", node) for node in update.removed_nodes),
        *(Removal(update.version, "user", user) for user in update.removed_users),
    )
    forgotten = removals[:-REMOVALS_KEPT]
    if not forgotten:
        return removals, topology.complete_since
    return removals[-REMOVALS_KEPT:], max(topology.complete_since, forgotten[-1].version)


def _names(tables: Iterable[CatalogTable]) -> Mapping[str, int]:
    """Ids by name. The tables that hold the rows of global indexes have none."""
    return MappingProxyType({record.table.name: record.table.id for record in tables if record.table.name})


def _internal(tables: Iterable[CatalogTable]) -> Mapping[str, int]:
    return MappingProxyType({record.table.internal: record.table.id for record in tables if record.table.internal})


def _ranges(partitions: Iterable[Partition], touched: set[int], known: Mapping[int, _Range]) -> Mapping[int, _Range]:
    """The search tables by table id, made anew for the `touched` tables only."""
    active: dict[int, list[Partition]] = {}
    for partition in partitions:
        if partition.table in touched and partition.state is PartitionState.ACTIVE:
            active.setdefault(partition.table, []).append(partition)
    ranges = {table: found for table, found in known.items() if table not in touched}
    for table, members in active.items():
        members.sort(key=lambda partition: partition.low)
        ranges[table] = _Range(tuple(partition.low for partition in members), tuple(members))
    return MappingProxyType(ranges)
