"""How fast a node copies, sends and restores: none of it may keep the log's flushes and the requests waiting."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from cluster.clock import Clock

HURRY: Final = 8
"""How much faster it may be when the log is nearly full: then writes would soon be refused, which is worse."""


class Pace:
    """One rate for all bulk work of a node, in bytes per second. `hurries`: whether it may be exceeded."""

    def __init__(
        self,
        bytes_per_second: int,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]],
        hurries: Callable[[], bool],
    ) -> None:
        self._rate = bytes_per_second
        self._hurries = hurries
        self._clock = clock
        self._sleep = sleep
        self._free_at = float("-inf")

    async def take(self, count: int) -> None:
        """Wait until `count` bytes that were just moved fit the rate."""
        now = self._clock.boottime()
        rate = self._rate * HURRY if self._hurries() else self._rate
        self._free_at = max(self._free_at, now) + count / rate
        await self._sleep(self._free_at - now)
