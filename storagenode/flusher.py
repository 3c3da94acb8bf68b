"""One flush at a time: what is appended to the node's log while one is under way makes up the next.

The flush is where durability comes from, so this is the only place that knows its order: records are written and
synced,
then each partition learns how far its own log is durable, then the messages that waited for it leave.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Protocol

from cluster.clock import Clock
from cluster.executor import Executor
from cluster.histogram import Histogram
from storagenode.log.batch import Batch
from storagenode.log.errors import LogFull
from storagenode.log.node_log import NodeLog

FULL_PAUSE_SECONDS = 0.5
"""Between two tries of a flush that found the disk full, or to make the log's reserve whole."""

_log = logging.getLogger(__name__)


class FlushListener(Protocol):
    """Whoever appended entries and wants to know when they are durable."""

    def log_flushed(self, position: int, epoch: int) -> None:
        """The partition's log is durable up to `position`, whose entry is of `epoch`."""
        ...


class Flusher:
    """Writes the node's log from one place. A failure ends `run` with the log's exception, which stops the node."""

    def __init__(
        self, log: NodeLog, executor: Executor, clock: Clock, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._log = log
        self._executor = executor
        self._clock = clock
        self._sleep = sleep
        self._full = False
        self._reserve_tried_at = 0.0
        self._reserve_short = log.low_on_space
        self._wanted = asyncio.Event()
        self._stopping = False
        self._stopped = asyncio.Event()
        self._positions: dict[FlushListener, tuple[int, int]] = {}
        self._callbacks: list[Callable[[], None]] = []
        self._started_at: float | None = None
        self._trim_before = 0
        self._floor: Callable[[], int] | None = None
        self._trimmed: Callable[[dict[int, int]], None] = _nobody
        self.flushes = 0
        self.flushed_bytes = 0
        self.seconds = Histogram()

    def appended(self, listener: FlushListener, position: int, epoch: int) -> None:
        """`listener` has appended entries up to `position`; it is told when they are durable."""
        self._positions[listener] = (position, epoch)
        self._wanted.set()

    def after_flush(self, callback: Callable[[], None]) -> None:
        """Call back once everything appended so far is durable: at once when nothing waits."""
        if self._started_at is None and not self._log.pending() and not self._positions:
            callback()
            return
        self._callbacks.append(callback)
        self._wanted.set()

    def trim_before(self, segment: int, floor: Callable[[], int], trimmed: Callable[[dict[int, int]], None]) -> None:
        """Trim the log's segments older than this one, between two flushes; `trimmed` hears what the log then begins
        with (`NodeLog.forget_before`). `floor` is asked again then: a flush may take long, and a replica whose state is
        made anew meanwhile needs more of its log."""
        if segment > max(self._trim_before, self._log.oldest_segment):
            self._trim_before, self._floor, self._trimmed = segment, floor, trimmed
            self._wanted.set()

    def hanging_for(self) -> float:
        """Seconds that the flush under way has taken; 0 when there is none."""
        return 0.0 if self._started_at is None else self._clock.boottime() - self._started_at

    @property
    def short_of_space(self) -> bool:
        """Whether the disk is full, or has no room for the log's reserve: growing writes are to be refused."""
        return self._full or (self._reserve_short and self._log.low_on_space)

    async def run(self) -> None:
        """Flush until cancelled or stopped. Raises LogBroken when a flush fails for good."""
        while not self._stopping:
            await self._something_to_do()
            self._wanted.clear()
            await self._flush()
            await self._trim()
        self._stopped.set()

    async def _something_to_do(self) -> None:
        """While the reserve is not whole that is to try again, whether anything is written or not: growing writes are
        refused until then, so that nobody else would bring it about."""
        if not self._reserve_short:
            await self._wanted.wait()
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(FULL_PAUSE_SECONDS):
                await self._wanted.wait()

    async def stop(self) -> None:
        """End `run` once the flush under way is done: cut short, it would leave a hole in the log, or go on in its
        thread beside whatever is written next."""
        self._stopping = True
        self._wanted.set()
        await self._stopped.wait()

    async def _flush(self) -> None:
        positions, self._positions = self._positions, {}
        callbacks, self._callbacks = self._callbacks, []
        left = self._log.pending_bytes
        while left > 0:  # one batch, unless more waits than a batch may hold
            batch = self._log.take()
            self._started_at = began = self._clock.boottime()
            await self._write(batch)
            self._log.written(batch)
            self._started_at = None
            self.flushes += 1
            self.flushed_bytes += batch.size
            self.seconds.add(self._clock.boottime() - began)
            left -= batch.size
        for listener, (position, epoch) in positions.items():
            listener.log_flushed(position, epoch)
        for callback in callbacks:
            callback()
        await self._fill_reserve()

    async def _write(self, batch: Batch) -> None:
        """Write one batch; on a full disk wait for room, as what is not durable is not said to anyone."""
        while True:
            try:
                await self._executor.run(partial(self._log.write, batch))
            except LogFull as error:
                if not self._full:
                    _log.error("the disk is full (%s): growing writes are refused until there is room", error)
                self._full = True
                if self._stopping:
                    raise
                await self._sleep(FULL_PAUSE_SECONDS)
            else:
                if self._full:
                    _log.warning("there is room on the disk again")
                self._full = False
                return

    async def _trim(self) -> None:
        if self._floor is None:
            return
        segment = min(self._trim_before, self._floor())
        self._trim_before, self._floor = segment, None
        if segment > self._log.oldest_segment:
            self._trimmed(self._log.forget_before(segment))
            await self._executor.run(self._log.recycle)

    async def _fill_reserve(self) -> None:
        """Make the log's reserve whole again, if it can be, not more often than a disk that stays full deserves."""
        now = self._clock.boottime()
        if self._reserve_short and now - self._reserve_tried_at < FULL_PAUSE_SECONDS:
            return
        if self._log.low_on_space:  # a new segment has just taken the reserve, which says nothing of the disk yet
            self._reserve_tried_at = now
            await self._executor.run(self._log.fill_reserve)
        self._reserve_short = self._log.low_on_space


def _nobody(_first_positions: dict[int, int]) -> None:
    """Nobody hears of it."""
