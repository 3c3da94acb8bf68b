"""What the storage nodes say of themselves and of each other, as auto-admin last heard it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cluster.wire import node_pb2

SILENT_SECONDS = 3.0
"""A node that has not reported for this long (three reports) is not given new replicas."""
DEAF_SECONDS = 5.0
"""When no report at all came for this long, it was auto-admin that could not hear, and silence is counted anew."""


@dataclass(frozen=True)
class LeaderSeen:
    """A partition as its leader sees it: the newest committed membership, by replica ids.

    A `version` of 0 is that of a leader that does not say; while `joint`, the old voters count too.
    """

    replica: int
    node: int
    epoch: int
    serving: bool
    version: int = 0
    voters: tuple[int, ...] = ()
    learners: tuple[int, ...] = ()
    joint: bool = False


@dataclass(frozen=True)
class NodeSeen:
    """A node's last report. `since`: when its session began; `serving`: replicas that lead and serve; `dropped`:
    replicas dropped by order; `filled`: (partition, table of a global index) where the node's leader has brought all of
    the partition to the index; `leads`: partitions that it leads."""

    report: node_pb2.Report
    at: float
    serving: frozenset[int]
    dropped: frozenset[int]
    filled: frozenset[tuple[int, int]] = frozenset()
    since: float = 0.0
    leads: Mapping[int, LeaderSeen] = field(default_factory=dict)

    @property
    def catalog_at(self) -> tuple[int, int]:
        """(epoch, version) of the copy of the catalog that the node holds."""
        return self.report.catalog_epoch, self.report.catalog_version


@dataclass(frozen=True)
class View:
    """All nodes with a session, by id. Never changed: each report gives the next view.

    `heard`: when each node was last heard, by auto-admin or by a node that reports. `since`: since when auto-admin
    hears anyone; None before the first report. Times are seconds of boot time.
    """

    nodes: Mapping[int, NodeSeen] = field(default_factory=dict)
    heard: Mapping[int, float] = field(default_factory=dict)
    since: float | None = None

    def with_report(self, report: node_pb2.Report, now: float) -> View:
        """The view after a report that came at `now`."""
        node = report.node.node
        known = self.nodes.get(node)
        seen = NodeSeen(
            report,
            now,
            frozenset(replica.replica for replica in report.replicas if replica.serving),
            frozenset(report.dropped_replicas),
            frozenset((replica.partition, index) for replica in report.replicas for index in replica.filled_indexes),
            now if known is None else known.since,
            {replica.partition: _led(node, replica) for replica in report.replicas if replica.role == "leader"},
        )
        last = max(self.heard.values(), default=now)
        since = now if self.since is None or now - last > DEAF_SECONDS else self.since
        heard = {**self.heard, **dict.fromkeys(report.heard_nodes, now), node: now}
        return View({**self.nodes, node: seen}, heard, since)

    def without(self, node: int) -> View:
        """The view once the node's session has ended."""
        return View({known: seen for known, seen in self.nodes.items() if known != node}, self.heard, self.since)

    def live(self, now: float) -> frozenset[int]:
        """Nodes with a session that reported lately."""
        return frozenset(node for node, seen in self.nodes.items() if now - seen.at <= SILENT_SECONDS)

    def silence(self, node: int, now: float) -> float:
        """For how long nobody has heard of the node, as far as auto-admin could have been told."""
        return 0.0 if self.since is None else now - max(self.since, self.heard.get(node, self.since))

    def leaders(self) -> dict[int, LeaderSeen]:
        """By partition: of those that lead, the one of the highest epoch."""
        found: dict[int, LeaderSeen] = {}
        for seen in self.nodes.values():
            for partition, leader in seen.leads.items():
                if partition not in found or found[partition].epoch < leader.epoch:
                    found[partition] = leader
        return found

    def serving(self) -> frozenset[int]:
        """Replicas that lead and serve."""
        return frozenset().union(*(seen.serving for seen in self.nodes.values()))

    def dropped(self) -> frozenset[int]:
        """Replicas that were dropped by order."""
        return frozenset().union(*(seen.dropped for seen in self.nodes.values()))

    def filled(self) -> frozenset[tuple[int, int]]:
        """(partition, table of a global index) where all of the partition is in the index."""
        return frozenset().union(*(seen.filled for seen in self.nodes.values()))


def _led(node: int, replica: node_pb2.ReplicaReport) -> LeaderSeen:
    return LeaderSeen(
        replica.replica,
        node,
        replica.epoch,
        replica.serving,
        replica.membership_version,
        tuple(replica.voters),
        tuple(replica.learners),
        bool(replica.old_voters),
    )
