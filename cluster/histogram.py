"""A histogram that costs an addition and a bisection for each value; Prometheus's family is made when it is scraped."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from prometheus_client.core import HistogramMetricFamily

SECONDS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Upper bounds for times, in seconds."""


class Histogram:
    """Counts of values by upper bounds, and their sum."""

    __slots__ = ("_bounds", "_buckets", "sum")

    def __init__(self, bounds: tuple[float, ...] = SECONDS) -> None:
        self._bounds = bounds
        self._buckets = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        """One more value."""
        self._buckets[bisect_left(self._bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self._buckets)

    def family(self, name: str, help: str) -> HistogramMetricFamily:  # noqa: A002
        """A family of this one alone."""
        family = HistogramMetricFamily(name, help)
        self.fill(family, ())
        return family

    def fill(self, family: HistogramMetricFamily, labels: tuple[str, ...]) -> None:
        """Add this one, with these labels, to a family."""
        total, shown = 0, []
        for bound, count in zip((*map(str, self._bounds), "+Inf"), self._buckets, strict=True):
            total += count
            shown.append((bound, float(total)))
        family.add_metric(labels, shown, sum_value=self.sum)
