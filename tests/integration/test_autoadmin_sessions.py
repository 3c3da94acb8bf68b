"""Nodes' sessions with auto-admin, routers' watches, restarts and a lost disk."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from autoadmin.adoption import WAIT_SECONDS
from autoadmin.state import MemoryState
from cluster.topology import Topology
from cluster.wire import admin_pb2, common_pb2
from tests.integration.autoadmin_world import ADDRESS, FakeNode, Watched, World, described, until
from tests.unit.autoadmin_samples import CLUSTER, nodes, sample_table


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World(create_timeout=60.0)
    await made.start()
    yield made
    await made.stop()


async def test_a_session_begins_with_the_whole_and_goes_on_with_differences(world: World) -> None:
    node = world.nodes[0]
    assert node.view.updates[0].from_version == 0
    described(await world.call("CreateTable", "orders", sample_table()))
    await node.view.until(lambda topology: topology.version >= world.admin.topology.version)
    later = node.view.updates[1:]
    assert later
    assert all(update.from_version > 0 for update in later)
    assert node.view.topology.full() == world.admin.topology.full()


async def test_a_node_that_lost_its_place_gets_the_whole_again(world: World) -> None:
    node = world.nodes[0]
    described(await world.call("CreateTable", "orders", sample_table()))
    await node.view.until(lambda topology: topology.at == world.admin.topology.at)
    node.view.topology = Topology()
    await node.report()
    await node.view.until(lambda topology: topology.full() == world.admin.topology.full())
    assert node.view.updates[-1].from_version == 0


async def test_a_node_that_comes_back_with_another_address_is_the_same_node(world: World) -> None:
    node = world.nodes[0]
    await node.close()
    node.place = replace(node.place, address="127.0.0.1:99", metrics="127.0.0.1:98")
    await node.connect()
    for other in world.nodes:
        await other.view.until(lambda topology: topology.nodes[node.place.id].address == "127.0.0.1:99")
    assert len(world.admin.topology.nodes) == 3


async def test_the_newest_session_of_a_node_counts(world: World) -> None:
    first = world.nodes[0]
    second = FakeNode(world.network, first.place)
    await second.connect()
    await first.ended.wait()
    await second.view.until(lambda topology: topology.version >= world.admin.topology.version)
    assert world.admin.live_nodes == 3
    await second.close()
    await until(lambda: world.admin.live_nodes == 2)


async def test_a_node_of_another_cluster_is_refused_and_the_log_says_so_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = FakeNode(world.network, replace(nodes()[0], id=77, name="stranger"))
    stranger.cluster_id = "c2"
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            await stranger.connect()
            await stranger.ended.wait()
    assert stranger.view.updates == []
    assert 77 not in world.admin.topology.nodes
    refusals = [record.getMessage() for record in caplog.records if "is refused" in record.getMessage()]
    assert refusals == [
        f"storage node stranger at {nodes()[0].address} is refused: it is of cluster c2, and this auto-admin of c1"
    ]


async def _read(stream: object, watched: Watched) -> None:
    while (message := await stream.receive()) is not None:  # type: ignore[attr-defined]
        await watched.take(message)


async def test_a_watch_follows_and_starts_again_when_asked(world: World) -> None:
    stream, watched = await world.watch()
    reading = asyncio.create_task(_read(stream, watched))
    described(await world.call("CreateTable", "orders", sample_table()))
    await watched.until(lambda topology: topology.full() == world.admin.topology.full())
    seen = len(watched.updates)
    assert [router.name for router in (await world.status()).routers] == ["router-1"]

    await stream.send(admin_pb2.WatchRequest(cluster_id=CLUSTER).SerializeToString())
    await until(lambda: len(watched.updates) > seen)
    assert watched.updates[-1].from_version == 0
    assert watched.updates[-1].version == world.admin.topology.version
    stream.close()
    await reading
    await until(lambda: not world.admin.routers)


async def test_a_watcher_that_is_up_to_date_hears_so(world: World) -> None:
    epoch, version = world.admin.topology.at
    stream, watched = await world.watch(epoch, version)
    message = await stream.receive()
    assert message is not None
    update = common_pb2.CatalogUpdate.FromString(message)
    assert (update.from_version, update.version, len(update.nodes)) == (version, version, 0)
    assert not watched.updates
    stream.close()


async def test_a_refresh_gives_what_the_caller_lacks(world: World) -> None:
    before = world.admin.topology
    described(await world.call("CreateTable", "orders", sample_table()))
    request = admin_pb2.WatchRequest(cluster_id=CLUSTER, epoch=before.epoch, version=before.version)
    answer = await world.client.call(ADDRESS, "Admin/Refresh", request.SerializeToString(), 5)
    update = common_pb2.CatalogUpdate.FromString(answer)
    assert update.from_version == before.version
    assert [record.name for record in update.tables] == ["orders"]
    assert len(update.nodes) == 0


async def test_a_restarted_auto_admin_knows_what_it_knew(world: World) -> None:
    described(await world.call("CreateTable", "orders", sample_table()))
    before = world.admin.topology.full()
    await world.kill()
    await world.restart()
    assert world.admin.topology.full() == before
    status = await world.status()
    assert [record.name for record in status.catalog.tables] == ["orders"]
    assert described(await world.call("CreateTable", "more", sample_table("more"))).id == 2


def _led_by(topology: Topology) -> bool:
    return topology.epoch == 2


async def _lose_disk(world: World) -> None:
    await world.kill()
    world.store = MemoryState()


async def test_a_lost_disk_is_made_good_from_the_nodes_copies(world: World) -> None:
    made = described(await world.call("CreateTable", "orders", sample_table()))
    for node in world.nodes:
        await node.view.until(lambda topology: topology.at == world.admin.topology.at)
    before = world.admin.topology
    await _lose_disk(world)
    await world.restart()
    for node in world.nodes:
        await node.view.until(_led_by)
    assert world.admin.topology.tables == before.tables
    assert world.admin.topology.partitions == before.partitions
    assert world.admin.topology.table_named("orders") == made
    assert described(await world.call("CreateTable", "more", sample_table("more"))).id > made.id


async def test_a_router_never_hears_the_empty_catalog_of_a_lost_disk(world: World) -> None:
    described(await world.call("CreateTable", "orders", sample_table()))
    for node in world.nodes:
        await node.view.until(lambda topology: topology.at == world.admin.topology.at)
    await _lose_disk(world)
    others, world.nodes = world.nodes, []
    await world.restart()
    stream, watched = await world.watch()
    for node in others:
        await node.ended.wait()
        await node.connect()
    first = await stream.receive()
    assert first is not None
    await watched.take(first)
    assert watched.topology.table_named("orders") is not None


async def test_no_table_is_changed_and_a_missing_node_is_awaited_before_a_copy_is_adopted(world: World) -> None:
    described(await world.call("CreateTable", "orders", sample_table()))
    for node in world.nodes:
        await node.view.until(lambda topology: topology.at == world.admin.topology.at)
    await _lose_disk(world)
    missing, *others = world.nodes
    world.nodes = others
    await world.restart()
    await until(lambda: world.admin.live_nodes == 2)
    refused = await world.call("CreateTable", "more", sample_table("more"))
    assert refused.error_type == "InternalServerError"
    assert "lost its catalog" in refused.error_message
    assert world.admin.topology.epoch == 1

    world.clock.now += WAIT_SECONDS
    await others[0].report()
    for node in others:
        await node.view.until(_led_by)
    await missing.ended.wait()
    await missing.connect()
    await missing.view.until(_led_by)
    assert described(await world.call("CreateTable", "more", sample_table("more"))).status == "ACTIVE"
