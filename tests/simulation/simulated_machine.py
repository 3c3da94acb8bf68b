"""The other seams of a simulated machine: clocks, threads, chance."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import TypeVar

T = TypeVar("T")

START_OF_TIME = 1_800_000_000.0
"""The calendar's time when a simulation starts."""


class SimulatedClock:
    """Clocks of one machine, off by `skew` seconds and running at `1 + drift`."""

    def __init__(self, *, skew: float = 0.0, drift: float = 0.0, boot_offset: float = 0.0) -> None:
        self._skew = skew
        self._drift = drift
        self._boot_offset = boot_offset

    def boottime(self) -> float:
        """Virtual seconds since the machine started, as its own oscillator counts them."""
        return asyncio.get_running_loop().time() * (1 + self._drift) + self._boot_offset

    def wall(self) -> float:
        """The calendar as this machine believes it."""
        return START_OF_TIME + self._skew + self.boottime()


class SimulatedExecutor:
    """Runs blocking work on the one thread there is, after a virtual while."""

    def __init__(self, random: Random, *, slowest: float = 0.002) -> None:
        self._random = random
        self.slowest = slowest

    async def run(self, function: Callable[[], T]) -> T:
        """The function's result after a virtual delay."""
        await asyncio.sleep(self._random.uniform(0.0001, self.slowest))
        return function()

    def close(self) -> None:
        """Nothing runs on."""
