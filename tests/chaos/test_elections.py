"""Without faults nobody is elected, however busy the cluster is."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from random import Random

import pytest

from tests.chaos.conftest import Report
from tests.chaos.http_client import HttpClient
from tests.chaos.load import TABLE, create_table
from tests.chaos.real_cluster import RealCluster, running_cluster

SEED = 20_264
CONNECTIONS = 64
FILLING = "x" * 900


@pytest.mark.timeout(180)
async def test_no_election_under_load(tmp_path: Path, report: Report) -> None:
    await no_election(tmp_path / "data", 10.0, report)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_no_election_in_ten_minutes_of_load(tmp_path: Path, report: Report) -> None:
    await no_election(tmp_path / "data", 600.0, report)


async def no_election(data: Path, seconds: float, report: Report) -> None:
    """Keep every connection busy for so long; no partition may be in another epoch, or have another leader, after."""
    async with running_cluster(data) as cluster:
        admin = HttpClient("127.0.0.1", cluster.port, "admin", Random(SEED))
        await create_table(admin)
        before = {partition.id: (partition.epoch, partition.leader) for partition in await cluster.whole()}
        until = time.monotonic() + seconds
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_busy(cluster, number, until)) for number in range(CONNECTIONS)]
        requests = sum(task.result() for task in tasks)
        after = {partition.id: (partition.epoch, partition.leader) for partition in await cluster.whole()}
    report.say(f"elections: none in {seconds:g} s of {requests / seconds:.0f} requests/s" if before == after else "")
    assert requests > CONNECTIONS
    assert after == before


async def _busy(cluster: RealCluster, number: int, until: float) -> int:
    """One connection, puts and gets by turns, without a rest; how many requests it made."""
    client = HttpClient("127.0.0.1", cluster.port, f"busy-{number}", Random(f"{SEED} {number}"))
    requests = 0
    while time.monotonic() < until:
        key = {"id": {"S": f"busy-{number}-{requests % 100}"}}
        await client.call("PutItem", {"TableName": TABLE, "Item": {**key, "filling": {"S": FILLING}}})
        await client.call("GetItem", {"TableName": TABLE, "Key": key, "ConsistentRead": True})
        requests += 2
    await client.close()
    return requests
