"""What a running cluster looks like: from its launcher's files, auto-admin, and the nodes themselves.

Nodes are asked for their replicas, so the answer is the replicas' own. While auto-admin is down, the nodes' copies of
the catalog name tables and partitions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.grpc_security import Security
from cluster.grpc_transport import GrpcTransport
from cluster.transport import Transport, TransportError
from cluster.wire import admin_pb2, common_pb2, node_pb2
from dynamo.table import decode_table
from trizone.data_directory import DataDirectory, ProcessRecord
from trizone.errors import CommandError
from trizone.operator_access import security_in

ANSWER_S = 2.0
REPLICAS = 3
"""As many replicas a partition is to have."""


@dataclass(frozen=True)
class ReplicaStatus:
    """One replica; `role` is "unknown" and the positions None while its node does not answer."""

    node: str
    zone: str
    role: str
    position: int | None
    applied: int | None


@dataclass(frozen=True)
class PartitionStatus:
    """One partition. `range` is its first and last hash in hexadecimal; `leader` the node's name, if one leads.

    `state`: ok; rebuilding while its replicas are being changed; degraded when it wants a full replica on a node that
    answers, has too few, or two of its replicas share a zone.
    """

    table: str
    partition: int
    range: tuple[str, str]
    epoch: int
    leader: str | None
    replicas: tuple[ReplicaStatus, ...]
    state: str = "ok"


@dataclass(frozen=True)
class AutoAdminStatus:
    """One member of auto-admin. `role`: leader, follower or candidate; learner while it does not vote, waiting while it
    has not found the others, unknown while it does not answer."""

    name: str
    role: str
    epoch: int | None
    position: int | None
    applied: int | None


@dataclass(frozen=True)
class Status:
    """What `trizone status` prints."""

    endpoint: str
    processes: tuple[ProcessRecord, ...]
    partitions: tuple[PartitionStatus, ...]
    auto_admins: tuple[AutoAdminStatus, ...] = ()


def read_status(data: Path) -> Status:
    """The status of the cluster that runs on `data`. Raises CommandError when none does."""
    directory = DataDirectory(data)
    if directory.cluster() is None:
        raise CommandError(f"There is no cluster in {directory}; name its folder with --data.")
    run = directory.run_file()
    if run is None or not directory.in_use():
        raise CommandError(f"The cluster in {directory} is not running.", code=1)
    cluster = directory.cluster()
    assert cluster is not None
    security = security_in(directory.path, cluster.cluster_id, tls=cluster.tls)
    catalog, reports, members = asyncio.run(_ask(cluster.cluster_id, run.processes, security))
    admins = [process for process in run.processes if process.role == "autoadmin"]
    shown = tuple(_auto_admin(process, members.get(process.address)) for process in admins)
    return Status(run.endpoint, tuple(run.processes), partitions(catalog, reports), shown)


def _auto_admin(process: ProcessRecord, member: admin_pb2.MemberRecord | None) -> AutoAdminStatus:
    if member is None:
        return AutoAdminStatus(process.name, "unknown", None, None, None)
    return AutoAdminStatus(process.name, member.role, member.epoch, member.position, member.applied)


async def _ask(
    cluster_id: str, processes: Sequence[ProcessRecord], security: Security
) -> tuple[common_pb2.CatalogUpdate, list[node_pb2.Report], dict[str, admin_pb2.MemberRecord]]:
    """The newest catalog that anyone holds, the reports of all nodes that answer, and auto-admin's members that do, by
    address."""
    transport = GrpcTransport(security)
    nodes = [process.address for process in processes if process.role == "storagenode"]
    admins = [process.address for process in processes if process.role == "autoadmin"]
    request = node_pb2.CatalogRequest(cluster_id=cluster_id).SerializeToString()
    status = admin_pb2.StatusRequest(cluster_id=cluster_id).SerializeToString()
    try:
        answers = await asyncio.gather(
            _calls(transport, admins, "Admin/Status", status),
            _calls(transport, nodes, "Node/Status", request),
            _calls(transport, nodes, "Node/Catalog", request),
        )
    finally:
        await transport.close()
    told = {address: admin_pb2.StatusReply.FromString(answer) for address, answer in answers[0].items()}
    catalogs = [reply.catalog for reply in told.values()]
    catalogs += [common_pb2.CatalogUpdate.FromString(answer) for answer in answers[2].values()]
    newest = max(catalogs, key=lambda catalog: (catalog.epoch, catalog.version), default=common_pb2.CatalogUpdate())
    reports = [node_pb2.Report.FromString(answer) for answer in answers[1].values()]
    return newest, reports, {address: reply.member for address, reply in told.items()}


async def _calls(transport: Transport, addresses: Sequence[str], method: str, message: bytes) -> dict[str, bytes]:
    """The answers of those that give one, by address."""
    calls = (transport.call(address, method, message, ANSWER_S) for address in addresses)
    answers = await asyncio.gather(*calls, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, TransportError):
            raise answer
    return {address: answer for address, answer in zip(addresses, answers, strict=True) if isinstance(answer, bytes)}


def partitions(catalog: common_pb2.CatalogUpdate, reports: Iterable[node_pb2.Report]) -> tuple[PartitionStatus, ...]:
    """Partitions by table and range: places from the catalog, roles and positions from the nodes' own reports."""
    reported = {report.node.node: {replica.replica: replica for replica in report.replicas} for report in reports}
    tables = {record.table: _shown_name(record, catalog) for record in catalog.tables}
    nodes = {record.node: record for record in catalog.nodes}
    found = [
        _partition(record, tables.get(record.table, ""), nodes, reported)
        for record in catalog.partitions
        if record.state == common_pb2.PartitionRecord.ACTIVE
    ]
    return tuple(sorted(found, key=lambda partition: (partition.table, partition.range)))


def _shown_name(record: common_pb2.TableRecord, catalog: common_pb2.CatalogUpdate) -> str:
    """A table's name; of the table that holds a global index's rows, the base table's and the index's."""
    if record.name:
        return record.name
    table = decode_table(record.definition)
    base = next((other.name for other in catalog.tables if other.table == table.index_of), "")
    return f"{base}/{table.index_name}" if base else ""


def _partition(
    record: common_pb2.PartitionRecord, table: str, nodes: dict[int, Any], reported: dict[int, Any]
) -> PartitionStatus:
    leader, epoch, replicas = None, 0, []
    for place in record.replicas:
        name = nodes[place.node].name if place.node in nodes else str(place.node)
        replica = reported.get(place.node, {}).get(place.replica)
        if replica is None:
            replicas.append(ReplicaStatus(name, place.zone, "unknown", None, None))
            continue
        role = "log" if place.log_only else replica.role
        replicas.append(ReplicaStatus(name, place.zone, role, replica.position, replica.applied))
        if replica.epoch > epoch:  # a leader of an older epoch does not know yet that it is none
            leader, epoch = None, replica.epoch
        if replica.epoch == epoch and replica.role == "leader":
            leader = name
    return PartitionStatus(
        table,
        record.partition,
        (record.low.hex(), record.high.hex()),
        epoch,
        leader,
        tuple(replicas),
        _state(record, reported),
    )


def _state(record: common_pb2.PartitionRecord, reported: dict[int, Any]) -> str:
    wanted = [place for place in record.replicas if place.replica not in record.leaving]
    whole = all(not place.log_only and place.replica in reported.get(place.node, {}) for place in wanted)
    if record.change:
        return "rebuilding"
    return "ok" if whole and len({place.zone for place in wanted}) == max(len(wanted), REPLICAS) else "degraded"
