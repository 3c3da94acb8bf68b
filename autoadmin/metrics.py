"""What auto-admin tells Prometheus."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from autoadmin.service import AutoAdmin
from cluster.topology import PartitionState


class AutoAdminMetrics(Collector):
    """Reads the service when it is scraped."""

    def __init__(self, service: AutoAdmin) -> None:
        self._service = service

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """The gauges."""
        topology, member = self._service.topology, self._service.member
        states = [partition.state for partition in topology.partitions.values()]
        statuses = [record.table.status for record in topology.tables.values()]
        info = GaugeMetricFamily(
            "trizone_autoadmin_info", "Always 1: of which region this member is.", labels=("region",)
        )
        info.add_metric((self._service.region,), 1)
        yield info
        yield _gauge("leads", "1 on the member of auto-admin that leads.", int(self._service.serving))
        yield _gauge(
            "leader_known",
            "1 while this member leads, or follows one that does.",
            int(self._service.follows or self._service.serving),
        )
        yield _gauge("members", "Members of auto-admin that vote.", len(member.voters))
        yield _gauge("member_epoch", "Epoch of the members' log.", member.epoch)
        yield _gauge("catalog_epoch", "Epoch of the catalog.", topology.epoch)
        yield _gauge("catalog_version", "Version of the catalog.", topology.version)
        yield _gauge("tables", "Tables in the catalog.", len(statuses))
        yield _gauge("tables_creating", "Tables whose partitions are not all led yet.", statuses.count("CREATING"))
        yield _gauge("partitions", "Partitions in use.", states.count(PartitionState.ACTIVE))
        yield _gauge(
            "partitions_dropped", "Orders to drop that are not carried out.", states.count(PartitionState.DROPPED)
        )
        yield _gauge("nodes_known", "Storage nodes in the catalog.", len(topology.nodes))
        yield _gauge("nodes_live", "Storage nodes that report.", self._service.live_nodes)
        yield _gauge("routers_watching", "Routers that watch the catalog.", len(self._service.routers))
        if self._service.serving:
            yield from self._health()

    def _health(self) -> Iterable[GaugeMetricFamily]:
        """What only the member that leads knows."""
        now = self._service.summary
        yield _gauge("partitions_degraded", "Partitions that want a full replica on a live node.", now.degraded)
        yield _gauge("partitions_sharing_zone", "Partitions with two replicas in one zone.", now.sharing_zone)
        yield _gauge("partitions_changing", "Partitions whose replicas are being changed.", now.changing)
        yield _gauge("nodes_silent", "Storage nodes of which nobody hears.", now.nodes_silent)
        yield _gauge("nodes_lost", "Silent storage nodes whose replicas are made anew on others.", now.nodes_lost)
        yield _gauge("nodes_draining", "Storage nodes that are to be emptied.", now.nodes_draining)


def _gauge(name: str, help: str, value: int) -> GaugeMetricFamily:  # noqa: A002
    return GaugeMetricFamily(f"trizone_autoadmin_{name}", help, value)
