"""What a router tells Prometheus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from cluster.histogram import Histogram
from router.catalog import table_name

if TYPE_CHECKING:
    from router.service import Router

ROWS_MAX: Final = 2_000
"""Tables by operations that are told apart; what is asked of others is counted under an empty name."""


class RequestMetrics:
    """Counts answers: a few additions for each; the families are put together when they are scraped."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, int, str], int] = {}
        self._latencies: dict[str, Histogram] = {}
        self._tables: dict[tuple[str, str], list[float]] = {}  # (table, operation) → successes, seconds, errors
        self._named: dict[tuple[str, str], list[float]] = {}  # the same by names and ARNs, as requests have them

    def answered(self, operation: str, table: str, status: int, error: str, seconds: float) -> None:
        """Count one answer. `table` as the request names it, "" for none or several."""
        key = (operation, status, error)
        self._answers[key] = self._answers.get(key, 0) + 1
        latency = self._latencies.get(operation)
        if latency is None:
            latency = self._latencies[operation] = Histogram()
        latency.add(seconds)
        of_table = self._named.get((table, operation)) or self._of_table(table if status == 200 else "", operation)
        if status == 200:
            of_table[0] += 1
            of_table[1] += seconds
        else:
            of_table[2] += 1

    def _of_table(self, table: str, operation: str) -> list[float]:
        """The row of a table that exists, as its first success says, if there is room for one."""
        if len(self._named) >= ROWS_MAX:
            table = ""
        of_table = self._tables.setdefault((table_name(table) if table else "", operation), [0, 0.0, 0])
        self._named[table, operation] = of_table
        return of_table

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
        for operation, histogram in self._latencies.items():
            histogram.fill(latency, (operation,))
        yield answers
        yield latency
        yield from self._collect_tables()

    def _collect_tables(self) -> Iterable[Metric]:
        labels = ("table", "operation")
        told = (
            ("requests", "Requests to a table that succeeded."),
            ("request_seconds", "The sum of their times."),
            ("request_errors", "Requests to a table that failed."),
        )
        for index, (name, text) in enumerate(told):
            family = CounterMetricFamily(f"trizone_router_table_{name}", text, labels=labels)
            for of_table, counts in self._tables.items():
                family.add_metric(of_table, counts[index])
            yield family


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


def _gauge(name: str, help: str, value: int) -> GaugeMetricFamily:  # noqa: A002
    return GaugeMetricFamily(f"trizone_router_{name}", help, value)
