"""What the storage nodes say of themselves, as auto-admin last heard it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cluster.wire import node_pb2

SILENT_SECONDS = 3.0
"""A node that has not reported for this long (three reports) is not given new replicas."""


@dataclass(frozen=True)
class NodeSeen:
    """A node's last report. `serving`: replicas that lead and serve; `dropped`: replicas dropped by order; `filled`:
    (partition, table of a global index) where the node's leader has brought all of the partition to the index."""

    report: node_pb2.Report
    at: float
    serving: frozenset[int]
    dropped: frozenset[int]
    filled: frozenset[tuple[int, int]] = frozenset()

    @property
    def catalog_at(self) -> tuple[int, int]:
        """(epoch, version) of the copy of the catalog that the node holds."""
        return self.report.catalog_epoch, self.report.catalog_version


@dataclass(frozen=True)
class View:
    """All nodes with a session, by id. Never changed: each report gives the next view."""

    nodes: Mapping[int, NodeSeen] = field(default_factory=dict)

    def with_report(self, report: node_pb2.Report, now: float) -> View:
        """The view after a report that came at `now` (seconds, boot time)."""
        seen = NodeSeen(
            report,
            now,
            frozenset(replica.replica for replica in report.replicas if replica.serving),
            frozenset(report.dropped_replicas),
            frozenset((replica.partition, index) for replica in report.replicas for index in replica.filled_indexes),
        )
        return View({**self.nodes, report.node.node: seen})

    def without(self, node: int) -> View:
        """The view once the node's session has ended."""
        return View({known: seen for known, seen in self.nodes.items() if known != node})

    def live(self, now: float) -> frozenset[int]:
        """Nodes with a session that reported lately."""
        return frozenset(node for node, seen in self.nodes.items() if now - seen.at <= SILENT_SECONDS)

    def serving(self) -> frozenset[int]:
        """Replicas that lead and serve."""
        return frozenset().union(*(seen.serving for seen in self.nodes.values()))

    def dropped(self) -> frozenset[int]:
        """Replicas that were dropped by order."""
        return frozenset().union(*(seen.dropped for seen in self.nodes.values()))

    def filled(self) -> frozenset[tuple[int, int]]:
        """(partition, table of a global index) where all of the partition is in the index."""
        return frozenset().union(*(seen.filled for seen in self.nodes.values()))
