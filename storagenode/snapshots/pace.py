"""How fast a node copies, sends and restores: none of it may keep the log's flushes and the requests waiting."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from cluster.clock import Clock

HURRY: Final = 8
"""How much faster it may be when the log is nearly full: then writes would soon be refused, which is worse."""
BUSY_SHARE: Final = 4
"""How much slower it is while clients write."""
BUSY_FLUSHES: Final = 20
"""Flushes of the log in a second that are not only those of the cluster's own housekeeping."""
LOOK_SECONDS: Final = 0.25


class Busy:
    """Whether clients write, as the log's flushes tell."""

    def __init__(self, clock: Clock, flushes: Callable[[], int]) -> None:
        self._clock = clock
        self._flushes = flushes
        self._seen_at = float("-inf")
        self._seen = 0
        self._busy = False

    def __call__(self) -> bool:
        """As of the last quarter of a second, or since it was last asked if that is longer."""
        now = self._clock.boottime()
        if (passed := now - self._seen_at) >= LOOK_SECONDS:
            flushes = self._flushes()
            self._busy = flushes - self._seen > BUSY_FLUSHES * passed
            self._seen, self._seen_at = flushes, now
        return self._busy


class Pace:
    """One rate for all bulk work of a node, in bytes per second. `hurries`: whether it may be exceeded. `is_busy`:
    whether most of it is to be left to clients."""

    def __init__(
        self,
        bytes_per_second: int,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]],
        hurries: Callable[[], bool],
        is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        self._is_busy = is_busy
        self._rate = bytes_per_second
        self._hurries = hurries
        self._clock = clock
        self._sleep = sleep
        self._free_at = float("-inf")

    async def take(self, count: int) -> None:
        """Wait until `count` bytes that were just moved fit the rate."""
        now = self._clock.boottime()
        rate: float = self._rate
        if self._hurries():
            rate *= HURRY
        elif self._is_busy():
            rate /= BUSY_SHARE
        self._free_at = max(self._free_at, now) + count / rate
        await self._sleep(self._free_at - now)
