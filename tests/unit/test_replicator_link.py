"""One partition's way to one region: what is read, sent again, confirmed, and what is told of it."""

from __future__ import annotations

from typing import Any, cast

from cluster.clock import Clock
from cluster.requests.call import Call, StalePlanError
from cluster.topology import CatalogTable, CatalogUpdate, Partition, ReplicaPlace, Topology
from cluster.wire import regions_pb2, storage_pb2
from dynamo.errors import ApiError, unavailable
from dynamo.keys import split_hashes
from dynamo.regions import readers_of, replica_of
from replicator.link import AHEAD, PARKED_SECONDS, STANDBY_SECONDS, Link, LinkKey, wanted_links
from replicator.peers import PeerError, Peers
from tests.unit.regional_samples import EAST, WEST, global_table
from tests.unit.router_fakes import ManualClock

TABLE = global_table(EAST, WEST)[EAST]
(REPLICA,) = readers_of(TABLE)
((LOW, HIGH),) = split_hashes(1)
TOPOLOGY = Topology().with_update(
    CatalogUpdate(
        "c",
        1,
        0,
        1,
        tables=(CatalogTable(TABLE, 1),),
        partitions=(Partition(11, TABLE.id, LOW, HIGH, (ReplicaPlace(1, 1, "a"),)),),
    )
)
Told = storage_pb2.ChangesReply


def rows(*positions: int) -> list[storage_pb2.RegionalRow]:
    return [storage_pb2.RegionalRow(key=b"k%d" % position, position=position) for position in positions]


class Ended(Exception):  # noqa: N818
    """There is nothing more to read."""


class World:
    """A leader that gives `changes` one after the other, and a region that answers `answers`."""

    clock: Clock = ManualClock()
    region = EAST
    reader = 5
    topology = TOPOLOGY

    def __init__(self, changes: list[Told | ApiError], answers: list[regions_pb2.ApplyReply | PeerError]) -> None:
        self.changes, self.answers = changes, answers
        self.reads: list[storage_pb2.ReadChanges] = []
        self.sent: list[regions_pb2.ApplyRequest] = []
        self.slept: list[float] = []
        self.peers = cast(Peers, _Way(self))
        key = LinkKey(TABLE.id, 11, WEST, REPLICA.number, REPLICA.since)
        self.link = Link(key, self, self.sleep)

    @property
    def requests(self) -> World:
        return self

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    async def call(self, call: Call) -> storage_pb2.Reply:
        if isinstance(call.operation, storage_pb2.ReadRegion):
            return storage_pb2.Reply(region=storage_pb2.RegionReply(waiting=9, waiting_since_ms=8))
        assert isinstance(call.operation, storage_pb2.ReadChanges)
        self.reads.append(call.operation)
        if not self.changes:
            raise Ended
        found = self.changes.pop(0)
        if isinstance(found, ApiError):
            raise found
        return storage_pb2.Reply(changes=found)

    async def run(self) -> None:
        try:
            await self.link.run()
        except Ended:
            return


class _Way:
    def __init__(self, world: World) -> None:
        self._world = world

    async def call(self, region: str, method: str, request: Any, _kind: object) -> regions_pb2.ApplyReply:
        assert (region, method) == (WEST, "Apply")
        copy = regions_pb2.ApplyRequest()
        copy.CopyFrom(request)
        self._world.sent.append(copy)
        answer = self._world.answers.pop(0)
        if isinstance(answer, PeerError):
            raise answer
        return answer


def taken(position: int, **members: Any) -> regions_pb2.ApplyReply:
    return regions_pb2.ApplyReply(taken=position, **members)


def confirmed(world: World) -> list[int]:
    return [read.confirmed for read in world.reads]


async def test_what_was_taken_is_confirmed_with_the_next_read() -> None:
    world = World([Told(rows=rows(3, 4), next=4), Told(next=9)], [taken(4, won=1, lost=1)])
    await world.run()
    (request,) = world.sent
    assert (request.source, request.position, len(request.rows)) == (11, 4, 2)
    own = replica_of(TABLE, EAST)
    assert own is not None
    assert (request.table.since, request.table.life) == (REPLICA.since, own.since)
    assert confirmed(world) == [0, 4, 9]
    assert [read.after for read in world.reads] == [0, 4, 9]
    state = world.link.state
    assert (state.sent, state.won, state.conflicts, state.waiting) == (2, 1, 1, 9)


async def test_what_could_not_be_brought_there_is_read_and_sent_again() -> None:
    batch = Told(rows=rows(3), next=3)
    down = PeerError("Region us-west-2 cannot be reached: down")
    world = World([batch, batch, batch], [down, down, taken(3)])
    await world.run()
    assert [list(request.rows) for request in world.sent] == [rows(3)] * 3
    assert confirmed(world) == [0, 0, 0, 3], "never before it is there"
    assert world.link.state.last_error == str(down)
    pauses = [seconds for seconds in world.slept if seconds]
    assert pauses == sorted(pauses)
    assert len(pauses) == 2


async def test_what_waits_for_a_transaction_goes_again_alone() -> None:
    world = World([Told(rows=rows(3, 4, 5), next=7)], [taken(3), taken(3), taken(5)])
    await world.run()
    assert [[row.position for row in request.rows] for request in world.sent] == [[3, 4, 5], [4, 5], [4, 5]]
    assert confirmed(world) == [0, 7]
    assert world.link.state.sent == 3


async def test_a_link_parks_and_goes_on() -> None:
    ahead = regions_pb2.ApplyReply(error_type=AHEAD, error="A change is 70 s ahead of the clock here")
    world = World([Told(rows=rows(3), next=3)], [ahead, ahead, taken(3)])
    parked: list[bool] = []
    sleep = world.sleep

    async def watch(seconds: float) -> None:
        parked.append(world.link.state.parked)
        await sleep(seconds)

    world.link._sleep = watch
    await world.run()
    assert parked[:2] == [True, True]
    assert not world.link.state.parked
    assert world.slept[:2] == [PARKED_SECONDS] * 2
    assert world.link.state.last_error == ahead.error
    assert confirmed(world) == [0, 3]


async def test_other_refusals_are_told_and_tried_again() -> None:
    batch = Told(rows=rows(3), next=3)
    world = World([batch, batch], [regions_pb2.ApplyReply(error_type="Passing", error="not yet"), taken(3)])
    await world.run()
    assert world.link.state.last_error == "not yet"
    assert confirmed(world) == [0, 0, 3]


async def test_who_stands_by_and_who_is_cut_off_asks_seldom() -> None:
    world = World([Told(busy=True), Told(cut_off=True)], [])
    await world.run()
    assert world.slept == [STANDBY_SECONDS] * 2
    assert world.link.state.cut_off


async def test_a_changed_table_is_no_error_and_an_absent_leader_is() -> None:
    world = World([StalePlanError()], [])
    await world.run()
    assert world.link.state.last_error == ""
    world = World([unavailable("No leader answered")], [])
    await world.run()
    assert "No leader answered" in world.link.state.last_error


async def test_a_region_is_filled_for_good() -> None:
    world = World([Told(next=1), Told(next=2, filled=True), Told(next=3)], [])
    await world.run()
    assert world.link.state.filled


def test_links_are_wanted_for_every_partition_and_region_that_is_there() -> None:
    key = LinkKey(TABLE.id, 11, WEST, REPLICA.number, REPLICA.since)
    assert wanted_links([TABLE], TOPOLOGY, readers_of) == {key}
    assert wanted_links([TABLE], TOPOLOGY, lambda _table: ()) == set()
