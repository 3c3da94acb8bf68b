"""What the storms found and is too large for a unit test, each brought about on purpose."""

from __future__ import annotations

import asyncio
from typing import Any

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
