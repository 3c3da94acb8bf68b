"""Listing, emptying and forgetting storage nodes, as the command line asks for it."""

from __future__ import annotations

import logging
from collections import Counter

from autoadmin.adoption import Adoption
from autoadmin.catalog import Catalog, Change
from autoadmin.executor import Control
from autoadmin.membership import with_draining, without_nodes
from autoadmin.plans.situation import Situation, choose
from cluster.convert import node_to_wire
from cluster.topology import NodePlace, Topology
from cluster.wire import admin_pb2

_log = logging.getLogger(__name__)


class Refused(Exception):  # noqa: N818 - an answer, not a fault
    """What was asked for is not done; the text is one plain sentence."""


class Nodes:
    """The call. It answers with the nodes as they are then, or with a sentence that says why nothing was done."""

    def __init__(self, control: Control, adoption: Adoption, cluster_id: str) -> None:
        self._control = control
        self._adoption = adoption
        self._cluster_id = cluster_id

    async def answer(self, message: bytes) -> bytes:
        """Admin/Nodes. Raises NotLeader and LeadershipLost."""
        request = admin_pb2.NodeRequest.FromString(message)
        try:
            self._check(request)
            reply = await self._changed(request) if request.change else admin_pb2.NodeReply(nodes=self._states())
        except Refused as refused:
            reply = admin_pb2.NodeReply(error_message=str(refused))
        return reply.SerializeToString()

    def _check(self, request: admin_pb2.NodeRequest) -> None:
        if request.cluster_id != self._cluster_id:
            raise Refused(f"This auto-admin is of cluster {self._cluster_id}, not of {request.cluster_id}.")
        if self._adoption.needed:
            raise Refused("Auto-admin lost its catalog and is about to take over the storage nodes' copy.")

    async def _changed(self, request: admin_pb2.NodeRequest) -> admin_pb2.NodeReply:
        notes: list[str] = []
        places: list[NodePlace] = []

        def make(catalog: Catalog) -> Change | None:
            place = find(catalog.topology, request.node)
            places.append(place)
            if request.change == admin_pb2.NodeRequest.REMOVE:
                check_removal(self._control.situation(), place)
                return without_nodes(catalog, (place.id,))
            if request.change == admin_pb2.NodeRequest.DRAIN:
                notes.extend(check_drain(self._control.situation(draining=place.id), place))
            return with_draining(catalog, place.id, draining=request.change == admin_pb2.NodeRequest.DRAIN)

        await self._control.change(make)
        place = places[-1]
        _log.info(
            "node %s: %s",
            place.name,
            admin_pb2.NodeRequest.Change.Name(request.change).lower(),
            extra={"node": place.id},
        )
        states = [state for state in self._states() if state.node.node == place.id]
        return admin_pb2.NodeReply(nodes=states, note=" ".join(notes))

    def _states(self) -> list[admin_pb2.NodeState]:
        """All nodes, by zone and name."""
        situation, seen = self._control.situation(), self._control.view.nodes
        held: Counter[int] = Counter()
        leaving: Counter[int] = Counter()
        for partition in situation.active:
            for place in partition.replicas:
                held[place.node] += 1
                leaving[place.node] += place.replica in partition.leaving
        leads = Counter(leader.node for leader in situation.leaders.values() if leader.serving)
        nodes = sorted(situation.topology.nodes.values(), key=lambda node: (node.zone, node.name, node.id))
        return [
            admin_pb2.NodeState(
                node=node_to_wire(node),
                state=situation.health.state(node.id),
                silent_seconds=int(situation.health.silent.get(node.id, 0)),
                replicas=held[node.id],
                leaving=leaving[node.id],
                leaders=leads[node.id],
                disk_free=seen[node.id].report.disk_free if node.id in seen else 0,
            )
            for node in nodes
        ]


def find(topology: Topology, name: str) -> NodePlace:
    """The node of this name or id. Raises Refused."""
    found = [node for node in topology.nodes.values() if name in (node.name, str(node.id))]
    if not found:
        gone = any(name in (node.name, str(node.id)) for node in topology.former_nodes.values())
        raise Refused(f"The node {name} was removed before." if gone else f"There is no node {name} in the cluster.")
    if len(found) > 1:
        ids = " and ".join(str(node.id) for node in found)
        raise Refused(f"There are several nodes {name}, with the ids {ids}: name one by its id.")
    return found[0]


def check_drain(situation: Situation, node: NodePlace) -> list[str]:
    """What to know if the node is emptied, which it is to be in this situation. Raises Refused when it cannot be."""
    homeless = elsewhere = 0
    for partition in situation.active:
        place = partition.replica_on(node.id)
        if place is None or place.replica in partition.leaving:
            continue
        able = choose(situation, partition, (place.replica,), Counter())
        staying = {other.zone for other in partition.wanted_voters if other is not place}
        homeless += not able
        elsewhere += bool(able) and situation.topology.nodes[able[0]].zone in staying
    if homeless:
        raise Refused(
            f"Node {node.name} cannot be drained: no other live node may take {homeless} of its replicas, "
            "as no node holds two of one partition."
        )
    if not elsewhere:
        return []
    return [
        f"Zone {node.zone} has no other node: "
        f"until it has one, {elsewhere} partitions will have two replicas in one zone."
    ]


def check_removal(situation: Situation, node: NodePlace) -> None:
    """Raises Refused when the node must not be forgotten."""
    held = sum(place.node == node.id for partition in situation.active for place in partition.replicas)
    if held:
        raise Refused(
            f"Node {node.name} still holds {held} replicas: drain it, and wait until `trizone node list` shows none."
        )
    if node.id not in situation.health.live:
        return
    if not node.draining:
        raise Refused(f"Node {node.name} is live and may be given replicas: drain it first.")
    ordered = sum(order.node == node.id for partition in situation.active for order in partition.dropping)
    if ordered:
        raise Refused(f"Node {node.name} is about to drop {ordered} replicas: try again in a moment.")
