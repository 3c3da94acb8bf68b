"""Global tables in trouble: links that are down, replicators that die, items that differ, clocks that are wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cluster.wire import regions_pb2
from dynamo.regions import replica_of
from storagenode.change_readers import region_reader
from storagenode.hosted import HostedReplica
from storagenode.index_commands import encode_read
from storagenode.regional_commands import encode_cut_off
from storagenode.storage import layout
from tests.integration.regions import Regions, until
from tests.integration.test_global_tables import get, global_table, replicas, scan

EAST, WEST = "us-east-1", "eu-west-1"


@pytest.fixture(scope="module")
def regions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Regions]:
    folder = tmp_path_factory.mktemp("regions")
    with Regions(folder, EAST, WEST, replicator={"tombstone_seconds": 1.0}) as regions:
        yield regions


@pytest.fixture(scope="module")
def east(regions: Regions) -> Any:
    return regions.client(EAST)


@pytest.fixture(scope="module")
def west(regions: Regions) -> Any:
    return regions.client(WEST)


def led(regions: Regions, region: str, name: str) -> list[HostedReplica]:
    """The leaders of a table's partitions."""
    services = regions.clusters[region]
    table = services.auto_admin.topology.table_named(name)
    assert table is not None
    hosted = [each for node in services.nodes for each in node.hosted_all() if each.table_id == table.id]
    return [each for each in hosted if each.serving]


def tombstones(regions: Regions, region: str, name: str) -> int:
    return sum(
        len(list(each.store.rows(layout.TOMBSTONE, layout.prefix_end(layout.TOMBSTONE))))
        for each in led(regions, region, name)
    )


def compare(regions: Regions, region: str, name: str) -> regions_pb2.Comparison:
    """What a comparison with the other region finds, asked for as the command line does."""
    replicator = regions.replicator(region)
    request = regions_pb2.CompareRequest(cluster_id=replicator.settings.cluster_id, table=name)
    reply = regions.run(replicator._compare_now(request))
    assert not reply.error
    return reply.comparisons[0]


def status(regions: Regions, region: str, name: str) -> regions_pb2.LinkStatus:
    """What `trizone regions status` tells of a table."""
    replicator = regions.replicator(region)
    request = regions_pb2.StatusRequest(cluster_id=replicator.settings.cluster_id)
    found = regions.run(replicator._status(request))
    return next(link for link in found.links if link.table == name)


def test_a_link_that_was_down_catches_up_from_where_it_was(east: Any, west: Any, regions: Regions) -> None:
    name = global_table(east, west)
    east.put_item(TableName=name, Item={"pk": {"S": "before"}})
    until("west has it", lambda: get(west, name, "before"))
    regions.stop_replicator(WEST)
    for n in range(40):
        east.put_item(TableName=name, Item={"pk": {"S": f"e{n}"}})
        west.put_item(TableName=name, Item={"pk": {"S": f"w{n}"}})
    east.delete_item(TableName=name, Key={"pk": {"S": "before"}})
    until("what waits is told", lambda: status(regions, EAST, name).pending >= 41)
    until("so is the reason", lambda: "cannot be reached" in status(regions, EAST, name).last_error)
    assert status(regions, EAST, name).lag_seconds > 0
    assert set(scan(west, name)) == {"before", *(f"w{n}" for n in range(40))}, "it serves on"
    regions.start_replicator(WEST)
    until("both hold the same", lambda: scan(east, name) == scan(west, name))
    assert len(scan(east, name)) == 80
    until("nothing waits any more", lambda: status(regions, EAST, name).pending == 0)
    assert status(regions, EAST, name).lag_seconds == 0


def test_of_two_replicators_one_carries_on_when_the_other_dies(east: Any, west: Any, regions: Regions) -> None:
    name = global_table(east, west)
    second = regions.start_replicator(EAST, name="second", listen="127.0.0.1:0")
    until("it has its links", lambda: any(link.table == name and link.partitions for link in second.table_links()))
    for n in range(30):
        east.put_item(TableName=name, Item={"pk": {"S": f"a{n}"}})
    until("west has them", lambda: len(scan(west, name)) == 30)
    regions.stop_replicator(EAST)
    for n in range(30):
        east.put_item(TableName=name, Item={"pk": {"S": f"b{n}"}})
    until("the other one carries on", lambda: len(scan(west, name)) == 60)
    regions.run(second.stop())
    regions.start_replicator(EAST)
    east.put_item(TableName=name, Item={"pk": {"S": "c"}})
    until("so does the first, started anew", lambda: get(west, name, "c"))


def test_a_leader_that_changes_loses_and_doubles_nothing(east: Any, west: Any, regions: Regions) -> None:
    name = global_table(east, west)
    for round_ in range(4):
        for n in range(20):
            east.put_item(TableName=name, Item={"pk": {"S": f"r{round_}-{n}"}})
        for region in (EAST, WEST):
            regions.run(hand_over(regions, region, name))
    until("both hold the same", lambda: scan(east, name) == scan(west, name))
    assert len(scan(west, name)) == 80


async def hand_over(regions: Regions, region: str, name: str) -> None:
    """Let other replicas lead."""
    for hosted in led(regions, region, name):
        hosted._host.hand_over(hosted)


def test_tombstones_go_when_every_region_has_the_delete(east: Any, west: Any, regions: Regions) -> None:
    name = global_table(east, west)
    for n in range(20):
        east.put_item(TableName=name, Item={"pk": {"S": f"k{n}"}})
    until("west has them", lambda: len(scan(west, name)) == 20)
    regions.stop_replicator(WEST)
    for n in range(20):
        east.delete_item(TableName=name, Key={"pk": {"S": f"k{n}"}})
    assert tombstones(regions, EAST, name) == 20, "west does not know yet"
    regions.start_replicator(WEST)
    until("west has the deletes", lambda: scan(west, name) == {})
    for region in (EAST, WEST):
        until("they are let go", lambda region=region: tombstones(regions, region, name) == 0)  # type: ignore[misc]
    assert scan(east, name) == {}


