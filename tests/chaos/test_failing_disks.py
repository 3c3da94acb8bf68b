"""Real processes whose disks fail, stall and fill up: one sentence, nothing lost, and back once the disk is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.chaos.failing_disk import FailingDisk
from tests.chaos.http_client import HttpClient
from tests.chaos.keys import key_in
from tests.chaos.load import create_table
from tests.chaos.real_cluster import PartitionView, RealCluster, running_cluster, until
from tests.chaos.test_durability import client_of, get_of, put_of

HANDED_OVER_S = 8.0
"""A stall lasts longer than this: whoever answers before it is over is not the one that stalls."""


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FailingDisk:
    """Every process that the test starts is subject to it."""
    disk = FailingDisk(tmp_path)
    disk.compile()
    for name, value in disk.environment().items():
        monkeypatch.setenv(name, value)
    return disk


@pytest.fixture
async def cluster(tmp_path: Path, disk: FailingDisk) -> AsyncIterator[RealCluster]:
    """A cluster with an empty table."""
    async with running_cluster(tmp_path / "data") as cluster:
        client = client_of(cluster)
        await create_table(client)
        await client.close()
        yield cluster
        disk.set()


def said(cluster: RealCluster, *texts: str) -> bool:
    assert cluster.up is not None
    return any(all(text in line for text in texts) for line in cluster.up.lines)


async def put_all(client: HttpClient, partition: PartitionView, name: str, count: int = 10) -> list[str]:
    keys = [key_in(partition, f"{name}-{number}-of") for number in range(count)]
    for key in keys:
        await client.call("PutItem", put_of(key))
    return keys


async def require(client: HttpClient, keys: list[str]) -> None:
    for key in keys:
        found = await client.call("GetItem", get_of(key))
        assert found.get("Item") == put_of(key)["Item"], f"{key} is lost"


async def test_a_leader_whose_log_cannot_be_synced_stops_loudly_and_comes_back(
    cluster: RealCluster, disk: FailingDisk
) -> None:
    partition, pids = (await cluster.whole())[0], cluster.pids()
    victim, client = str(partition.leader), client_of(cluster)
    keys = await put_all(client, partition, "before")
    disk.set(f"fdatasync EIO 0 {victim}/log/")
    keys += await put_all(client, partition, "meanwhile")

    async def told() -> bool:
        return said(cluster, victim, "The storage node stops: the log cannot be written")

    await until(told, "the node says that its log cannot be written")
    await require(client, keys)
    disk.set()
    await cluster.replaced(victim, pids[victim])
    await cluster.whole()
    await require(client, keys)
    await client.close()


async def test_a_leader_whose_syncs_stall_lets_another_lead(cluster: RealCluster, disk: FailingDisk) -> None:
    partition, pids = (await cluster.whole())[0], cluster.pids()
    victim, client = str(partition.leader), client_of(cluster)
    keys = await put_all(client, partition, "before")
    disk.set(f"fdatasync stall 60 {victim}/log/")
    began = time.monotonic()
    async with asyncio.timeout(HANDED_OVER_S * 5):
        keys += await put_all(client, partition, "meanwhile")
    assert time.monotonic() - began < 60, "nobody answered before the stall was over"
    await require(client, keys)
    disk.set()
    views = await cluster.whole()
    assert cluster.pids()[victim] == pids[victim], "a stall is no reason to stop"
    assert len(views) == len(await cluster.partitions())
    await client.close()


async def test_a_node_on_a_full_disk_waits_for_room_when_it_starts(cluster: RealCluster, disk: FailingDisk) -> None:
    partition, pids = (await cluster.whole())[0], cluster.pids()
    victim, client = partition.followers[0], client_of(cluster)
    keys = await put_all(client, partition, "before")
    disk.set(*(f"{call} ENOSPC 0 nodes/{victim}/" for call in ("pwrite", "fallocate")))
    cluster.kill(victim)
    pid = await cluster.replaced(victim, pids[victim])

    async def told() -> bool:
        return said(cluster, victim, "is full", "the node starts once there is room")

    await until(told, "the node says that its disk is full")
    keys += await put_all(client, partition, "meanwhile")
    assert cluster.pids()[victim] == pid, "it waits, and is not started again and again"
    disk.set()
    await cluster.whole()
    assert cluster.pids()[victim] == pid
    await require(client, keys)
    await client.close()
