"""A leader's side of regions: who waits, who reads, what is noted when, and who is cut off."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from cluster.clock import Clock
from cluster.wire import common_pb2, storage_pb2
from dynamo.codec import make_stamp
from dynamo.regions import made_global, replica_of
from storagenode.change_readers import region_fill, region_reader
from storagenode.hosted import HostedReplica
from storagenode.regions import HOLD_SECONDS, NOTE_SECONDS, WAIT_MS_MAX, Regions
from storagenode.requests import Responder
from tests.unit.partition_samples import NOW_MS, Leader, item, key
from tests.unit.regional_samples import EAST, WEST, append, global_table, row, take, tombstones
from tests.unit.router_fakes import ManualClock

TABLE = global_table(EAST, WEST)[EAST]
ENTRY = replica_of(TABLE, WEST)
assert ENTRY is not None
NUMBER = ENTRY.number
READER = region_reader(NUMBER)
RETENTION = 1_000.0
Answer = storage_pb2.Reply | common_pb2.Refusal


class Answers:
    """What one request was answered."""

    def __init__(self) -> None:
        self.given: list[Any] = []
        self.received_at = 0.0

    def __getattr__(self, _kind: str) -> Any:
        return self.given.append


class Hosted:
    """A replica, as far as regions ask for it."""

    def __init__(self, **members: Any) -> None:
        self.__dict__.update(members)


class World:
    """A node that leads one partition."""

    def __init__(self, leader: Leader | None = None) -> None:
        self.leader = leader or Leader(table=TABLE)
        self.manual = ManualClock()
        self.clock: Clock = self.manual
        self.slept: list[tuple[float, asyncio.Event]] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.replica = SimpleNamespace(epoch=1, may_read=lambda _now: True)
        self.hosted: Any = Hosted(
            partition=self.leader.partition,
            store=self.leader.store,
            replica=self.replica,
            serving=True,
            partition_id=1,
            propose=lambda payload: append(self.leader, payload),
            not_serving=lambda: common_pb2.Refusal(reason=common_pb2.Refusal.NOT_LEADER),
        )
        self.regions = Regions(self, RETENTION)

    def hosted_all(self) -> Iterator[HostedReplica]:
        yield self.hosted

    def start_work(self, work: Coroutine[Any, Any, None]) -> object:
        task = asyncio.create_task(work)
        self.tasks.append(task)
        return task

    async def breathe(self) -> None:
        """Others run."""

    async def sleep(self, seconds: float) -> None:
        awake = asyncio.Event()
        self.slept.append((seconds, awake))
        await awake.wait()

    async def wake_all(self) -> None:
        """All time passes that somebody waits for."""
        await asyncio.sleep(0)
        for _, awake in self.slept:
            awake.set()
        await asyncio.gather(*self.tasks)

    def read(self, after: int = 0, confirmed: int = 0, wait_ms: int = 100, reader: int = 1) -> Answers:
        answers = Answers()
        read = storage_pb2.ReadChanges(number=NUMBER, after=after, confirmed=confirmed, wait_ms=wait_ms, reader=reader)
        request = storage_pb2.Request(schema_version=self.leader.partition.schema.schema_version, read_changes=read)  # type: ignore[union-attr]
        self.regions.handle(self.hosted, request, cast(Responder, answers))
        return answers

    def write(self, pk: str = "a") -> None:
        self.leader.put(item(pk, 1))
        self.leader.apply()
        self.regions.wake(self.hosted)

    def pass_time(self, seconds: float) -> None:
        self.manual.now += seconds

    @property
    def cursor(self) -> int:
        return self.leader.partition.readers.positions[READER]


@pytest.fixture
def world() -> World:
    return World()


async def test_what_is_there_is_told_at_once(world: World) -> None:
    world.write()
    (changes,) = world.read().given
    assert [each.key for each in changes.rows] == [key("a", 1)]
    assert changes.next == world.leader.position
    assert changes.filled


async def test_who_finds_nothing_waits_for_the_next_change(world: World) -> None:
    answers = world.read(wait_ms=10 * WAIT_MS_MAX)
    await asyncio.sleep(0)
    assert answers.given == []
    assert [seconds for seconds, _ in world.slept] == [WAIT_MS_MAX / 1000]
    world.write()
    (changes,) = answers.given
    assert [each.key for each in changes.rows] == [key("a", 1)]
    await world.wake_all()
    assert len(answers.given) == 1


async def test_who_waited_for_a_change_was_not_slow(world: World) -> None:
    answers = world.read()
    world.pass_time(WAIT_MS_MAX / 1000)
    await world.wake_all()
    assert len(answers.given) == 1
    assert answers.received_at == world.manual.now


async def test_what_came_from_elsewhere_wakes_nobody(world: World) -> None:
    answers = world.read()
    take(world.leader, [row(key("w", 1), b"{}", make_stamp(NOW_MS, 1), WEST, 1)], 1)
    world.regions.wake(world.hosted)
    assert answers.given == []
    await world.wake_all()
    (changes,) = answers.given
    assert (list(changes.rows), changes.next) == ([], world.leader.position)


async def test_of_two_that_read_one_is_told_to_stand_by_until_the_other_falls_silent(world: World) -> None:
    world.write()
    assert not world.read(reader=1).given[0].busy
    assert world.read(reader=2).given[0].busy
    world.pass_time(HOLD_SECONDS / 2)
    assert not world.read(reader=1).given[0].busy
    world.pass_time(HOLD_SECONDS / 2 + 0.1)
    assert world.read(reader=2).given[0].busy
    world.pass_time(HOLD_SECONDS)
    assert not world.read(reader=2).given[0].busy
    assert world.read(reader=1).given[0].busy


async def test_who_stands_by_is_told_when_the_region_is_filled() -> None:
    leader = Leader(table=msgspec.structs.replace(made_global(TABLE_ALONE, EAST, 1), id=7))
    leader.put(item("a", 1))
    leader.apply()
    append(leader, leader.partition.propose_schema(msgspec.structs.replace(TABLE, schema_version=2)))
    world = World(leader)
    assert not world.read(reader=1, wait_ms=0).given[0].filled
    (changes,) = world.read(reader=1, wait_ms=0).given
    assert not world.read(reader=2).given[0].filled, "nobody says yet that the region has it"
    world.read(reader=1, after=changes.next, confirmed=changes.next, wait_ms=0)
    (told,) = world.read(reader=2).given
    assert told.busy
    assert told.filled


async def test_progress_is_noted_now_and_then_and_only_where_rows_go(world: World) -> None:
    begin = world.cursor
    world.pass_time(NOTE_SECONDS)
    world.read(confirmed=world.leader.position, wait_ms=0)
    assert world.cursor == begin, "there is nothing to let go"
    world.write("a")
    first = world.leader.position
    world.read(after=first, confirmed=first, wait_ms=0)
    assert world.cursor == first
    world.write("b")
    second = world.leader.position
    world.read(after=second, confirmed=second, wait_ms=0)
    assert world.cursor == first, "not so soon again"
    world.pass_time(NOTE_SECONDS)
    world.read(after=second, confirmed=second, wait_ms=0)
    assert world.cursor == second
    world.pass_time(NOTE_SECONDS)
    world.read(confirmed=second + 100, wait_ms=0)
    assert world.cursor == second, "nobody confirms what is not there"


async def test_a_region_that_has_read_everything_is_filled_on() -> None:
    leader = Leader(table=msgspec.structs.replace(made_global(TABLE_ALONE, EAST, 1), id=7))
    for n in range(300):
        leader.put(item("a", n))
    leader.apply()
    append(leader, leader.partition.propose_schema(msgspec.structs.replace(TABLE, schema_version=2)))
    world = World(leader)
    after, found = 0, []
    for _ in range(10):
        answers = world.read(after=after, confirmed=after)
        world.regions.wake(world.hosted)
        if not answers.given:
            await world.wake_all()
        (changes,) = answers.given
        found += [each.key for each in changes.rows]
        after = changes.next
        if changes.filled:
            break
    assert set(found) == {key("a", n) for n in range(300)}
    assert leader.partition.readers.fills[region_fill(NUMBER)].done


TABLE_ALONE = msgspec.structs.replace(TABLE, region="", origins=(), replicas=())


async def test_whoever_loses_the_lead_sends_those_who_wait_elsewhere(world: World) -> None:
    answers = world.read()
    world.hosted.serving = False
    world.regions.wake(world.hosted)
    assert [each.reason for each in answers.given] == [common_pb2.Refusal.NOT_LEADER]
    assert [each.reason for each in world.read().given] == [common_pb2.Refusal.NOT_LEADER]
    await world.wake_all()


async def test_a_region_that_takes_nothing_for_too_long_is_cut_off(world: World) -> None:
    world.write()
    hosted = world.hosted
    behind = NOW_MS / 1000 - world.clock.wall()
    world.manual.now += behind + RETENTION - 1
    world.regions.cut_off(hosted)
    assert world.cursor
    world.pass_time(2)
    world.regions.cut_off(hosted)
    assert READER not in world.leader.partition.readers.positions
    assert world.read().given[0].cut_off


async def test_what_was_taken_late_from_elsewhere_cuts_nobody_off(world: World) -> None:
    """The link from there was down for long: its changes are old, and have been here for a moment."""
    old = make_stamp(NOW_MS - int(2 * RETENTION * 1000), 0)
    take(world.leader, [row(key("w", 1), b"{}", old, WEST, 1)], 1)
    world.manual.now += NOW_MS / 1000 - world.clock.wall()
    world.regions.cut_off(world.hosted)
    assert world.cursor


def ask(world: World, **operation: Any) -> Any:
    answers = Answers()
    request = storage_pb2.Request(schema_version=1, **operation)
    world.regions.handle(world.hosted, request, cast(Responder, answers))
    (answer,) = answers.given
    return answer


async def test_an_idle_partition_moves_its_clock_when_asked(world: World) -> None:
    world.manual.now += NOW_MS / 1000 + 50 - world.clock.wall()
    settle_ms = NOW_MS + 40_000
    ask(world, read_region=storage_pb2.ReadRegion(number=NUMBER, settle_ms=settle_ms))
    state = ask(world, read_region=storage_pb2.ReadRegion(number=NUMBER, settle_ms=settle_ms))
    assert state.settled >= make_stamp(settle_ms, 0)
    ask(world, read_region=storage_pb2.ReadRegion(number=NUMBER, settle_ms=NOW_MS + 10**9))
    assert world.leader.partition.applied.stamp <= make_stamp(NOW_MS + 50_000, 0), "never beyond its own"


async def test_tombstones_go_up_to_a_stamp(world: World) -> None:
    world.write("a")
    world.leader.delete("a", 1)
    world.leader.apply()
    drop = storage_pb2.DropTombstones(stamp=make_stamp(NOW_MS - 1, 0))
    assert ask(world, drop_tombstones=drop).dropped == 0
    drop.stamp = make_stamp(NOW_MS + 1, 0)
    assert ask(world, drop_tombstones=drop).dropped == 1
    assert tombstones(world.leader) == {}
