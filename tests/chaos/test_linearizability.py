"""Clients work on a few items while nodes are killed; what they saw could have come from one copy."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.chaos.conftest import Report
from tests.chaos.http_client import HttpClient
from tests.chaos.kills import Killer, Target
from tests.chaos.load import Load, create_table, under_load
from tests.chaos.real_cluster import RealCluster, running_cluster
from tests.simulation.checkers.counters import wrong_counters
from tests.simulation.checkers.linearizability import check_item
from tests.simulation.checkers.reads import invented_reads
from tests.simulation.workloads.client import Reply
from tests.simulation.workloads.history import History
from tests.simulation.workloads.items import ItemWorkload, table_definition

SEED = 20_263
CLIENTS = 8
REST_S = 0.03
LEADER: Target = "leader"
FROZEN: Target = "frozen leader"


class WorkloadClient:
    """An HttpClient as the shared workloads want it."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    @property
    def name(self) -> str:
        """For the history."""
        return self._client.name

    async def call(self, operation: str, body: dict[str, Any]) -> Reply | None:
        """The reply, after retries with one invocation id; None when none of them brought a clear one."""
        outcome = await self._client.send(operation, body)
        if outcome.error is None:
            return None
        return Reply(outcome.error, outcome.body, outcome.doubtful, outcome.last_sent)


@pytest.mark.timeout(240)
async def test_items_are_linearizable_while_nodes_are_killed(tmp_path: Path, report: Report) -> None:
    await checked_under_kills(tmp_path / "data", [LEADER, FROZEN], report)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_items_are_linearizable_while_anything_is_killed(tmp_path: Path, report: Report) -> None:
    await checked_under_kills(tmp_path / "data", [*[LEADER, FROZEN] * 6, "auto-admin", "router", "all", LEADER], report)


async def checked_under_kills(data: Path, targets: Sequence[Target], report: Report) -> None:
    """Kill `targets` one after the other beside the shared mixed workload, and check its history."""
    history = History(time.monotonic)
    async with running_cluster(data, "--routers", "2") as cluster:
        admin = _client(cluster, "admin")
        await create_table(admin)
        await admin.call("CreateTable", table_definition())
        load = Load()  # tells the killer when the cluster serves again
        killer = Killer(cluster, load, Random(SEED))
        probes = [_client(cluster, f"probe-{number}") for number in range(3)]
        workloads = [
            ItemWorkload(WorkloadClient(_client(cluster, f"client-{number}")), history, Random(f"{SEED} {number}"))
            for number in range(CLIENTS)
        ]
        async with under_load(load, probes, SEED), working(workloads):
            for target in targets:
                report.say(f"linearizability: {await killer.kill(target)}")
        for key in sorted(set().union(*(workload.all_keys() for workload in workloads))):
            assert await workloads[0].read(key, consistent=True), f"{key} cannot be read"
    report.say(f"linearizability: {len(history.operations)} operations, {len(killer.kills)} kills")
    assert list(violations(history)) == []


@asynccontextmanager
async def working(workloads: Sequence[ItemWorkload]) -> AsyncIterator[None]:
    """The clients work for as long as the block runs; each ends what it has begun."""
    over = asyncio.Event()

    async def work(workload: ItemWorkload, random: Random) -> None:
        while not over.is_set():
            await workload.step()
            await asyncio.sleep(2 * REST_S * random.random())

    async with asyncio.TaskGroup() as group:
        for number, workload in enumerate(workloads):
            group.create_task(work(workload, Random(f"{SEED} rest {number}")))
        try:
            yield
        finally:
            over.set()


def violations(history: History) -> Iterator[str]:
    """Whatever the history shows that must never happen."""
    yield from history.unexpected
    for key, operations in history.strong_by_key():
        if stuck := check_item(operations):
            yield f"{key} is not linearizable:\n{stuck}"
    yield from wrong_counters(history.operations)
    yield from invented_reads(history.operations)


def _client(cluster: RealCluster, name: str) -> HttpClient:
    return HttpClient("127.0.0.1", cluster.port, name, Random(f"{SEED} {name}"))
