"""What a replicator tells of its links: counters, lags, parked links, the last error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from cluster.wire import regions_pb2

LABELS: Final = ("table", "receiving_region")


@dataclass(slots=True)
class LinkState:
    """One partition's changes on their way to one region. Times are in seconds since the epoch, 0: never.

    `waiting_since_ms` and `waiting` are as the partition's leader told them last; `standby`: another replicator
    carries them.
    """

    sent: int = 0
    won: int = 0
    conflicts: int = 0
    waiting: int = 0
    waiting_since_ms: int = 0
    parked: bool = False
    cut_off: bool = False
    filled: bool = False
    standby: bool = False
    last_error: str = ""
    last_error_at: float = 0.0

    def failed(self, error: str, now: float) -> None:
        """Something went wrong."""
        self.last_error, self.last_error_at = error, now


@dataclass(slots=True)
class TableLink:
    """All partitions of a table on their way to one region."""

    table: str
    region: str
    state: str
    partitions: list[LinkState]

    @property
    def pending(self) -> int:
        """Changes that the region may not have."""
        return sum(each.waiting for each in self.partitions)

    def lag(self, now: float) -> float:
        """Age of the oldest of them, in seconds."""
        since = min((each.waiting_since_ms for each in self.partitions if each.waiting_since_ms), default=0)
        return max(0.0, now - since / 1000) if since else 0.0

    def to_wire(self, now: float) -> regions_pb2.LinkStatus:
        """As `trizone regions status` gets it."""
        latest = max(self.partitions, key=lambda each: each.last_error_at, default=LinkState())
        return regions_pb2.LinkStatus(
            table=self.table,
            region=self.region,
            state=self.state,
            pending=self.pending,
            lag_seconds=self.lag(now),
            sent=sum(each.sent for each in self.partitions),
            conflicts=sum(each.conflicts for each in self.partitions),
            parked=any(each.parked for each in self.partitions),
            last_error=latest.last_error,
            last_error_ms=int(latest.last_error_at * 1000),
        )


class Watched(Protocol):
    """What the metrics are taken from."""

    def table_links(self) -> list[TableLink]:
        """All links by table and region."""
        ...

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def unreachable(self) -> list[str]:
        """Regions that did not answer last."""
        ...


class ReplicatorMetrics(Collector):
    """The replicator's metrics, made from what it knows when they are asked for."""

    def __init__(self, replicator: Watched) -> None:
        self._replicator = replicator

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """All families."""
        lag = GaugeMetricFamily(
            "trizone_region_lag_seconds", "Age of the oldest change that a region may not have.", labels=LABELS
        )
        pending = GaugeMetricFamily(
            "trizone_region_pending_changes", "Changes that a region may not have.", labels=LABELS
        )
        parked = GaugeMetricFamily(
            "trizone_region_parked", "1 while changes are too far ahead of a region's clock.", labels=LABELS
        )
        sent = CounterMetricFamily(
            "trizone_region_changes_sent", "Changes that a region has taken for good.", labels=LABELS
        )
        conflicts = CounterMetricFamily(
            "trizone_region_conflicts", "Of those, changes that lost against a later write.", labels=LABELS
        )
        now = self._replicator.now()
        for link in self._replicator.table_links():
            labels = (link.table, link.region)
            lag.add_metric(labels, link.lag(now))
            pending.add_metric(labels, link.pending)
            parked.add_metric(labels, any(each.parked for each in link.partitions))
            sent.add_metric(labels, sum(each.sent for each in link.partitions))
            conflicts.add_metric(labels, sum(each.conflicts for each in link.partitions))
        unreachable = GaugeMetricFamily(
            "trizone_region_unreachable", "1 while a region does not answer.", labels=("receiving_region",)
        )
        for region in self._replicator.unreachable():
            unreachable.add_metric((region,), 1)
        yield from (lag, pending, parked, sent, conflicts, unreachable)
