"""What `trizone status` makes of the catalog and the nodes' reports."""

from __future__ import annotations

import json

import pytest

from cluster.wire import common_pb2, node_pb2
from dynamo.table import KeySchema, Table, encode_table
from trizone.data_directory import ProcessRecord
from trizone.report import show
from trizone.status import Status, partitions

ZONES = {1: "a", 2: "b", 3: "c"}


def _catalog() -> common_pb2.CatalogUpdate:
    def partition(number: int, low: bytes) -> common_pb2.PartitionRecord:
        replicas = [common_pb2.ReplicaRecord(replica=10 * number + node, node=node, zone=ZONES[node]) for node in ZONES]
        return common_pb2.PartitionRecord(
            partition=number, table=5, low=low * 16, high=low * 15 + b"\xff", replicas=replicas
        )

    dropped = common_pb2.PartitionRecord(partition=9, table=5, state=common_pb2.PartitionRecord.DROPPED)
    return common_pb2.CatalogUpdate(
        tables=[common_pb2.TableRecord(table=5, name="orders")],
        partitions=[partition(2, b"\x80"), partition(1, b"\x00"), dropped],
        nodes=[common_pb2.NodeRecord(node=node, name=f"node-{zone}", zone=zone) for node, zone in ZONES.items()],
    )


def _report(node: int, role: str, epoch: int) -> node_pb2.Report:
    replica = node_pb2.ReplicaReport(partition=1, replica=10 + node, role=role, epoch=epoch, position=7, applied=6)
    return node_pb2.Report(node=common_pb2.NodeRecord(node=node), replicas=[replica])


def test_partitions_come_in_order_without_dropped_ones() -> None:
    found = partitions(_catalog(), [])
    assert [(partition.table, partition.partition) for partition in found] == [("orders", 1), ("orders", 2)]
    assert found[0].range == ("00" * 16, "00" * 15 + "ff")


def test_partitions_of_an_index_go_by_its_table_s_name_and_its_own() -> None:
    catalog = _catalog()
    table = Table(6, "", 1, {"g": "S"}, KeySchema(("g",)), 0.0, index_of=5, index_name="by_g")
    catalog.tables.add(table=6, definition=encode_table(table))
    for partition in catalog.partitions:
        partition.table = 6
    assert {partition.table for partition in partitions(catalog, [])} == {"orders/by_g"}


def test_the_leader_of_the_highest_epoch_counts() -> None:
    reports = [_report(1, "leader", 3), _report(2, "leader", 4), _report(3, "follower", 4)]
    partition = partitions(_catalog(), reports)[0]
    assert (partition.leader, partition.epoch) == ("node-b", 4)
    assert [replica.role for replica in partition.replicas] == ["leader", "leader", "follower"]


def test_a_deposed_leader_is_none() -> None:
    partition = partitions(_catalog(), [_report(1, "leader", 3), _report(2, "candidate", 4)])[0]
    assert (partition.leader, partition.epoch) == (None, 4)


def test_a_silent_node_is_unknown() -> None:
    replica = partitions(_catalog(), [_report(1, "leader", 3)])[0].replicas[2]
    assert (replica.node, replica.zone, replica.role, replica.position) == ("node-c", "c", "unknown", None)


def test_a_partition_is_ok_degraded_or_rebuilding() -> None:
    reports = [_report(node, "follower", 3) for node in ZONES]
    catalog = _catalog()
    record = next(partition for partition in catalog.partitions if partition.partition == 1)
    assert partitions(catalog, reports)[0].state == "ok"
    assert partitions(catalog, reports[:2])[0].state == "degraded"
    record.replicas[2].zone = "a"
    assert partitions(catalog, reports)[0].state == "degraded"
    record.replicas[2].zone, record.replicas[2].log_only = "c", True
    shown = partitions(catalog, reports)[0]
    assert (shown.state, shown.replicas[2].role) == ("degraded", "log")
    record.change = common_pb2.PartitionRecord.REPLACE
    assert partitions(catalog, reports)[0].state == "rebuilding"


def _status() -> Status:
    process = ProcessRecord("node-a", "storagenode", "us-east-1", "a", None, "127.0.0.1:1", "127.0.0.1:2")
    return Status("http://127.0.0.1:3", (process,), partitions(_catalog(), [_report(1, "leader", 3)]))


def test_json_has_exactly_the_promised_members(capsys: pytest.CaptureFixture[str]) -> None:
    show(_status(), as_json=True)
    shown = json.loads(capsys.readouterr().out)
    assert list(shown) == ["endpoint", "processes", "partitions", "auto_admins"]
    assert list(shown["processes"][0]) == ["name", "role", "region", "zone", "pid", "address", "metrics", "https"]
    assert list(shown["partitions"][0]) == ["table", "partition", "range", "epoch", "leader", "replicas", "state"]
    assert list(shown["partitions"][0]["replicas"][0]) == ["node", "zone", "role", "position", "applied"]


def test_the_table_for_people_names_everything(capsys: pytest.CaptureFixture[str]) -> None:
    show(_status(), as_json=False)
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("http://127.0.0.1:3", "node-a", "down", "orders", "node-c"))
