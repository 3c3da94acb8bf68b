"""How late an event loop is: the time by which a process's requests wait for others to let go of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

PERIOD_SECONDS: Final = 0.25


class LoopDelay(Collector):
    """Looks four times a second how late a timer rings. Belongs to the loop that it is made in."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._sum = 0.0
        self._rings = 0
        self._longest = 0.0
        self._arm()

    def _arm(self) -> None:
        self._due = self._loop.time() + PERIOD_SECONDS
        self._loop.call_at(self._due, self._ring)

    def _ring(self) -> None:
        late = max(0.0, self._loop.time() - self._due)
        self._sum += late
        self._rings += 1
        self._longest = max(self._longest, late)
        self._arm()

    def collect(self) -> Iterable[Metric]:
        """The families. The longest delay is that since the last scrape."""
        longest, self._longest = self._longest, 0.0
        yield CounterMetricFamily("trizone_loop_delay_seconds", "Sum of how late timers rang.", self._sum)
        yield CounterMetricFamily("trizone_loop_delay_timers", "Timers that rang.", self._rings)
        yield GaugeMetricFamily(
            "trizone_loop_delay_seconds_max", "The latest that a timer rang since the last scrape.", longest
        )
