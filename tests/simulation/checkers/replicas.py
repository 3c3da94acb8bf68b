"""The replicas of each partition hold the same rows, and these are what the log adds up to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from cluster.topology import Partition, PartitionState, Topology
from dynamo import codec
from dynamo.values import load
from replication.messages import NORMAL, Entry
from storagenode import commands
from storagenode.hosted import HostedReplica
from storagenode.index_commands import IndexWriteCommand
from storagenode.log.errors import LogError
from storagenode.regional_commands import RegionalCommand
from storagenode.storage import layout
from storagenode.transaction_commands import FinishCommand, MarkedItem, OnCommit, PrepareCommand, TransactCommand
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.workloads.history import Value
from tests.simulation.workloads.items import name_of, value_of

_ALL = 1 << 40
_OF_TRANSACTIONS = {"marks": layout.PENDING, "tokens": layout.TOKEN, "ages of tokens": layout.TOKEN_AGE}


def replicas_of(cluster: SimulatedCluster) -> dict[int, list[HostedReplica]]:
    """Every replica of every partition, in order of nodes."""
    found: dict[int, list[HostedReplica]] = {}
    for member in cluster.nodes:
        if member.node is not None and hasattr(member.node, "replicas"):
            for hosted in member.node.replicas:
                found.setdefault(hosted.partition_id, []).append(hosted)
    return found


def topology_of(cluster: SimulatedCluster) -> Topology:
    """The newest that a node knows."""
    known = [member.node.topology for member in cluster.nodes if member.node is not None]
    return max(known, key=lambda topology: (topology.epoch, topology.version), default=Topology())


def converged(cluster: SimulatedCluster) -> bool:
    """Whether each partition has its replicas and a serving leader, and everything is applied everywhere."""
    replicas = replicas_of(cluster)
    return bool(replicas) and all(
        _is_settled(partition, replicas.get(partition.id, []))
        for partition in topology_of(cluster).partitions.values()
        if partition.state is PartitionState.ACTIVE
    )


def all_served(cluster: SimulatedCluster) -> bool:
    """Whether each partition has a leader that serves."""
    replicas = replicas_of(cluster)
    return all(
        any(hosted.serving for hosted in replicas.get(partition.id, ()))
        for partition in topology_of(cluster).partitions.values()
        if partition.state is PartitionState.ACTIVE
    )


def _is_settled(partition: Partition, members: list[HostedReplica]) -> bool:
    return (
        not partition.leaving
        and sorted(hosted.replica.replica for hosted in members)
        == sorted(place.replica for place in partition.replicas)
        and sum(hosted.serving for hosted in members) == 1
        and len({hosted.partition.applied.position for hosted in members}) == 1
        and all(hosted.partition.applied.position == hosted.replica.last_position for hosted in members)
    )


def left_over(cluster: SimulatedCluster) -> list[str]:
    """Replicas of partitions that were to be dropped, on nodes that are up."""
    partitions = topology_of(cluster).partitions
    return [
        f"partition {partition} was dropped, and replica {hosted.replica.replica} is still there"
        for partition, members in replicas_of(cluster).items()
        for hosted in members
        if partition not in partitions or partitions[partition].state is not PartitionState.ACTIVE
    ]


def describe(cluster: SimulatedCluster) -> str:
    """Who leads what, and how far each replica is."""
    lines = [f"{member.name} is down" for member in cluster.nodes if member.node is None or not member.node.address]
    names = {
        hosted: member.name
        for member in cluster.nodes
        if member.node is not None and hasattr(member.node, "replicas")
        for hosted in member.node.hosted_all()
    }
    lines += [
        f"partition {partition} on {names[hosted]}: {hosted.replica.role}{' serving' if hosted.serving else ''}, epoch "
        f"{hosted.replica.epoch}, log to {hosted.replica.last_position}, durable to {hosted.replica.durable}, "
        f"committed to {hosted.replica.commit}, applied to {hosted.partition.applied.position}"
        for partition, members in replicas_of(cluster).items()
        for hosted in members
    ]
    return "\n".join(lines)


def unequal_replicas(cluster: SimulatedCluster) -> Iterator[str]:
    """Differences between replicas, and between their rows and what was agreed on. To be asked once `converged`.

    Partitions that are being dropped are no longer kept equal: their replicas go one by one.
    """
    yield from cluster.agreed.wrong
    partitions = topology_of(cluster).partitions
    for partition, members in replicas_of(cluster).items():
        if partition in partitions and partitions[partition].state is not PartitionState.ACTIVE:
            continue
        first, *others = members
        rows = _rows(first)
        for other in others:
            yield from (f"partition {partition}: {text}" for text in differences("rows", rows, _rows(other)))
            for name, prefix in _OF_TRANSACTIONS.items():
                found = differences(name, _rows_with(first, prefix), _rows_with(other, prefix))
                yield from (f"partition {partition}: {text}" for text in found)
            if ids_of(other) != ids_of(first):
                yield f"partition {partition}: replicas remember different operations"
            if other.store.schema() != first.store.schema():
                yield f"partition {partition}: replicas differ in their schema"
            if other.partition.applied != first.partition.applied:
                yield f"partition {partition}: applied {first.partition.applied} and {other.partition.applied}"
        try:
            entries = agreed_entries(cluster, first)
        except LookupError as error:
            yield str(error)
            continue
        for hosted in members:
            kept = _kept_entries(cluster, hosted)
            if kept and kept != entries[-len(kept) :]:
                yield f"partition {partition}: the log of replica {hosted.replica.replica} differs from what was agreed"
        folded = _folded(entries)
        yield from (f"partition {partition}: {text}" for text in differences("rows and log", folded, rows))
        applied = first.partition.applied
        if (applied.items, applied.size) != (len(rows), sum(map(codec.size_of, rows.values()))):
            yield f"partition {partition}: {len(rows)} rows, and {applied} says otherwise"


def ids_of(hosted: HostedReplica) -> dict[int, int]:
    """Operation id → position, of those that may not be forgotten yet. Rows are cut as it happened to be applied."""
    first = hosted.partition._operations.first_position
    return {
        operation_id: position
        for row in hosted.store.operation_ids()
        for position, operation_id in enumerate(row.ids, row.first_position)
        if operation_id and position >= first
    }


def partitions_of_table(cluster: SimulatedCluster, name: str) -> Iterator[HostedReplica]:
    """A replica of each partition of a table, the one that is furthest."""
    for members in replicas_of(cluster).values():
        furthest = max(members, key=lambda hosted: hosted.partition.applied.position)
        schema = furthest.partition.applied_schema
        if schema is not None and schema.name == name:
            yield furthest


def committed_values(cluster: SimulatedCluster, table: str) -> dict[str, set[Value]]:
    """Every value that each item of the item workload's table ever had, as the replicated log tells."""
    values: dict[str, set[Value]] = {}
    for hosted in partitions_of_table(cluster, table):
        for _, stored, _ in writes(agreed_entries(cluster, hosted)):
            if not is_gone(stored):
                item = load(codec.body_of(stored))
                values.setdefault(name_of(item), set()).add(value_of(item))
    return values


