"""Admin/Nodes: listing, draining and removing storage nodes, with stand-ins for them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from cluster.topology import NodePlace
from cluster.wire import admin_pb2
from tests.integration.autoadmin_world import ADDRESS, FakeNode, World, described, until
from tests.unit.autoadmin_samples import CLUSTER, sample_table

SPARE = NodePlace(9, "a9", "us-east-1", "a", "127.0.0.1:9")


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World(create_timeout=60.0)
    made.nodes.append(FakeNode(made.network, SPARE))
    await made.start()
    yield made
    await made.stop()


async def _ask(world: World, node: str = "", change: int = 0, cluster_id: str = CLUSTER) -> admin_pb2.NodeReply:
    request = admin_pb2.NodeRequest(cluster_id=cluster_id, node=node)
    request.change = change  # type: ignore[assignment]
    return admin_pb2.NodeReply.FromString(
        await world.client.call(ADDRESS, "Admin/Nodes", request.SerializeToString(), 5)
    )


async def test_all_nodes_are_listed_with_what_they_hold(world: World) -> None:
    described(await world.call("CreateTable", "orders", sample_table()))
    reply = await _ask(world)
    assert [state.node.name for state in reply.nodes] == ["a1", "a9", "b1", "c1"]
    assert [state.state for state in reply.nodes] == ["live"] * 4
    assert [state.replicas for state in reply.nodes if state.node.zone != "a"] == [3, 3]
    assert sum(state.leaders for state in reply.nodes) == 3


async def test_a_node_is_drained_and_undrained(world: World) -> None:
    drained = await _ask(world, "a9", admin_pb2.NodeRequest.DRAIN)
    assert [state.state for state in drained.nodes] == ["draining"]
    assert world.admin.topology.nodes[9].draining
    await _ask(world, "a9", admin_pb2.NodeRequest.UNDRAIN)
    assert not world.admin.topology.nodes[9].draining


async def test_what_cannot_be_done_is_said(world: World) -> None:
    described(await world.call("CreateTable", "orders", sample_table()))
    note = (await _ask(world, "b1", admin_pb2.NodeRequest.DRAIN)).note
    assert note == "Zone b has no other node: until it has one, 3 partitions will have two replicas in one zone."
    await _ask(world, "b1", admin_pb2.NodeRequest.UNDRAIN)
    await world.nodes[3].close()
    await until(lambda: world.admin.live_nodes == 3)
    refused = await _ask(world, "b1", admin_pb2.NodeRequest.DRAIN)
    assert refused.error_message.startswith("Node b1 cannot be drained: no other live node may take")
    assert not world.admin.topology.nodes[2].draining
    unknown = await _ask(world, "z9", admin_pb2.NodeRequest.REMOVE)
    assert unknown.error_message == "There is no node z9 in the cluster."
    stranger = await _ask(world, cluster_id="c2")
    assert stranger.error_message == "This auto-admin is of cluster c1, not of c2."


async def test_a_removed_node_hears_of_it_and_is_not_heard(world: World) -> None:
    spare, other = world.nodes[3], world.nodes[0]
    await _ask(world, "a9", admin_pb2.NodeRequest.DRAIN)
    removed = await _ask(world, "a9", admin_pb2.NodeRequest.REMOVE)
    assert (removed.error_message, list(removed.nodes)) == ("", [])
    for node in (spare, other):
        await node.view.until(lambda topology: 9 in topology.former_nodes and 9 not in topology.nodes)
    await spare.close()
    await spare.connect()
    await spare.view.until(lambda topology: topology.at == world.admin.topology.at)
    assert world.admin.live_nodes == 3
    assert set(world.admin.topology.nodes) == {1, 2, 3}
