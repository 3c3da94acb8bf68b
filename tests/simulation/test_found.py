"""What the storms found and is too large for a unit test, each brought about on purpose."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from replication.changes import AddLearner
from replication.membership import Member
from tests.simulation.snapshot_cluster import SnapshotCluster, run
from tests.simulation.test_snapshots import follower


def definition(table: str) -> dict[str, Any]:
    return {
        "TableName": table,
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    }


def test_a_full_disk_that_has_no_room_for_the_catalogs_copy_does_not_end_a_node() -> None:
    async def story(made: SnapshotCluster) -> None:
        await made.start()
        member = made.node(follower(made))
        life = member.lives
        member.disk.fill(0)
        await made.client.call("CreateTable", definition("more"))
        await asyncio.sleep(3.0)
        member.disk.capacity = None
        await made.settle()
        assert member.lives == life
        made.check()

    run(21, story)


def test_a_crash_does_not_bring_back_a_replica_that_was_dropped() -> None:
    """It goes once the order is on the disk: an older one, to hold the replica, would be followed at the start."""

    async def story(made: SnapshotCluster) -> None:
        await made.start()
        await made.client.call("CreateTable", definition("more"))
        await made.settle()
        member = made.node("node-b")
        _, of_all_else = member.executors
        of_all_else.stall()
        await made.client.call("DeleteTable", {"TableName": "more"})
        await asyncio.sleep(0.5)
        assert member.node is not None
        assert not member.node.log.pending()
        await member.crash()
        member.start()
        await made.settle()
        made.check()

    run(22, story)


def test_a_change_of_members_that_was_cut_short_does_not_keep_a_replica_of_a_table_that_is_deleted() -> None:
    """Nobody is left to agree on it, and nobody but the replica itself knows of it."""

    async def story(made: SnapshotCluster) -> None:
        await made.start()
        await made.client.call("CreateTable", definition("more"))
        await made.settle()
        cluster, network = made.cluster, made.cluster.network
        names = [member.name for member in cluster.nodes]
        name, hosted = next(
            (name, each)
            for name in names
            for each in made.hosted(name)
            if each.serving and each.partition.schema is not None and each.partition.schema.name == "more"
        )
        for member in cluster.members:
            if member.name != name:
                network.cut(name, member.name)
        agreed, node = hosted.replica.membership, made.node(name).node
        assert node is not None
        hosted.perform(hosted.replica.change(AddLearner(Member(1 << 30, 1 << 30)), node.clock.boottime()))
        assert hosted.replica.membership.version > agreed.version
        await made.client.call("DeleteTable", {"TableName": "more"})
        gone = partial(holds_none, made, hosted.partition_id)
        assert await cluster.until(lambda: gone([other for other in names if other != name]), 20.0)
        assert hosted.replica.membership.version > hosted.replica.committed_membership.version
        network.mend()
        assert await cluster.until(lambda: gone(names), 20.0)
        await made.settle()
        made.check()

    run(23, story)


def holds_none(made: SnapshotCluster, partition: int, names: list[str]) -> bool:
    """Whether no node of these holds a replica of the partition."""
    return not any(hosted.partition_id == partition for name in names for hosted in made.hosted(name))