def agreed_entries(cluster: SimulatedCluster, hosted: HostedReplica) -> tuple[Entry, ...]:
    """All that a replica has applied, from its partition's first entry on. Raises LookupError if some is unknown."""
    return cluster.agreed.of(hosted.partition_id, hosted.partition.applied.position)


def _rows(hosted: HostedReplica) -> dict[bytes, bytes]:
    with closing(hosted.store.scan(b"", b"")) as rows:
        return dict(rows)


def _rows_with(hosted: HostedReplica, prefix: bytes) -> dict[bytes, bytes]:
    with closing(hosted.store.rows(prefix, layout.prefix_end(prefix))) as rows:
        return dict(rows)


def _kept_entries(cluster: SimulatedCluster, hosted: HostedReplica) -> tuple[Entry, ...]:
    """The applied part of what the log still has, of the node that holds this replica."""
    for member in cluster.nodes:
        if member.node is not None and member.node.hosted(hosted.partition_id) is hosted:
            try:
                entries = member.node.log.read(hosted.partition_id, hosted.replica.first_position, _ALL)
            except LogError:
                if member.log_is_damaged:
                    return ()
                raise
            return tuple(entry for entry in entries if entry.position <= hosted.partition.applied.position)
    raise LookupError(f"no node holds {hosted}")


def writes(entries: tuple[Entry, ...]) -> Iterator[tuple[bytes, bytes, int]]:
    """What the log says of items, those of transactions included: row key, stored bytes or a tombstone, position."""
    marks: dict[bytes, MarkedItem] = {}
    for entry in entries:
        if entry.kind != NORMAL:
            continue
        match commands.decode(entry.payload):
            case commands.WriteCommand() as command:
                yield command.key, command.stored, entry.position
            case IndexWriteCommand() | RegionalCommand() as command:
                yield from ((row.key, row.stored, entry.position) for row in command.rows)
            case TransactCommand() as command:
                yield from ((key, stored, entry.position) for key, stored, _ in command.writes)
            case PrepareCommand() as command:
                marks.update({item.key: item for item in command.items})
            case FinishCommand() as command:
                for key in command.keys:
                    mark = marks.pop(key)
                    if command.commit and mark.on_commit:
                        flags = codec.TOMBSTONE if mark.on_commit is OnCommit.DELETE else 0
                        header = codec.ItemHeader(flags, 0, mark.size, command.stamp, entry.position)
                        yield key, codec.encode(key, mark.body, header), entry.position


def is_gone(stored: bytes) -> bool:
    """Whether this is what the log says of a row that goes: a tombstone, or of an index's row nothing."""
    return not stored or bool(codec.header_of(stored).flags & codec.TOMBSTONE)


def _folded(entries: tuple[Entry, ...]) -> dict[bytes, bytes]:
    rows: dict[bytes, bytes] = {}
    for key, stored, _ in writes(entries):
        if is_gone(stored):
            rows.pop(key, None)
        else:
            rows[key] = stored
    return rows


def differences(what: str, first: dict[bytes, bytes], second: dict[bytes, bytes]) -> Iterator[str]:
    for key in sorted(first.keys() | second.keys()):
        if first.get(key) != second.get(key):
            yield f"{what} differ at {key.hex()}"
