"""One flush at a time, and nothing said before it."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import TypeVar

from cluster.clock import SystemClock
from replication.effects import HardState
from replication.messages import Entry
from storagenode.flusher import FULL_PAUSE_SECONDS, Flusher
from storagenode.log.node_log import NodeLog
from tests.simulation.simulated_disk import SimulatedDisk
from tests.simulation.simulated_machine import SimulatedClock
from tests.simulation.virtual_loop import run_virtual

T = TypeVar("T")
SEGMENT = 1 << 20


class HeldExecutor:
    """Runs blocking work when the test lets it."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.let = asyncio.Semaphore(0)

    async def run(self, function: Callable[[], T]) -> T:
        self.started.set()
        await self.let.acquire()
        self.started.clear()
        return function()

    def close(self) -> None:
        """Nothing runs on."""


class AtOnce:
    """Runs blocking work where it is."""

    async def run(self, function: Callable[[], T]) -> T:
        return function()

    def close(self) -> None:
        """Nothing runs on."""


class Listener:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.flushed: list[tuple[int, int]] = []

    def log_flushed(self, position: int, epoch: int) -> None:
        self.flushed.append((position, epoch))


def opened_log() -> NodeLog:
    """An empty log that knows partition 1."""
    log, _ = NodeLog.open(SimulatedDisk(), "log", machine_crashed=False, segment_bytes=1 << 20)
    log.open_partition(1, 11)
    return log


async def settle() -> None:
    """Let everything run that can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_what_arrives_during_a_flush_is_the_next_one() -> None:
    log, executor, listener = opened_log(), HeldExecutor(), Listener()
    flusher = Flusher(log, executor, SystemClock())
    running = asyncio.ensure_future(flusher.run())
    log.append_entries(1, (Entry(1, 1, b"a"),))
    flusher.appended(listener, 1, 1)
    await executor.started.wait()
    for position in (2, 3):
        log.append_entries(1, (Entry(1, position, b"b"),))
        flusher.appended(listener, position, 1)
    executor.let.release()
    await settle()
    assert listener.flushed == [(1, 1)]
    executor.let.release()
    await settle()
    assert listener.flushed == [(1, 1), (3, 1)]
    assert flusher.flushes == 2
    assert log.last_position(1) == 3
    running.cancel()


async def test_callbacks_wait_for_everything_appended_before_them() -> None:
    log, executor = opened_log(), HeldExecutor()
    flusher = Flusher(log, executor, SystemClock())
    running = asyncio.ensure_future(flusher.run())
    said: list[str] = []
    log.append_hard_state(1, HardState(1, 11))
    flusher.after_flush(lambda: said.append("first"))
    await executor.started.wait()
    log.append_hard_state(1, HardState(2, 0))
    flusher.after_flush(lambda: said.append("second"))
    assert said == []
    executor.let.release()
    await settle()
    assert said == ["first"]
    executor.let.release()
    await settle()
    assert said == ["first", "second"]
    flusher.after_flush(lambda: said.append("at once"))
    assert said[-1] == "at once"
    running.cancel()


async def test_more_than_a_batch_holds_is_flushed_before_anything_is_said() -> None:
    log, executor, listener = opened_log(), HeldExecutor(), Listener()
    flusher = Flusher(log, executor, SystemClock())
    for position in range(1, 9):
        log.append_entries(1, (Entry(1, position, bytes(100_000)),))
    flusher.appended(listener, 8, 1)
    running = asyncio.ensure_future(flusher.run())
    executor.let.release()
    await settle()
    assert listener.flushed == []
    for _ in range(8):
        executor.let.release()
    await settle()
    assert listener.flushed == [(8, 1)]
    assert log.last_position(1) == 8
    running.cancel()


async def test_a_full_disk_is_waited_for_and_nothing_is_said_meanwhile() -> None:
    disk = SimulatedDisk()
    log, _ = NodeLog.open(disk, "log", machine_crashed=False, segment_bytes=1 << 20)
    log.open_partition(1, 11)
    room = asyncio.Event()
    tries = 0

    async def sleep(_: float) -> None:
        nonlocal tries
        tries += 1
        if tries == 3:
            room.set()
            disk.fault = None
        await asyncio.sleep(0)

    executor, listener = HeldExecutor(), Listener()
    executor.let = asyncio.Semaphore(100)
    flusher = Flusher(log, executor, SystemClock(), sleep)
    disk.fault = lambda operation, _path: OSError(errno.ENOSPC, "full") if operation == "write" else None
    log.append_entries(1, (Entry(1, 1, b"a"),))
    flusher.appended(listener, 1, 1)
    running = asyncio.ensure_future(flusher.run())
    while not room.is_set():
        assert listener.flushed == []
        await asyncio.sleep(0)
    assert flusher.short_of_space
    await settle()
    assert listener.flushed == [(1, 1)]
    assert not flusher.short_of_space
    running.cancel()


async def test_a_stop_lets_the_flush_under_way_end() -> None:
    log, executor, listener = opened_log(), HeldExecutor(), Listener()
    flusher = Flusher(log, executor, SystemClock())
    running = asyncio.ensure_future(flusher.run())
    log.append_entries(1, (Entry(1, 1, b"a"),))
    flusher.appended(listener, 1, 1)
    await executor.started.wait()
    stopping = asyncio.ensure_future(flusher.stop())
    await settle()
    assert not stopping.done()
    log.append_entries(1, (Entry(1, 2, b"b"),))
    executor.let.release()
    await stopping
    await running
    assert listener.flushed == [(1, 1)]
    assert log.last_position(1) == 1
    last = log.take()
    log.write(last)
    log.written(last)
    assert log.last_position(1) == 2


async def test_a_log_that_takes_new_segments_on_a_roomy_disk_never_refuses() -> None:
    log, executor, listener = opened_log(), HeldExecutor(), Listener()
    flusher = Flusher(log, executor, SystemClock())
    running = asyncio.ensure_future(flusher.run())
    first = log.current_segment
    position = 0
    while log.current_segment < first + 3:
        position += 1
        log.append_entries(1, (Entry(1, position, bytes(300_000)),))
        flusher.appended(listener, position, 1)
        while listener.flushed[-1:] != [(position, 1)] or log.low_on_space:
            await executor.started.wait()
            assert not flusher.short_of_space, "the reserve is being made anew"
            executor.let.release()
            await settle()
    running.cancel()


def test_the_reserve_is_made_whole_as_soon_as_there_is_room_though_nothing_is_written() -> None:
    """Growing writes are refused without it, and where all writes grow nothing else would lead to a flush."""

    async def story() -> None:
        disk = SimulatedDisk(capacity=SEGMENT * 3 // 2)
        log, _ = NodeLog.open(disk, "log", machine_crashed=False, segment_bytes=SEGMENT)
        flusher = Flusher(log, AtOnce(), SimulatedClock())
        running = asyncio.ensure_future(flusher.run())
        await asyncio.sleep(3 * FULL_PAUSE_SECONDS)
        assert flusher.short_of_space
        disk.capacity = None
        await asyncio.sleep(3 * FULL_PAUSE_SECONDS)
        assert not flusher.short_of_space
        assert flusher.flushes == 0
        running.cancel()

    run_virtual(story())
