"""The other seams of a simulated machine: clocks, threads, power."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import TypeVar

T = TypeVar("T")

START_OF_TIME = 1_800_000_000.0
"""The calendar's time when a simulation starts."""


class CutShort(BaseException):
    """The process ends in the middle of an operation on its disk. No error: nobody may handle it."""


class SimulatedClock:
    """Clocks of one machine: the calendar is off by `skew` seconds, the oscillator runs at `1 + drift`."""

    def __init__(self, *, skew: float = 0.0, drift: float = 0.0, boot_offset: float = 0.0) -> None:
        self.skew = skew
        self._drift = drift
        self._boot_offset = boot_offset

    def boottime(self) -> float:
        """Virtual seconds since the machine started, as its own oscillator counts them."""
        return self._elapsed() + self._boot_offset

    def wall(self) -> float:
        """The calendar as this machine believes it."""
        return START_OF_TIME + self.skew + self._elapsed()

    def _elapsed(self) -> float:
        return asyncio.get_running_loop().time() * (1 + self._drift)


class SimulatedExecutor:
    """Runs blocking work on the one thread there is, after a virtual while.

    `slowest`: the longest that it takes. `cut_short` is called when the process ends in the middle of the work; whoever
    waits for that then waits until the process is killed.
    """

    def __init__(self, random: Random, *, slowest: float = 0.002, cut_short: Callable[[], None] | None = None) -> None:
        self._random = random
        self._cut_short = cut_short
        self.slowest = slowest
        self._moves = asyncio.Event()
        self._moves.set()

    async def run(self, function: Callable[[], T]) -> T:
        """The function's result after a virtual delay."""
        await asyncio.sleep(self._random.uniform(0.0001, self.slowest))
        await self._moves.wait()
        try:
            return function()
        except CutShort:
            assert self._cut_short is not None
            self._cut_short()
            await asyncio.Event().wait()
            raise

    def stall(self) -> None:
        """Nothing ends any more, until `resume`."""
        self._moves.clear()

    def resume(self) -> None:
        """What was asked for meanwhile is done now."""
        self._moves.set()

    def close(self) -> None:
        """Nothing runs on."""
