"""A member's copy of the log: what is durable when, what is trimmed, and what a write that fails leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from autoadmin.catalog import Catalog, Change, Counters, first_change, with_node
from autoadmin.records import MemberRecord, Stored, Write
from autoadmin.replicated_log import KEPT_ENTRIES, SAVE_ENTRIES, ReplicatedLog
from autoadmin.state import LmdbState, MemoryState
from cluster.executor import ThreadExecutor
from cluster.topology import NodePlace, Topology
from replication.changes import AddLearner, changed
from replication.effects import Covered, HardState
from replication.membership import Member, Membership
from replication.messages import MEMBERSHIP, NORMAL, Entry
from tests.unit.autoadmin_samples import CLUSTER

VOTERS = Membership((7,))
RECORD = MemberRecord(CLUSTER, 7, incarnation=1, group="g", membership=VOTERS.encode())


class FailingState(MemoryState):
    """Fails while told to."""

    def __init__(self) -> None:
        super().__init__()
        self.fails = False
        self.writes = 0

    def write(self, write: Write) -> None:
        if self.fails:
            raise OSError(28, "No space left on device")
        self.writes += 1
        super().write(write)


class Running:
    """A log that is being written, and what it told."""

    def __init__(self) -> None:
        self.state = FailingState()
        self.executor = ThreadExecutor("state")
        self.log = ReplicatedLog(self.state, self.executor)
        self.flushed: list[tuple[int, int]] = []
        self.failed: list[Exception] = []
        self.loaded = asyncio.Event()

    async def start(self) -> None:
        self.log.identify(RECORD)
        await self.log.write()
        self.task = asyncio.create_task(self.log.run(lambda *at: self.flushed.append(at), self._failed))

    async def _failed(self, error: Exception) -> None:
        self.failed.append(error)
        await self.log.load()
        self.loaded.set()

    async def stop(self) -> None:
        self.task.cancel()
        self.executor.close()


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    made = Running()
    await made.start()
    yield made
    await made.stop()


def entries(first: int, last: int, epoch: int = 1) -> list[Entry]:
    return [Entry(epoch, position, b"%d" % position, NORMAL) for position in range(first, last + 1)]


def history(count: int) -> list[Change]:
    """So many changes of a catalog, one after the other."""
    made = [first_change(CLUSTER)]
    catalog = Catalog(Topology(), Counters()).after(made[0])
    for number in range(1, count):
        change = with_node(catalog, NodePlace(number, f"node-{number}", "r", "a", f"127.0.0.1:{number}"))
        assert change is not None
        made.append(change)
        catalog = catalog.after(change)
    return made


async def test_what_waits_for_a_flush_hears_of_it_once_it_is_durable(running: Running) -> None:
    running.log.append(entries(1, 3))
    running.log.save(HardState(4, 7))
    heard: list[int] = []
    running.log.after_flush(lambda durable: heard.append(len(running.state.load().entries) if durable else -1))
    assert heard == []
    assert await running.log.flushed()
    assert heard == [3]
    assert running.flushed == [(3, 1)]
    stored = running.state.load().member
    assert stored is not None
    assert (stored.epoch, stored.vote) == (4, 7)


async def test_what_comes_during_a_flush_goes_with_the_next(running: Running) -> None:
    running.log.append(entries(1, 1))
    first = asyncio.ensure_future(running.log.flushed())
    while not running.log.writing:  # noqa: ASYNC110 (nothing tells of it)
        await asyncio.sleep(0)
    running.log.append(entries(2, 3))
    running.log.append(entries(3, 4, epoch=2))  # replaces one that is on its way
    assert await running.log.flushed()
    assert await first
    assert running.state.load().entries == (*entries(1, 2), *entries(3, 4, epoch=2))


async def test_a_write_that_fails_is_forgotten_whole(running: Running) -> None:
    running.log.append(entries(1, 2))
    assert await running.log.flushed()
    running.state.fails = True
    running.log.append(entries(2, 5, epoch=2))
    running.log.save(HardState(9, 7))
    assert not await running.log.flushed()
    await running.loaded.wait()
    assert len(running.failed) == 1
    running.state.fails = False
    assert running.log.entries == entries(1, 2)
    assert running.log.hard_state == HardState(0, 0)
    running.log.append(entries(3, 3, epoch=3))
    assert await running.log.flushed()
    assert running.state.load().entries == (*entries(1, 2), *entries(3, 3, epoch=3))


async def test_the_catalog_is_written_and_the_log_trimmed_now_and_then(running: Running) -> None:
    count = KEPT_ENTRIES + 3 * SAVE_ENTRIES
    made, catalog = history(count), Catalog(Topology(), Counters())
    for position, change in enumerate(made, start=1):
        running.log.append(entries(position, position))
        assert await running.log.flushed()
        running.log.applied(position, change)
        catalog = catalog.after(change)
    running.log.append(entries(count + 1, count + 1))
    assert await running.log.flushed()
    stored = running.state.load()
    assert stored.member is not None
    assert len(stored.entries) <= KEPT_ENTRIES + SAVE_ENTRIES + 1
    assert stored.member.base_position == stored.entries[0].position - 1 > 0
    assert _replayed(stored, made) == catalog.topology.full()
    assert running.log.summary().first_position == stored.entries[0].position


def _replayed(stored: Stored, made: list[Change]) -> object:
    """The catalog after the changes that the log holds beyond the one that was written."""
    assert stored.catalog is not None
    assert stored.member is not None
    catalog = stored.catalog
    for change in made[stored.member.applied :]:
        catalog = catalog.after(change)
    return catalog.topology.full()


async def test_trimming_keeps_who_votes(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autoadmin.replicated_log.KEPT_ENTRIES", 1)
    later = changed(VOTERS, AddLearner(Member(8, 8)))
    running.log.append([Entry(1, 1, later.encode(), MEMBERSHIP), *entries(2, SAVE_ENTRIES + 5)])
    assert await running.log.flushed()
    assert running.log.membership() == later
    running.log.applied(SAVE_ENTRIES + 5, None)
    running.log.append(entries(SAVE_ENTRIES + 6, SAVE_ENTRIES + 6))
    assert await running.log.flushed()
    stored = running.state.load()
    assert stored.member is not None
    assert stored.member.base_position == SAVE_ENTRIES + 4
    assert Membership.decode(stored.member.membership) == later
    assert running.log.membership() == later


async def test_a_snapshot_takes_the_place_of_log_and_catalog(running: Running) -> None:
    running.log.append(entries(1, 4))
    assert await running.log.flushed()
    whole = history(5)
    catalog = Catalog(Topology(), Counters())
    for change in whole:
        catalog = catalog.after(change)
    snapshot = Change(catalog.topology.full(), catalog.counters)
    running.log.cover(Covered(6, 90, restarts=True, membership=VOTERS), snapshot)
    running.log.append(entries(91, 92, epoch=6))
    assert await running.log.flushed()
    stored = running.state.load()
    assert stored.entries == tuple(entries(91, 92, epoch=6))
    assert stored.catalog is not None
    assert stored.catalog.topology.full() == catalog.topology.full()
    assert running.log.epoch_at(90) == 6
    assert running.log.read(90, 1) == ()
    assert running.log.read(91, 1) == (Entry(6, 91, b"91", NORMAL),)


async def test_it_goes_on_from_a_real_disk(tmp_path: Path) -> None:
    executor = ThreadExecutor("state")
    for life in range(1, 4):
        state = LmdbState(str(tmp_path))
        log = ReplicatedLog(state, executor)
        await log.load()
        assert log.last_position == life - 1
        log.identify(RECORD)
        log.append(entries(life, life, epoch=life))
        await log.write()
        state.close()
    executor.close()