def test_a_comparison_finds_and_mends_what_differs(east: Any, west: Any, regions: Regions) -> None:
    name = global_table(east, west)
    for n in range(50):
        east.put_item(TableName=name, Item={"pk": {"S": f"k{n}"}})
    until("west has them", lambda: len(scan(west, name)) == 50)
    found = compare(regions, EAST, name)
    assert (found.items_here, found.items_there, found.differing) == (50, 50, 0)
    # Changes that are lost on the way: the link takes them for delivered.
    for number, (region, other, client) in enumerate(((EAST, WEST, east), (WEST, EAST, west))):
        regions.stop_replicator(other)
        client.put_item(TableName=name, Item={"pk": {"S": f"lost-{region}"}})
        client.delete_item(TableName=name, Key={"pk": {"S": f"k{number}"}})
        regions.run(skip(regions, region, name))
        regions.start_replicator(other)
    assert scan(east, name) != scan(west, name)
    found = compare(regions, EAST, name)
    assert found.differing > 0
    assert found.mended_here + found.mended_there == 4
    assert scan(east, name) == scan(west, name)
    assert {f"lost-{EAST}", f"lost-{WEST}"} <= set(scan(east, name))
    assert len(scan(east, name)) == 50
    assert compare(regions, WEST, name).differing == 0


async def skip(regions: Regions, region: str, name: str) -> None:
    """Make all that waits for the other region look as if it had been taken."""
    for hosted in led(regions, region, name):
        numbers = [key for key in hosted.partition.readers.positions if key.startswith(region_reader(0)[:-1])]
        hosted.propose(encode_read(dict.fromkeys(numbers, hosted.replica.last_position)))


def test_a_region_that_is_too_far_behind_is_cut_off(east: Any, west: Any, regions: Regions) -> None:
    name = global_table(east, west)
    east.put_item(TableName=name, Item={"pk": {"S": "a"}})
    until("west has it", lambda: get(west, name, "a"))
    table = regions.clusters[EAST].auto_admin.topology.table_named(name)
    assert table is not None
    entry = replica_of(table, WEST)
    assert entry is not None
    regions.run(propose(regions, EAST, name, encode_cut_off(entry.number)))
    until("it is no replica any more", lambda: replicas(east, name) == {} == replicas(west, name))
    east.put_item(TableName=name, Item={"pk": {"S": "b"}})
    west.put_item(TableName=name, Item={"pk": {"S": "c"}})
    assert set(scan(west, name)) == {"a", "c"}, "it keeps its table, as it is"
    west.delete_table(TableName=name)
    until("its table is gone", lambda: name not in west.list_tables()["TableNames"])
    east.update_table(TableName=name, ReplicaUpdates=[{"Create": {"RegionName": WEST}}])
    until("it is back", lambda: replicas(east, name) == {WEST: "ACTIVE"})
    until("it holds the same", lambda: set(scan(west, name)) == {"a", "b"})


async def propose(regions: Regions, region: str, name: str, payload: bytes) -> None:
    for hosted in led(regions, region, name):
        hosted.propose(payload)


class Ahead:
    """A clock that is ahead."""

    def __init__(self, clock: Any, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds

    def boottime(self) -> float:
        return float(self._clock.boottime())

    def wall(self) -> float:
        return float(self._clock.wall()) + self._seconds


def test_a_link_parks_while_changes_are_ahead_of_the_clock(east: Any, west: Any, regions: Regions) -> None:
    name = global_table(east, west)
    nodes = regions.clusters[EAST].nodes
    clocks = [node.clock for node in nodes]
    for node, clock in zip(nodes, clocks, strict=True):
        node.clock = Ahead(clock, 64.0)
    try:
        east.put_item(TableName=name, Item={"pk": {"S": "ahead"}})
        until("the link is parked", lambda: status(regions, EAST, name).parked)
        assert "ahead of the clock" in status(regions, EAST, name).last_error
        assert get(west, name, "ahead") is None
        until("its time has come", lambda: get(west, name, "ahead"))
        assert not status(regions, EAST, name).parked
        west.put_item(TableName=name, Item={"pk": {"S": "ahead"}, "later": {"BOOL": True}})
        until("what follows it wins", lambda: "later" in (get(east, name, "ahead") or {}))
    finally:
        for node, clock in zip(nodes, clocks, strict=True):
            node.clock = clock


def test_a_replica_that_is_removed_and_added_again_at_once_begins_anew(east: Any, west: Any, regions: Regions) -> None:
    name = global_table(east, west)
    west.put_item(TableName=name, Item={"pk": {"S": "a"}})
    until("east has it", lambda: get(east, name, "a"))
    regions.stop_replicator(WEST)
    west.put_item(TableName=name, Item={"pk": {"S": "of an earlier life"}})
    east.update_table(TableName=name, ReplicaUpdates=[{"Delete": {"RegionName": WEST}}])
    east.update_table(TableName=name, ReplicaUpdates=[{"Create": {"RegionName": WEST}}])
    east.delete_item(TableName=name, Key={"pk": {"S": "a"}})
    east.put_item(TableName=name, Item={"pk": {"S": "b"}})
    regions.start_replicator(WEST)
    until("it is back", lambda: replicas(east, name) == {WEST: "ACTIVE"})
    until("it holds the same", lambda: set(scan(west, name)) == {"b"} == set(scan(east, name)))
