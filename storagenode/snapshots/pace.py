"""How fast a node copies, sends and restores: none of it may keep the log's flushes and the requests waiting."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from cluster.clock import Clock


class Pace:
    """One rate for all bulk work of a node, in bytes per second."""

    def __init__(self, bytes_per_second: int, clock: Clock, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._rate = bytes_per_second
        self._clock = clock
        self._sleep = sleep
        self._free_at = float("-inf")

    async def take(self, count: int) -> None:
        """Wait until `count` bytes that were just moved fit the rate."""
        now = self._clock.boottime()
        self._free_at = max(self._free_at, now) + count / self._rate
        await self._sleep(self._free_at - now)
