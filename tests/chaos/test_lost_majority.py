"""Two of three disks are lost for good: by an explicit order the partitions go on with what the third one has."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path
from random import Random

import pytest

from tests.chaos.conftest import Report
from tests.chaos.http_client import HttpClient
from tests.chaos.load import TABLE, create_table
from tests.chaos.real_cluster import running_cluster
from tests.chaos.replicas import differing_replicas
from tests.integration.launching import finished

SURVIVOR, LOST = "us-east-1a-1", ("us-east-1b-1", "us-east-1c-1")
ITEMS = 60
SEED = 20_266


def put_of(number: int) -> dict[str, object]:
    """The body of a PutItem."""
    return {"TableName": TABLE, "Item": {"id": {"S": f"item-{number}"}, "value": {"N": str(number)}}}


def recover(data: Path, *arguments: str) -> tuple[int, str, str]:
    """`trizone node recover` for the survivor: exit code and what it printed."""
    done = finished("node", "recover", SURVIVOR, "--data", str(data), *arguments)
    return done.returncode, done.stdout, done.stderr


def orders_from(listing: str) -> list[str]:
    """The options that name every replica that was listed."""
    names = [line.split()[1] for line in listing.splitlines()]
    return [option for name in names for option in ("--partition", name)]


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_partitions_that_lost_their_majority_go_on_by_order(tmp_path: Path, report: Report) -> None:
    data = tmp_path / "data"
    async with running_cluster(data) as cluster:
        client = HttpClient("127.0.0.1", cluster.port, "client", Random(SEED))
        await create_table(client)
        for number in range(ITEMS):
            await client.call("PutItem", put_of(number))
        await cluster.whole()
        running = await asyncio.to_thread(recover, data)
        assert running[0] == 1
        assert "in use by another storage node. Stop the node first." in running[2]
        await client.close()
    for node in LOST:
        shutil.rmtree(data / "nodes" / node)
    code, listing, _ = recover(data)
    assert code == 0
    orders = orders_from(listing)
    code, _, warned = recover(data, *orders)
    assert code == 1
    assert "us-east-1b-1 and us-east-1c-1" in warned
    assert "Say --unsafe to do it" in warned
    assert recover(data)[1] == listing, "nothing was changed"
    code, said, _ = recover(data, *orders, "--unsafe")
    assert (code, said.split()[0]) == (0, str(len(orders) // 2))
    async with running_cluster(data, "--replace-after", "4") as cluster:
        began = time.monotonic()
        client = HttpClient("127.0.0.1", cluster.port, "client", Random(SEED))
        for number in range(ITEMS):
            key = {"TableName": TABLE, "Key": {"id": {"S": f"item-{number}"}}, "ConsistentRead": True}
            assert (await client.call("GetItem", key)).get("Item") == put_of(number)["Item"]
        await client.call("PutItem", put_of(ITEMS))
        served = time.monotonic() - began
        await cluster.whole()
        report.say(
            f"lost majority: read and written after {served:.1f} s, whole after {time.monotonic() - began:.1f} s"
        )
        await client.close()
    assert list(differing_replicas(data)) == []
