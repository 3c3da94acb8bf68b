"""What a storage node tells Prometheus. Everything is read when it is scraped; nothing is counted twice."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from storagenode.node import StorageNode
from storagenode.propagation import IndexLag
from storagenode.replica_metrics import replica_metrics, table_metrics


class StorageNodeMetrics(Collector):
    """Reads the node when it is scraped."""

    def __init__(self, node: StorageNode) -> None:
        self._node = node

    def collect(self) -> Iterable[Metric]:
        """The families."""
        node = self._node
        replicas = list(node.replicas)
        yield _info(node)
        yield _gauge("replicas", "Replicas on this node.", len(replicas))
        yield _gauge("leaders", "Replicas that lead.", sum(hosted.replica.role == "leader" for hosted in replicas))
        yield _gauge("leaders_serving", "Replicas that lead and serve.", sum(hosted.serving for hosted in replicas))
        yield _gauge("items", "Items in the replicas.", sum(hosted.partition.applied.items for hosted in replicas))
        yield _gauge(
            "apply_lag_positions",
            "Positions of the logs that are not applied, over all replicas.",
            sum(hosted.replica.last_position - hosted.partition.applied.position for hosted in replicas),
        )
        yield _gauge("writes_waiting", "Writes proposed and not applied.", sum(hosted.waiting for hosted in replicas))
        yield _gauge("log_size_bytes", "Bytes that the log takes on the disk.", node.log.size)
        yield _gauge("log_size_bytes_max", "The bound on that.", node.settings.log_bytes_max)
        yield _gauge("log_oldest_segment", "The first segment that is kept.", node.log.oldest_segment)
        yield _gauge(
            "replicas_without_state",
            "Replicas that wait for a snapshot from their leader.",
            sum(hosted.replica.lacks_state or hosted.replica.wanted_snapshot is not None for hosted in replicas),
        )
        yield _gauge("log_pending_bytes", "Bytes that wait for a flush.", node.log.pending_bytes)
        yield _gauge("disk_free_bytes", "Bytes free where the data is.", node.disk_free)
        yield _gauge("disk_short_of_space", "1 while growing writes are refused.", int(node.short_of_space))
        yield _gauge("incarnation", "How often the node has started.", node.identity.incarnation)
        yield _gauge("catalog_version", "Version of the catalog in use.", node.topology.version)
        yield from _index_metrics(node.propagation.lags())
        yield _counter("flushes", "Flushes of the log.", node.flusher.flushes)
        yield _counter("flushed_bytes", "Bytes written to the log.", node.flusher.flushed_bytes)
        yield node.flusher.seconds.family("trizone_storagenode_flush_seconds", "Time that a flush of the log took.")
        space = [hosted.store.space() for hosted in replicas]
        yield _gauge("store_file_bytes", "Bytes of the stores' files.", sum(each.file for each in space))
        yield _gauge("store_live_bytes", "Of those, bytes that hold rows.", sum(each.live for each in space))
        yield from _snapshot_metrics(node)
        yield from replica_metrics(node)
        yield from table_metrics(node)
        yield _counter("snapshots_taken", "Snapshots taken.", node.snapshots.taken)
        yield _counter("snapshots_installed", "Replicas brought back by a snapshot.", node.installer.installed)
        yield _counter("snapshot_sent_bytes", "Bytes of snapshots sent to followers.", node.source.sent_bytes)
        yield _counter("snapshot_received_bytes", "Bytes of snapshots from leaders.", node.installer.fetched_bytes)
        scrub = node.scrub
        yield _gauge(
            "replicas_damaged",
            "Replicas whose rows are known not to be what was written.",
            sum(bool(hosted.damage.reason) for hosted in replicas),
        )
        yield _gauge(
            "replicas_beyond_repair",
            "Of those, the ones that nothing was found to repair with.",
            sum(hosted.damage.beyond_repair for hosted in replicas),
        )
        yield _counter("scrub_rows_checked", "Rows that the scrub looked at.", scrub.rows_checked)
        yield _counter("scrub_log_checked_bytes", "Bytes of the log that the scrub looked at.", scrub.log_bytes_checked)
        yield _counter("log_segments_damaged", "Segments of the log found damaged.", node.snapshots.damaged_segments)
        yield _counter("scrub_replicas_checked", "Walks over all rows of a replica.", scrub.replicas_checked)
        yield _counter("scrub_replicas_compared", "Replicas whose sum the leader compared.", scrub.replicas_compared)
        yield _found(row=scrub.damaged_rows, sum=scrub.wrong_sums, replicas=scrub.differences)
        yield _counter("replicas_repaired", "Replicas whose rows were made anew.", node.repairs.repaired)
        yield _counter("stores_compacted", "Files replaced by their compact copy.", node.snapshots.compacted)
        yield _counter("elections_won", "Times a replica here became leader.", node.elections_won)
        yield _counter("requests", "Requests from routers.", node.requests)


def _info(node: StorageNode) -> GaugeMetricFamily:
    """Always 1; its labels say where the node is, to be joined to other metrics by their instance."""
    settings = node.settings
    family = GaugeMetricFamily(
        "trizone_storagenode_info", "Who this node is and where.", labels=("name", "zone", "region")
    )
    family.add_metric((settings.name, settings.zone, settings.region), 1)
    return family


def _snapshot_metrics(node: StorageNode) -> Iterable[Metric]:
    """How much of the log would have to be read again, of the replica that has most of it."""
    logged = [node.snapshots.logged_since(hosted.partition_id) for hosted in node.replicas]
    yield _gauge("log_since_snapshot_bytes_max", "Log since the last snapshot of a replica.", max(logged, default=0))
    taken = node.snapshots.last_taken_at
    age = -1.0 if taken is None else node.clock.boottime() - taken
    yield _gauge("last_snapshot_age_seconds", "Since the last snapshot was taken; -1: none was yet.", age)


def _index_metrics(lags: list[IndexLag]) -> Iterable[Metric]:
    """Lag and backlog of each index, the worst and the sum of the partitions led here."""
    seconds = GaugeMetricFamily(
        "trizone_storagenode_index_lag_seconds",
        "Age of the oldest write that a global index does not show.",
        labels=("table", "index"),
    )
    rows = GaugeMetricFamily(
        "trizone_storagenode_index_rows_waiting",
        "Rows on their way to a global index.",
        labels=("table", "index"),
    )
    names = sorted({(lag.table_name, lag.index_name) for lag in lags})
    for name in names:
        of_index = [lag for lag in lags if (lag.table_name, lag.index_name) == name]
        seconds.add_metric(name, max(lag.seconds for lag in of_index))
        rows.add_metric(name, sum(lag.rows for lag in of_index))
    return seconds, rows


def _found(**counts: int) -> CounterMetricFamily:
    found = CounterMetricFamily(
        "trizone_storagenode_scrub_mismatches",
        "What the scrub found: rows that fail their checksum, sums over a replica's rows, differences of replicas.",
        labels=("kind",),
    )
    for kind, count in counts.items():
        found.add_metric((kind,), count)
    return found


def _gauge(name: str, help: str, value: float) -> GaugeMetricFamily:  # noqa: A002
    return GaugeMetricFamily(f"trizone_storagenode_{name}", help, value)


def _counter(name: str, help: str, value: float) -> CounterMetricFamily:  # noqa: A002
    return CounterMetricFamily(f"trizone_storagenode_{name}", help, value)
