"""What a router tells Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from router.service import Router

BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Upper bounds in seconds."""


class RequestMetrics:
    """Counts answers: a few additions for each; the families are put together when they are scraped."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, int, str], int] = {}
        self._seconds: dict[str, float] = {}
        self._buckets: dict[str, list[int]] = {}

    def answered(self, operation: str, status: int, error: str, seconds: float) -> None:
        """Count one answer."""
        key = (operation, status, error)
        self._answers[key] = self._answers.get(key, 0) + 1
        buckets = self._buckets.get(operation)
        if buckets is None:
            buckets = self._buckets[operation] = [0] * (len(BUCKETS) + 1)
        buckets[bisect_left(BUCKETS, seconds)] += 1
        self._seconds[operation] = self._seconds.get(operation, 0.0) + seconds

    def collect(self) -> Iterable[Metric]:
        """The families."""
        answers = CounterMetricFamily(
            "trizone_router_requests", "Answers to requests.", labels=("operation", "status", "error")
        )
        for (operation, status, error), count in self._answers.items():
            answers.add_metric((operation, str(status), error), count)
        latency = HistogramMetricFamily(
            "trizone_router_request_seconds", "Time from a request's last byte to its answer.", labels=("operation",)
        )
        for operation, buckets in self._buckets.items():
            latency.add_metric((operation,), _cumulated(buckets), sum_value=self._seconds[operation])
        yield answers
        yield latency


class RouterMetrics(Collector):
    """Reads a router when it is scraped."""

    def __init__(self, router: Router) -> None:
        self._router = router

    def collect(self) -> Iterable[Metric]:
        """The families."""
        router = self._router
        yield from router.requests.collect()
        refusals = CounterMetricFamily(
            "trizone_router_auth_refusals",
            "Requests that were refused, or with auth = warn would have been, for who sent them.",
            labels=("error",),
        )
        for error, count in (router.guard.refusals if router.guard is not None else {}).items():
            refusals.add_metric((error,), count)
        yield refusals
        limited = CounterMetricFamily(
            "trizone_router_limited",
            "Connections closed, and requests throttled, for there were too many.",
            labels=("kind",),
        )
        for kind, count in router.limits.refused.items():
            limited.add_metric((kind,), count)
        yield limited
        yield _gauge("connections", "Open connections of clients.", router.connections)
        yield _gauge("calls_outstanding", "Calls to storage nodes under way.", router.executor.outstanding)
        yield _gauge("catalog_version", "Version of the catalog in use.", router.catalog.topology.version)
        yield _gauge("catalog_watched", "1 while auto-admin tells of changes.", int(router.catalog.watching))


def _cumulated(buckets: list[int]) -> list[tuple[str, float]]:
    total, shown = 0, []
    for bound, count in zip((*map(str, BUCKETS), "+Inf"), buckets, strict=True):
        total += count
        shown.append((bound, float(total)))
    return shown


def _gauge(name: str, help: str, value: int) -> GaugeMetricFamily:  # noqa: A002
    return GaugeMetricFamily(f"trizone_router_{name}", help, value)
