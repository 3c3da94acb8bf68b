"""The replicas of each partition hold the same rows, and these are what the log adds up to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from dynamo import codec
from dynamo.values import load
from replication.messages import NORMAL, Entry
from storagenode import commands
from storagenode.hosted import HostedReplica
from storagenode.index_commands import IndexWriteCommand
from storagenode.storage import layout
from storagenode.transaction_commands import FinishCommand, MarkedItem, OnCommit, PrepareCommand, TransactCommand
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.workloads.history import Value

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


def converged(cluster: SimulatedCluster) -> bool:
    """Whether each partition has a serving leader and everything is applied everywhere."""
    replicas = replicas_of(cluster)
    return bool(replicas) and all(
        len(members) == len(cluster.nodes)
        and sum(hosted.serving for hosted in members) == 1
        and len({hosted.partition.applied.position for hosted in members}) == 1
        and all(hosted.partition.applied.position == hosted.replica.last_position for hosted in members)
        for members in replicas.values()
    )


def describe(cluster: SimulatedCluster) -> str:
    """Who leads what, and how far each replica is."""
    names = {hosted: member.name for member in cluster.nodes if member.node for hosted in member.node.hosted_all()}
    lines = [
        f"partition {partition} on {names[hosted]}: {hosted.replica.role}{' serving' if hosted.serving else ''}, epoch "
        f"{hosted.replica.epoch}, log to {hosted.replica.last_position}, durable to {hosted.replica.durable}, "
        f"committed to {hosted.replica.commit}, applied to {hosted.partition.applied.position}"
        for partition, members in replicas_of(cluster).items()
        for hosted in members
    ]
    return "\n".join(lines)


def unequal_replicas(cluster: SimulatedCluster) -> Iterator[str]:
    """Differences between replicas, and between rows and log. To be asked once `converged`."""
    for partition, members in replicas_of(cluster).items():
        first, *others = members
        rows, entries = _rows(first), _entries(cluster, first)
        for other in others:
            yield from (f"partition {partition}: {text}" for text in _differences("rows", rows, _rows(other)))
            for name, prefix in _OF_TRANSACTIONS.items():
                differences = _differences(name, _rows_with(first, prefix), _rows_with(other, prefix))
                yield from (f"partition {partition}: {text}" for text in differences)
            if other.partition.applied != first.partition.applied:
                yield f"partition {partition}: applied {first.partition.applied} and {other.partition.applied}"
            if entries != _entries(cluster, other):
                yield f"partition {partition}: the logs differ"
        folded = _folded(entries)
        yield from (f"partition {partition}: {text}" for text in _differences("rows and log", folded, rows))
        applied = first.partition.applied
        if (applied.items, applied.size) != (len(rows), sum(map(codec.size_of, rows.values()))):
            yield f"partition {partition}: {len(rows)} rows, and {applied} says otherwise"


def committed_values(cluster: SimulatedCluster) -> dict[str, set[Value]]:
    """Every value that each item ever had, as the replicated log tells."""
    values: dict[str, set[Value]] = {}
    for members in replicas_of(cluster).values():
        for _, stored in _writes(_entries(cluster, members[0])):
            if not _is_gone(stored):
                item = load(codec.body_of(stored))
                value = int(item["n"]["N"]) if "n" in item else item["v"]["S"]
                values.setdefault(item["k"]["S"], set()).add(value)
    return values


def _rows(hosted: HostedReplica) -> dict[bytes, bytes]:
    with closing(hosted.store.scan(b"", b"")) as rows:
        return dict(rows)


def _rows_with(hosted: HostedReplica, prefix: bytes) -> dict[bytes, bytes]:
    with closing(hosted.store.rows(prefix, layout.prefix_end(prefix))) as rows:
        return dict(rows)


def _entries(cluster: SimulatedCluster, hosted: HostedReplica) -> tuple[Entry, ...]:
    """The applied part of the log, of the node that holds this replica."""
    for member in cluster.nodes:
        if member.node is not None and member.node.hosted(hosted.partition_id) is hosted:
            entries = member.node.log.read(hosted.partition_id, 1, _ALL)
            return tuple(entry for entry in entries if entry.position <= hosted.partition.applied.position)
    raise LookupError(f"no node holds {hosted}")


def _writes(entries: tuple[Entry, ...]) -> Iterator[tuple[bytes, bytes]]:
    """What the log says of items, those of transactions included: row key and stored bytes, or a tombstone."""
    marks: dict[bytes, MarkedItem] = {}
    for entry in entries:
        if entry.kind != NORMAL:
            continue
        match commands.decode(entry.payload):
            case commands.WriteCommand() as command:
                yield command.key, command.stored
            case IndexWriteCommand() as command:
                yield from ((row.key, row.stored) for row in command.rows)
            case TransactCommand() as command:
                yield from ((key, stored) for key, stored, _ in command.writes)
            case PrepareCommand() as command:
                marks.update({item.key: item for item in command.items})
            case FinishCommand() as command:
                for key in command.keys:
                    mark = marks.pop(key)
                    if command.commit and mark.on_commit:
                        flags = codec.TOMBSTONE if mark.on_commit is OnCommit.DELETE else 0
                        header = codec.ItemHeader(flags, 0, mark.size, command.stamp, entry.position)
                        yield key, codec.encode(key, mark.body, header)


def _is_gone(stored: bytes) -> bool:
    """Whether this is what the log says of a row that goes: a tombstone, or of an index's row nothing."""
    return not stored or bool(codec.header_of(stored).flags & codec.TOMBSTONE)


def _folded(entries: tuple[Entry, ...]) -> dict[bytes, bytes]:
    rows: dict[bytes, bytes] = {}
    for key, stored in _writes(entries):
        if _is_gone(stored):
            rows.pop(key, None)
        else:
            rows[key] = stored
    return rows


def _differences(what: str, first: dict[bytes, bytes], second: dict[bytes, bytes]) -> Iterator[str]:
    for key in sorted(first.keys() | second.keys()):
        if first.get(key) != second.get(key):
            yield f"{what} differ at {key.hex()}"
