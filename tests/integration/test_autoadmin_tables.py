"""Tables made, changed and dropped through auto-admin, over the in-memory network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from autoadmin.state import MemoryState
from autoadmin.view import SILENT_SECONDS
from cluster.topology import PartitionState, Topology
from tests.integration.autoadmin_world import World, described, until
from tests.unit.autoadmin_samples import sample_table


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World(create_timeout=60.0)
    await made.start()
    yield made
    await made.stop()


def _creating(topology: Topology) -> bool:
    table = topology.table_named("orders")
    return table is not None and table.status == "CREATING"


def _nothing_left(topology: Topology) -> bool:
    return not topology.tables and not topology.partitions


async def test_a_created_table_is_led_everywhere_when_it_is_answered(world: World) -> None:
    reply = await world.call("CreateTable", "orders", sample_table())
    table = described(reply)
    assert (table.name, table.status, table.schema_version) == ("orders", "ACTIVE", 1)
    assert (reply.epoch, reply.version) == world.admin.topology.at
    partitions = world.admin.topology.partitions_of(table.id)
    assert len(partitions) == 3
    for node in world.nodes:
        await node.view.until(lambda topology: topology.version >= reply.version)
        assert node.view.topology.table(table.id) == table
        assert len(node.view.topology.partitions_on(node.place.id)) == 3


async def test_a_creation_waits_for_the_last_leader(world: World) -> None:
    late = world.nodes[2]
    late.leads = False
    creation = asyncio.create_task(world.call("CreateTable", "orders", sample_table()))
    for node in world.nodes:
        await node.view.until(_creating)
    await late.report()
    assert (await world.status()).catalog.tables[0].name == "orders"
    assert not creation.done()
    late.leads = True
    await late.report()
    assert described(await creation).status == "ACTIVE"


async def test_a_creation_that_takes_too_long_is_answered_as_being_created() -> None:
    world = World(create_timeout=0.01)
    await world.start()
    for node in world.nodes:
        node.leads = False
    assert described(await world.call("CreateTable", "orders", sample_table())).status == "CREATING"
    again = await world.call("CreateTable", "orders", sample_table())
    assert (again.error_type, again.error_message) == ("ResourceInUseException", "Table already exists: orders")
    deletion = await world.call("DeleteTable", "orders")
    assert deletion.error_type == "ResourceInUseException"
    await world.stop()


async def test_of_two_creations_of_one_name_one_wins(world: World) -> None:
    replies = await asyncio.gather(*(world.call("CreateTable", "orders", sample_table()) for _ in range(5)))
    errors = [reply.error_message for reply in replies if reply.error_type]
    assert errors == ["Table already exists: orders"] * 4
    assert len(world.admin.topology.partitions) == 3


async def test_an_unfinished_creation_goes_on_after_a_restart(world: World) -> None:
    for node in world.nodes:
        node.leads = False
    creation = asyncio.create_task(world.call("CreateTable", "orders", sample_table()))
    for node in world.nodes:
        await node.view.until(_creating)
    await world.kill()
    with pytest.raises(Exception, match="failed"):
        await creation
    for node in world.nodes:
        node.leads = True
    await world.restart()
    for node in world.nodes:
        await node.view.until(lambda topology: not _creating(topology))
    table = world.admin.topology.table_named("orders")
    assert table is not None
    assert table.status == "ACTIVE"


async def test_a_missing_zone_is_told_and_nothing_is_made(world: World) -> None:
    await world.nodes[1].close()
    await until(lambda: world.admin.live_nodes == 2)
    reply = await world.call("CreateTable", "orders", sample_table())
    assert reply.error_type == "InternalServerError"
    assert "those with one are: a, c." in reply.error_message
    assert not world.admin.topology.tables


async def test_a_frozen_node_gets_no_replicas(world: World) -> None:
    world.clock.now += SILENT_SECONDS + 1
    for node in world.nodes[:2]:
        await node.report()
    await until(lambda: world.admin.live_nodes == 2)
    reply = await world.call("CreateTable", "orders", sample_table())
    assert reply.error_type == "InternalServerError"
    assert [report.node.name for report in (await world.status()).nodes] == ["a1", "b1"]


async def test_a_deleted_table_is_dropped_everywhere_and_its_name_is_free_at_once(world: World) -> None:
    for node in world.nodes:
        node.drops = False
    made = described(await world.call("CreateTable", "orders", sample_table()))
    gone = described(await world.call("DeleteTable", "orders"))
    assert gone == msgspec.structs.replace(made, status="DELETING")
    missing = await world.call("DeleteTable", "orders")
    assert missing.error_type == "ResourceNotFoundException"
    assert missing.error_message == "Requested resource not found: Table: orders not found"
    again = described(await world.call("CreateTable", "orders", sample_table()))
    assert again.id != made.id

    orders = [partition for partition in world.admin.topology.partitions.values() if partition.table == made.id]
    assert [len(partition.replicas) for partition in orders] == [3, 3, 3]
    assert {partition.state for partition in orders} == {PartitionState.DROPPED}
    described(await world.call("DeleteTable", "orders"))
    for node in world.nodes:
        node.drops = True
        await node.report()
    for node in world.nodes:
        await node.view.until(_nothing_left)


async def test_an_unfinished_deletion_goes_on_after_a_restart(world: World) -> None:
    described(await world.call("CreateTable", "orders", sample_table()))
    world.nodes[0].drops = False
    described(await world.call("DeleteTable", "orders"))
    slow = {world.nodes[0].place.id}
    await world.nodes[0].view.until(
        lambda topology: all(
            {place.node for place in partition.replicas} == slow for partition in topology.partitions.values()
        )
    )
    await world.kill()
    await world.restart()
    assert len(world.admin.topology.partitions) == 3
    world.nodes[0].drops = True
    await world.nodes[0].report()
    for node in world.nodes:
        await node.view.until(_nothing_left)


async def test_a_change_reaches_everyone_and_a_stale_one_is_a_conflict(world: World) -> None:
    table = described(await world.call("CreateTable", "orders", sample_table()))
    wanted = msgspec.structs.replace(table, ttl_attribute="expires")
    changed = described(await world.call("UpdateTable", "orders", wanted, schema_version=1))
    assert changed == msgspec.structs.replace(wanted, schema_version=2)
    for node in world.nodes:
        await node.view.until(lambda topology: topology.table_named("orders") == changed)
    stale = await world.call("UpdateTable", "orders", wanted, schema_version=1)
    assert stale.error_type == "Conflict"


async def test_a_full_disk_is_an_error_and_changes_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    before = world.admin.topology
    with monkeypatch.context() as patch:
        patch.setattr(MemoryState, "write", full)
        reply = await world.call("CreateTable", "orders", sample_table())
        assert reply.error_type == "InternalServerError"
        assert world.admin.topology is before
    for node in world.nodes:  # auto-admin begins anew with what is durable
        await node.ended.wait()
        await node.connect()
    await until(lambda: world.admin.live_nodes == len(world.nodes))
    assert described(await world.call("CreateTable", "orders", sample_table())).status == "ACTIVE"
