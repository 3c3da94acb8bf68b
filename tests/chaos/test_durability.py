"""An acknowledged write is on the disks of two nodes before its reply leaves, and one lost disk loses nothing."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.chaos.conftest import Report
from tests.chaos.http_client import HttpClient
from tests.chaos.keys import key_in
from tests.chaos.load import TABLE, Load, create_table, under_load, values_found
from tests.chaos.real_cluster import RealCluster, running_cluster, until
from tests.chaos.system_calls import SystemCall, Tracer, flushed_at, sent_at

SEED = 20_262
FROZEN_S = 3.0
"""For so long no put may be acknowledged while no follower can store it."""
MISSED_ROUNDS, MISSED_PUTS = 2, 10
TRACED_PUTS = 12
ITEMS = 400


def put_of(key: str, value: int = 1) -> dict[str, Any]:
    """The body of a PutItem."""
    return {"TableName": TABLE, "Item": {"id": {"S": key}, "value": {"N": str(value)}}}


def get_of(key: str) -> dict[str, Any]:
    """The body of a strongly consistent GetItem."""
    return {"TableName": TABLE, "Key": {"id": {"S": key}}, "ConsistentRead": True}


def client_of(cluster: RealCluster, name: str = "client") -> HttpClient:
    """A client of the cluster."""
    return HttpClient("127.0.0.1", cluster.port, name, Random(f"{SEED} {name}"))


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[RealCluster]:
    """A cluster with an empty table."""
    async with running_cluster(tmp_path / "data") as cluster:
        client = client_of(cluster)
        await create_table(client)
        await client.close()
        yield cluster


async def test_nothing_is_acknowledged_while_both_followers_are_stopped(cluster: RealCluster) -> None:
    partitions = await cluster.whole()
    partition, pids = partitions[0], cluster.pids()
    key = key_in(partition, "held-back")
    client = client_of(cluster)
    frozen = [pids[node] for node in partition.followers]
    assert len(frozen) == 2
    cluster.freeze(frozen)
    put = asyncio.create_task(client.call("PutItem", put_of(key)))
    done, _ = await asyncio.wait([put], timeout=FROZEN_S)
    cluster.wake(frozen)
    assert not done, "a put was answered without a follower's disk"
    await put
    found = await client.call("GetItem", get_of(key))
    assert found["Item"] == put_of(key)["Item"]
    await client.close()


async def test_a_follower_that_missed_writes_does_not_lead_without_them(cluster: RealCluster) -> None:
    client = client_of(cluster)
    for number in range(MISSED_ROUNDS):
        partition, pids = (await cluster.whole())[0], cluster.pids()
        behind, leader = partition.followers[number % 2], str(partition.leader)
        keys = [key_in(partition, f"missed-{number}-{index}-by-one") for index in range(MISSED_PUTS)]
        cluster.freeze([pids[behind]])
        for key in keys:
            await client.call("PutItem", put_of(key))
        cluster.kill(leader)
        cluster.wake([pids[behind]])
        for key in keys:
            found = await client.call("GetItem", get_of(key))
            assert found.get("Item") == put_of(key)["Item"], f"round {number}: {key} is lost"
        await cluster.replaced(leader, pids[leader])
    await client.close()


async def test_no_reply_precedes_the_flushes_of_two_nodes(cluster: RealCluster, tmp_path: Path) -> None:
    nodes = sorted({node for partition in await cluster.whole() for node in partition.positions})
    pids = cluster.pids()
    tracers = {name: Tracer(pids[name], tmp_path / f"{name}.strace") for name in [*nodes, "router-1"]}
    try:
        refusals = [await tracer.attach() for tracer in tracers.values()]
        sent = {} if any(refusals) else await _put_one_by_one(cluster)
    finally:
        calls = {name: await tracer.detach() for name, tracer in tracers.items()}
    if any(refusals):
        pytest.skip(f"strace cannot attach: {next(filter(None, refusals))}")
    for marker, at in sent.items():
        replied = sent_at(calls["router-1"], "HTTP/1.1 200", at)
        assert replied is not None, f"the reply to {marker} was not seen"
        flushed = _flushes(calls, nodes, marker, replied)
        assert len(flushed) >= 2, f"{marker} was answered when it was on the disks of {flushed} only"


async def _put_one_by_one(cluster: RealCluster) -> dict[str, float]:
    """One put after the other, none while another is under way; when each was sent (wall clock), by its key."""
    client = client_of(cluster)
    sent = {}
    for number in range(TRACED_PUTS):
        marker = f"traced-put-number-{number}-of-many"
        sent[marker] = time.time()
        await client.call("PutItem", put_of(marker))
    await client.close()
    return sent


def _flushes(calls: dict[str, list[SystemCall]], nodes: list[str], marker: str, before: float) -> list[str]:
    times = {node: flushed_at(calls[node], marker) for node in nodes}
    return [node for node, at in times.items() if at is not None and at <= before]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("everything", [False, True])
async def test_any_one_data_directory_may_be_lost(tmp_path: Path, report: Report, everything: bool) -> None:
    kept = tmp_path / "data"
    async with running_cluster(kept) as cluster:
        client = client_of(cluster)
        await create_table(client)
        load = Load()
        async with under_load(load, [client_of(cluster, f"writer-{number}") for number in range(8)], SEED):
            await until(lambda: _written(load), f"{ITEMS} writes")
        partitions = await cluster.whole()
        leader = str(partitions[0].leader)
        nodes = sorted(partitions[0].positions)
        await client.close()
    victims = ["auto-admin", *(f"nodes/{node}" for node in (nodes if everything else [leader]))]
    for victim in victims:
        data = tmp_path / f"without-{victim.replace('/', '-')}"
        copy = ["cp", "-a", "--sparse=always", str(kept), str(data)]
        await asyncio.to_thread(subprocess.run, copy, check=True)
        shutil.rmtree(data / victim)
        began = time.monotonic()
        async with running_cluster(data, port=cluster.port) as damaged:
            client = client_of(damaged)
            items, counters = await values_found(client)
            assert load.ledger.faults_of_items(items) == [], f"without {victim}"
            assert load.ledger.faults_of_counters(counters) == [], f"without {victim}"
            await client.call("PutItem", put_of("afterwards", 7))
            report.say(f"without {victim}: all there and writable after {time.monotonic() - began:.1f} s")
            await client.close()
        shutil.rmtree(data)


async def _written(load: Load) -> bool:
    return len(load.acknowledged) >= ITEMS
