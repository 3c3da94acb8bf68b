"""Up to which stamp tombstones may go, and when: over regions that only say how far they are."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from cluster.requests.call import Call
from cluster.topology import CatalogTable, CatalogUpdate, Partition, ReplicaPlace, Topology
from cluster.wire import regions_pb2, storage_pb2
from dynamo.keys import split_hashes
from dynamo.regions import made_global, readers_of, replica_of
from dynamo.table import Table
from replicator.horizon import Horizon
from replicator.peers import PeerError, Peers
from tests.unit.partition_samples import TABLE
from tests.unit.regional_samples import EAST, SOUTH, WEST, global_table
from tests.unit.router_fakes import ManualClock

DELAY = 300.0
TABLES = global_table(EAST, WEST, SOUTH)


class World:
    """EAST, with two partitions; the others tell what `there` says."""

    def __init__(self, table: Table = TABLES[EAST]) -> None:
        self.table, self.clock = table, ManualClock()
        self.here: dict[tuple[int, int], int] = {}
        """By partition and region's number: the stamp up to which that region has all."""
        self.there: dict[str, dict[str, int] | str] = {}
        self.tombstones = True
        self.equal = False
        self.dropped: list[tuple[int, bool]] = []
        places = [
            Partition(number, table.id, low, high, (ReplicaPlace(1, 1, "a"),))
            for number, (low, high) in enumerate(split_hashes(2), 1)
        ]
        update = CatalogUpdate("c", 1, 0, 1, tables=(CatalogTable(table, 1),), partitions=tuple(places))
        self.topology = Topology().with_update(update)
        self.horizon = Horizon(EAST, self, self, cast(Peers, _Way(self)), self.clock, DELAY, lambda _table: self.equal)

    def global_tables(self) -> list[Table]:
        return [self.table]

    async def call(self, call: Call) -> storage_pb2.Reply:
        partition = self.topology.partition_for(call.table.id, call.hash).id
        if isinstance(call.operation, storage_pb2.DropTombstones):
            if partition == 1:
                self.dropped.append((call.operation.stamp, call.operation.orphans))
            return storage_pb2.Reply(write=storage_pb2.WriteReply(dropped=1))
        assert isinstance(call.operation, storage_pb2.ReadRegion)
        settled = self.here.get((partition, call.operation.number), 0)
        return storage_pb2.Reply(region=storage_pb2.RegionReply(settled=settled, tombstones=self.tombstones))

    async def rounds(self, seconds: float) -> None:
        """A round now, and one after so many seconds."""
        await self.horizon.round()
        self.clock.now += seconds
        await self.horizon.round()

    def all_have(self, stamp: int) -> None:
        """Every region has everything of every other one up to a stamp."""
        for replica in readers_of(self.table):
            for partition in (1, 2):
                self.here[partition, replica.number] = stamp
            self.there[replica.region] = {other: stamp for other in (EAST, WEST, SOUTH) if other != replica.region}


class _Way:
    """The way to the other regions."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def call(self, region: str, method: str, request: Any, _kind: object) -> regions_pb2.HorizonReply:
        assert method == "Horizon"
        theirs = replica_of(self._world.table, region)
        assert theirs is not None
        assert request.table.since == theirs.since
        told = self._world.there.get(region)
        if told is None:
            raise PeerError(f"Region {region} cannot be reached")
        if isinstance(told, str):
            return regions_pb2.HorizonReply(error=told)
        settled = [regions_pb2.Settled(region=other, stamp=stamp) for other, stamp in told.items()]
        return regions_pb2.HorizonReply(settled=settled)


@pytest.fixture
def world() -> World:
    made = World()
    made.all_have(1_000)
    return made


async def test_tombstones_go_up_to_what_all_had_a_while_ago(world: World) -> None:
    await world.rounds(DELAY)
    assert world.dropped == [(1_000, False)]


async def test_they_stay_for_a_while(world: World) -> None:
    await world.rounds(DELAY - 1)
    assert world.dropped == []


async def test_the_slowest_of_all_ways_counts(world: World) -> None:
    theirs = world.there[SOUTH]
    assert isinstance(theirs, dict)
    theirs[WEST] = 400
    await world.rounds(DELAY)
    assert world.dropped == [(400, False)]


async def test_so_does_the_slowest_partition(world: World) -> None:
    world.here[2, readers_of(TABLES[EAST])[0].number] = 300
    await world.rounds(DELAY)
    assert world.dropped == [(300, False)]


@pytest.mark.parametrize("answer", [None, "Region sa-east-1 has no global table shop yet", {}])
async def test_a_region_that_does_not_tell_holds_all_back(world: World, answer: Any) -> None:
    if answer is None:
        del world.there[SOUTH]
    else:
        world.there[SOUTH] = answer
    await world.rounds(DELAY)
    assert world.dropped == []


async def test_without_tombstones_nobody_is_asked(world: World) -> None:
    world.tombstones = False
    world.there.clear()
    await world.rounds(DELAY)
    assert world.dropped == []


async def test_those_of_regions_that_left_go_once_all_others_are_equal(world: World) -> None:
    world.equal = True
    await world.rounds(DELAY)
    assert world.dropped == [(1_000, True)]


async def test_a_region_that_is_alone_needs_none() -> None:
    alone = World(msgspec.structs.replace(made_global(TABLE, EAST, 1), id=7, status="ACTIVE"))
    await alone.rounds(DELAY)
    ((stamp, orphans),) = alone.dropped
    assert stamp > 0
    assert orphans


async def test_what_is_told_is_the_least_of_all_partitions(world: World) -> None:
    numbers = {replica.region: replica.number for replica in readers_of(TABLES[EAST])}
    world.here[1, numbers[WEST]] = 7
    own, theirs = replica_of(TABLES[EAST], EAST), replica_of(TABLES[EAST], WEST)
    assert own is not None
    assert theirs is not None
    name = regions_pb2.TableName(region=WEST, to_region=EAST, table="shop", since=own.since, life=theirs.since)
    reply = await world.horizon.tell(regions_pb2.HorizonRequest(table=name))
    assert {each.region: each.stamp for each in reply.settled} == {WEST: 7, SOUTH: 1_000}
    name.life = 99
    assert "no replica" in (await world.horizon.tell(regions_pb2.HorizonRequest(table=name))).error
