"""Auto-admin's members are killed and lose their disks while tables are made; then a router starts without them."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.chaos.conftest import Report
from tests.chaos.http_client import HttpClient
from tests.chaos.real_cluster import RealCluster, running_cluster, until
from tests.integration.launching import status_of

MEMBERS = ("auto-admin", "auto-admin-2", "auto-admin-3")
MAKERS = 2
LEADERS_KILLED = 1
MADE_BETWEEN = 2
PAUSE_S = 0.5
SEED = 20_262


class Makers:
    """Clients that make tables until told to stop, and what was acknowledged to them."""

    def __init__(self, cluster: RealCluster) -> None:
        self.made: list[str] = []
        self.stopped = False
        self._cluster = cluster

    async def run(self, number: int) -> None:
        """One client."""
        client = HttpClient("127.0.0.1", self._cluster.port, f"maker-{number}", Random(f"{SEED} {number}"))
        count = 0
        while not self.stopped:
            count += 1
            name = f"table-{number}-{count:03}"
            outcome = await client.send("CreateTable", _definition(name))
            if outcome.error is not None:
                # After an attempt without an answer the table may be this client's own.
                assert outcome.error in ("", "ResourceInUseException"), outcome
                assert not outcome.error or outcome.doubtful, outcome
                self.made.append(name)
            await asyncio.sleep(PAUSE_S)
        await client.close()

    async def more(self) -> None:
        """Return once some more tables were made."""
        wanted = len(self.made) + MADE_BETWEEN

        async def enough() -> bool:
            return len(self.made) >= wanted

        await until(enough, "tables are made", self.made)


def _definition(name: str) -> dict[str, Any]:
    return {
        "TableName": name,
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    }


async def roles(cluster: RealCluster) -> dict[str, str]:
    """What each member of auto-admin says it is."""
    status = await asyncio.to_thread(status_of, cluster.data)
    return {member["name"]: member["role"] for member in status["auto_admins"]}


async def whole(cluster: RealCluster) -> str:
    """Wait until one member leads and two follow; who leads."""
    seen: dict[str, str] = {}

    async def one_leads() -> str:
        seen.clear()
        seen.update(await roles(cluster))
        if sorted(seen.values()) != ["follower", "follower", "leader"]:
            return ""
        return next(name for name, role in seen.items() if role == "leader")

    return await until(one_leads, "one of auto-admin's members leads and two follow", seen)


async def tables(client: HttpClient) -> list[str]:
    """All tables' names."""
    names: list[str] = []
    start: dict[str, Any] = {}
    while True:
        answer = await client.call("ListTables", {"Limit": 100, **start})
        names += answer["TableNames"]
        if "LastEvaluatedTableName" not in answer:
            return names
        start = {"ExclusiveStartTableName": answer["LastEvaluatedTableName"]}


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_no_table_is_lost_and_routers_start_without_auto_admin(tmp_path: Path, report: Report) -> None:
    async with running_cluster(tmp_path / "data", "--auto-admins", "3") as cluster:
        assert await whole(cluster) in MEMBERS
        makers = Makers(cluster)
        async with asyncio.TaskGroup() as group:
            for number in range(MAKERS):
                group.create_task(makers.run(number))
            for _ in range(LEADERS_KILLED):
                await makers.more()
                leader = await whole(cluster)
                pid, _ = cluster.kill(leader)
                await cluster.replaced(leader, pid)
                await makers.more()
            leader = await whole(cluster)
            lost = next(name for name in MEMBERS if name != leader)
            shutil.rmtree(cluster.data / lost / "state")
            pid, _ = cluster.kill(lost)
            await cluster.replaced(lost, pid)
            await makers.more()
            leader = await whole(cluster)
            makers.stopped = True
        client = HttpClient("127.0.0.1", cluster.port, "reader", Random(SEED))
        found = await tables(client)
        assert len(set(found)) == len(found)
        assert set(makers.made) <= set(found)
        report.say(
            f"auto-admins: {len(makers.made)} tables made while {LEADERS_KILLED} leader died and {lost} lost all"
        )
        await _without_auto_admin(cluster, client, makers.made[0])
        await client.close()


async def _without_auto_admin(cluster: RealCluster, client: HttpClient, table: str) -> None:
    """A router that starts while nobody of auto-admin answers serves; tables cannot be changed meanwhile."""
    pids = cluster.pids()
    cluster.freeze([pids[name] for name in MEMBERS])
    try:
        pid, _ = cluster.kill("router-1")
        await cluster.replaced("router-1", pid)

        async def written() -> bool:
            outcome = await client.send("PutItem", {"TableName": table, "Item": {"id": {"S": "a"}, "n": {"N": "7"}}})
            return outcome.error == ""

        await until(written, "a router that has just started takes a write")
        got = await client.call("GetItem", {"TableName": table, "Key": {"id": {"S": "a"}}, "ConsistentRead": True})
        assert got["Item"]["n"] == {"N": "7"}
    finally:
        cluster.wake(pids[name] for name in MEMBERS)
    assert await whole(cluster) in MEMBERS
