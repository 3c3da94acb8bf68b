"""Time as every service sees it. Nothing else in the services reads a clock."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Two clocks: one that only moves forward, through suspends too, and the calendar's."""

    def boottime(self) -> float:
        """Seconds that only rise and go on during suspend; leases and timeouts are counted on it."""
        ...

    def wall(self) -> float:
        """Seconds since the Unix epoch; may jump."""
        ...


class SystemClock:
    """The machine's clocks."""

    def boottime(self) -> float:
        """CLOCK_BOOTTIME in seconds."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def wall(self) -> float:
        """The calendar's time in seconds since the Unix epoch."""
        return time.time()
