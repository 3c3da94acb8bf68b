"""What a storage node tells Prometheus of each of its replicas and of the tables that they belong to.

A node may hold many partitions: beyond `REPLICAS_MAX` replicas only the sums of `storagenode.metrics` are told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from storagenode.usage import Usage

if TYPE_CHECKING:
    from storagenode.hosted import HostedReplica
    from storagenode.node import StorageNode

REPLICAS_MAX: Final = 500

_OF_A_REPLICA: Final[tuple[tuple[str, str, Callable[[HostedReplica], float]], ...]] = (
    ("leads", "1 on the replica that leads.", lambda hosted: hosted.replica.role == "leader"),
    ("serving", "1 on the replica that leads and serves.", lambda hosted: hosted.serving),
    ("epoch", "The replica's epoch.", lambda hosted: hosted.replica.epoch),
    ("last_position", "The end of its log.", lambda hosted: hosted.replica.last_position),
    ("commit_position", "How far it knows the log to be committed.", lambda hosted: hosted.replica.commit),
    ("applied_position", "How far it has applied the log.", lambda hosted: hosted.partition.applied.position),
    ("first_position", "The beginning of its log.", lambda hosted: hosted.replica.first_position),
    ("items", "Items that it holds.", lambda hosted: hosted.partition.applied.items),
    ("size_bytes", "DynamoDB's bytes of them.", lambda hosted: hosted.partition.applied.size),
    ("writes_waiting", "Writes proposed and not applied.", lambda hosted: hosted.waiting),
    ("without_state", "1 while it waits for a snapshot.", lambda hosted: hosted.replica.lacks_state),
)
_OF_A_TABLE: Final[tuple[tuple[str, str, Callable[[Usage], float]], ...]] = (
    ("consumed_read_capacity_units", "Read capacity units consumed.", lambda usage: usage.read_units),
    ("consumed_write_capacity_units", "Write capacity units consumed.", lambda usage: usage.write_units),
    ("returned_items", "Items that Query and Scan returned.", lambda usage: usage.returned_items),
    (
        "conditional_check_failed",
        "Writes whose condition did not hold.",
        lambda usage: usage.conditional_check_failed,
    ),
    (
        "transaction_conflicts",
        "Writes that met an item held by a transaction.",
        lambda usage: usage.transaction_conflicts,
    ),
    ("items_expired", "Items deleted because their time to live was over.", lambda usage: usage.items_expired),
)


def replica_metrics(node: StorageNode) -> Iterable[Metric]:
    """A gauge for each thing told of a replica, by table, index and partition."""
    replicas = list(node.replicas)
    if len(replicas) > REPLICAS_MAX:
        return
    labels = [(*_names(node, hosted.table_id), str(hosted.partition_id)) for hosted in replicas]
    for name, text, value_of in _OF_A_REPLICA:
        family = GaugeMetricFamily(f"trizone_storagenode_replica_{name}", text, labels=("table", "index", "partition"))
        for hosted, of_replica in zip(replicas, labels, strict=True):
            family.add_metric(of_replica, value_of(hosted))
        yield family


def table_metrics(node: StorageNode) -> Iterable[Metric]:
    """A counter for each thing told of a table, as far as this node's replicas answered. Tables that are gone are not
    told of."""
    usages = [(names, usage) for table, usage in node.usages.items() if (names := _names(node, table)) != _NOBODY]
    for name, text, value_of in _OF_A_TABLE:
        family = CounterMetricFamily(f"trizone_storagenode_table_{name}", text, labels=("table", "index"))
        for names, usage in usages:
            family.add_metric(names, value_of(usage))
        yield family


_NOBODY: Final = ("", "")


def _names(node: StorageNode, table_id: int) -> tuple[str, str]:
    """(table, global index) whose rows these are; a table of the cluster's own has its purpose in brackets."""
    table = node.topology.table(table_id)
    if table is None:
        return _NOBODY
    if table.internal:
        return f"({table.internal})", ""
    if table.index_of:
        base = node.topology.table(table.index_of)
        return _NOBODY if base is None else (base.name, table.index_name)
    return table.name, ""
