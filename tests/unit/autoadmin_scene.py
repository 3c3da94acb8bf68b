"""A catalog and the reports of its nodes, for tests of what is planned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from autoadmin.actions import ChangePartitions, PreferLeader, Step
from autoadmin.catalog import with_active_tables
from autoadmin.membership import with_draining, with_steps
from autoadmin.planner import Leaders, Rules, plan
from autoadmin.view import View
from cluster.topology import NodePlace, Partition
from cluster.wire import common_pb2, node_pb2
from tests.unit.autoadmin_samples import create, sample_catalog, sample_table

RULES = Rules(replace_after=20.0, rebuilds_at_once=2)
LAST_REPORT = 100.0
LOST = LAST_REPORT + RULES.replace_after


class Scene:
    """A catalog, and the reports of its nodes: every partition is led where it should be unless a test says."""

    def __init__(self, places: Sequence[NodePlace], partitions: int, leaders: Leaders = "spread") -> None:
        catalog = create(sample_catalog(places), sample_table(), partitions, leaders)
        active = with_active_tables(catalog, {1})
        assert active is not None
        self.catalog = catalog.after(active)
        self.view = View()
        self.members: dict[int, tuple[int, tuple[int, ...], tuple[int, ...]]] = {}
        self.leads: dict[int, int] = {}
        for partition in self.catalog.topology.partitions.values():
            self.vote(partition.id, 1, [place.replica for place in partition.replicas])
            self.leads[partition.id] = partition.preferred_leader

    def vote(self, partition: int, version: int, voters: Sequence[int], learners: Sequence[int] = ()) -> None:
        self.members[partition] = version, tuple(voters), tuple(learners)

    def partition(self, id_: int = 1) -> Partition:
        return self.catalog.topology.partitions[id_]

    def put(self, partition: Partition) -> None:
        """This is the partition's record from now on."""
        topology = self.catalog.topology
        self.catalog = replace(
            self.catalog, topology=replace(topology, partitions={**topology.partitions, partition.id: partition})
        )

    def report(
        self, live: Sequence[int], now: float, heard_nodes: Sequence[int] = (), dropped_replicas: Sequence[int] = ()
    ) -> None:
        for node in live:
            replicas = []
            for partition in self.catalog.topology.partitions.values():
                place = partition.replica_on(node)
                if place is not None and self.leads.get(partition.id) == place.replica:
                    version, voters, learners = self.members[partition.id]
                    replicas.append(
                        node_pb2.ReplicaReport(
                            partition=partition.id,
                            replica=place.replica,
                            role="leader",
                            epoch=2,
                            serving=True,
                            membership_version=version,
                            voters=voters,
                            learners=learners,
                        )
                    )
            record = common_pb2.NodeRecord(node=node)
            report = node_pb2.Report(
                node=record, replicas=replicas, heard_nodes=heard_nodes, dropped_replicas=dropped_replicas
            )
            self.view = self.view.with_report(report, now)

    def steps(self, now: float, rules: Rules = RULES) -> list[Step]:
        return [
            step
            for action in plan(self.catalog.topology, self.view, now, rules)
            if isinstance(action, ChangePartitions)
            for step in action.steps
        ]

    def members_steps(self, now: float, rules: Rules = RULES) -> list[Step]:
        return [step for step in self.steps(now, rules) if not isinstance(step, PreferLeader)]

    def perform(self, *steps: Step) -> None:
        change = with_steps(self.catalog, steps)
        assert change is not None
        self.catalog = self.catalog.after(change)

    def drain(self, node: int) -> None:
        change = with_draining(self.catalog, node, draining=True)
        assert change is not None
        self.catalog = self.catalog.after(change)

    def lead_elsewhere(self, node: int) -> None:
        """Another replica leads what this node led."""
        for partition in self.catalog.topology.partitions.values():
            place = partition.replica(self.leads[partition.id])
            if place is not None and place.node == node:
                self.leads[partition.id] = next(
                    other.replica for other in partition.wanted_voters if other.node != node
                )

    def lose(self, node: int) -> list[int]:
        """The node is silent for as long as it takes to be lost; the ids of the others."""
        everyone = list(self.catalog.topology.nodes)
        self.report(everyone, LAST_REPORT)
        self.lead_elsewhere(node)
        self.view = self.view.without(node)
        rest = [other for other in everyone if other != node]
        second = LAST_REPORT
        while second < LOST:
            second += 1
            self.report(rest, second)
        return rest
