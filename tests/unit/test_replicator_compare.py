"""How ranges of hashes are cut, compared and mended, over regions that are dicts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any, cast

import pytest
from google.protobuf.message import Message

from cluster.requests.call import Call
from cluster.topology import CatalogTable, CatalogUpdate, Partition, ReplicaPlace, Topology
from cluster.wire import regions_pb2, storage_pb2
from dynamo import codec
from dynamo.errors import ApiError
from dynamo.keys import HASH_SIZE, split_hashes
from replicator.apply import Applier
from replicator.compare import CUT, FIRST_RANGES, SMALL_ITEMS, WHOLE, Comparer, HashRange
from replicator.peers import Peers
from storagenode import regional_reads as reads
from storagenode.decisions import Answer, Propose
from tests.unit.partition_samples import NOW_MS, Leader, item, key
from tests.unit.regional_samples import EAST, WEST, global_table

TABLES = global_table(EAST, WEST)


def test_ranges_are_cut_without_gaps() -> None:
    random = Random(1)
    for _ in range(50):
        low = random.randrange(1 << 128)
        range_ = HashRange(low, random.randrange(low, 1 << 128))
        parts = range_.cut(random.randrange(1, 20))
        assert parts[0].low == range_.low
        assert parts[-1].high == range_.high
        assert all(one.high + 1 == other.low for one, other in pairwise(parts))
    assert HashRange(5, 5).cut(16) == [HashRange(5, 5)]
    assert len(WHOLE.cut(FIRST_RANGES)) == FIRST_RANGES


class Region:
    """A region of several partitions in memory, that answers what its leaders would."""

    def __init__(self, name: str, partitions: int) -> None:
        self.name, self.table = name, TABLES[name]
        self.leaders = {number: Leader(table=self.table) for number in range(1, partitions + 1)}
        places = [
            Partition(number, self.table.id, low, high, (ReplicaPlace(1, 1, "a"),))
            for number, (low, high) in enumerate(split_hashes(partitions), 1)
        ]
        update = CatalogUpdate("c", 1, 0, 1, tables=(CatalogTable(self.table, 1),), partitions=tuple(places))
        self.topology = Topology().with_update(update)

    async def refresh(self) -> None:
        """There is nothing newer."""

    def leader(self, row_key: bytes) -> Leader:
        return self.leaders[self.topology.partition_for(self.table.id, row_key[:HASH_SIZE]).id]

    def put(self, pk: str, n: int = 0) -> None:
        leader = self.leader(key(pk, 1))
        leader.put(item(pk, 1, n={"N": str(n)}))
        leader.apply()

    def delete(self, pk: str) -> None:
        leader = self.leader(key(pk, 1))
        leader.delete(pk, 1)
        leader.apply()

    def rows(self) -> dict[bytes, bytes]:
        """Items by key, without what differs by region."""
        return {
            row_key: codec.body_of(stored)
            for leader in self.leaders.values()
            for row_key, stored in leader.store.scan(b"", b"")
        }

    async def call(self, call: Call) -> storage_pb2.Reply:
        leader = self.leader(call.hash)
        match call.operation:
            case storage_pb2.Digest() as digest:
                return storage_pb2.Reply(digest=reads.digest_of(leader.store, self.table, digest))
            case storage_pb2.ReadRange() as read:
                return storage_pb2.Reply(range=reads.range_of(leader.store, self.table, read, NOW_MS))
            case storage_pb2.RegionalWrite() as write:
                decision = leader.decide(storage_pb2.Request(regional_write=write))
                leader.apply()
                assert isinstance(decision, Propose | Answer)
                return storage_pb2.Reply(write=cast(storage_pb2.WriteReply, decision.reply))
        raise AssertionError(f"nobody asks for {call.operation}")

    async def call_all(self, calls: Sequence[Call]) -> list[storage_pb2.Reply | ApiError]:
        return [await self.call(call) for call in calls]


class OneOther:
    """The way from one region to another."""

    def __init__(self, to: Region) -> None:
        self.comparer = Comparer(to.name, lambda: to.topology, to, cast(Peers, None), nothing)
        self.applier = Applier(to.name, to, to)
        self.digests = 0

    async def call(self, _region: str, method: str, request: Any, _kind: type[Message]) -> Message:
        match method:
            case "Digest":
                self.digests += len(request.ranges)
                return await self.comparer.tell_digest(request)
            case "Rows":
                return await self.comparer.tell_rows(request)
            case _:
                return await self.applier.mend(request)


async def nothing(_seconds: float) -> None:
    """Time passes."""


async def compare(here: Region, there: Region) -> tuple[regions_pb2.Comparison, int]:
    """One comparison, and how many ranges were asked about."""
    way = OneOther(there)
    comparer = Comparer(here.name, lambda: here.topology, here, cast(Peers, way), nothing)
    result = await comparer.compare(here.table, there.name)
    assert not result.error
    return result, way.digests


@pytest.mark.parametrize("partitions", [(1, 1), (3, 3), (2, 5)])
async def test_regions_that_hold_the_same_are_equal_however_they_are_cut(partitions: tuple[int, int]) -> None:
    east, west = Region(EAST, partitions[0]), Region(WEST, partitions[1])
    for n in range(60):
        east.put(f"k{n}", n)
    result, _ = await compare(east, west)
    assert result.mended_there == 60
    assert east.rows() == west.rows()
    for here, there in ((east, west), (west, east)):
        result, asked = await compare(here, there)
        assert (result.items_here, result.items_there, result.differing) == (60, 60, 0)
        assert asked == FIRST_RANGES


@pytest.mark.parametrize("partitions", [(1, 1), (2, 5)])
async def test_what_differs_is_found_and_mended_both_ways(partitions: tuple[int, int]) -> None:
    east, west = Region(EAST, partitions[0]), Region(WEST, partitions[1])
    for n in range(CUT * SMALL_ITEMS // 8):
        east.put(f"k{n}", n)
    await compare(east, west)
    east.put("only-east")
    west.put("only-west")
    west.delete("k3")
    east.put("k4", 44)
    west.put("k5", 55)
    result, _ = await compare(west, east)
    assert (result.mended_here, result.mended_there) == (2, 3)
    assert east.rows() == west.rows()
    assert key("k3", 1) not in east.rows()
    assert {key("only-east", 1), key("only-west", 1)} <= set(east.rows())
    assert b'"44"' in west.rows()[key("k4", 1)]
    assert b'"55"' in east.rows()[key("k5", 1)]
    assert (await compare(east, west))[0].differing == 0


async def test_a_region_that_is_no_replica_is_not_compared() -> None:
    east = Region(EAST, 1)
    comparer = Comparer(EAST, lambda: east.topology, east, cast(Peers, None), nothing)
    result = await comparer.compare(east.table, "mars-1")
    assert result.error == "Region mars-1 has no replica of the table"
