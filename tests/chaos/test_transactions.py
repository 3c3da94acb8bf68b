"""Money is moved between accounts while processes are killed; none comes up or gets lost, and no account stays held."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
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
from tests.chaos.test_linearizability import WorkloadClient
from tests.simulation.checkers.bank import wrong_books
from tests.simulation.workloads.bank import ACCOUNTS, RECEIPTS, Bank, BankWorkload, table_definition

SEED = 20_267
CLIENTS = 16
ACCOUNTS_HELD = 50
REST_S = 0.03
FREE_S = 5.0
"""Within so long after the cluster is whole every account can be read together with all others."""


@pytest.mark.timeout(240)
async def test_money_survives_killed_leaders_and_routers(tmp_path: Path, report: Report) -> None:
    await moved_under_kills(tmp_path / "data", ["leader", "router", "frozen leader"], report)


@pytest.mark.slow
@pytest.mark.timeout(1200)
async def test_money_survives_whatever_is_killed(tmp_path: Path, report: Report) -> None:
    targets: tuple[Target, ...] = ("leader", "router", "frozen leader", "storage node")
    await moved_under_kills(tmp_path / "data", [*targets * 6, "all", "auto-admin", *targets], report)


async def moved_under_kills(data: Path, targets: Sequence[Target], report: Report) -> None:
    """Kill `targets` one after the other beside the bank, and look at its books."""
    bank = Bank(ACCOUNTS_HELD)
    async with running_cluster(data, "--routers", "2") as cluster:
        admin = _client(cluster, "admin")
        await create_table(admin)
        for name in (ACCOUNTS, RECEIPTS):
            await admin.call("CreateTable", table_definition(name))
        load = Load()  # tells the killer when the cluster serves again
        killer = Killer(cluster, load, Random(SEED))
        probes = [_client(cluster, f"probe-{number}") for number in range(3)]
        workloads = [
            BankWorkload(WorkloadClient(_client(cluster, f"client-{number}")), bank, Random(f"{SEED} {number}"))
            for number in range(CLIENTS)
        ]
        async with under_load(load, probes, SEED), working(workloads):
            for target in targets:
                report.say(f"transactions: {await killer.kill(target)}")
        await _look_at_all(workloads[0])
        items = [item for name in (ACCOUNTS, RECEIPTS) for item in await _scan(admin, name)]
    done = Counter(transfer.done for transfer in bank.transfers)
    report.say(f"transactions: {done[True]} done, {done[False]} refused, {done[None]} unclear, {bank.looks} looks")
    assert bank.wrong == []
    assert list(wrong_books(items, bank)) == []
    assert done[True] > 10 * len(targets)
    assert bank.looks > 0


@asynccontextmanager
async def working(workloads: Sequence[BankWorkload]) -> AsyncIterator[None]:
    """The clients work for as long as the block runs; each ends what it has begun."""
    over = asyncio.Event()

    async def work(workload: BankWorkload, random: Random) -> None:
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


async def _look_at_all(workload: BankWorkload) -> None:
    began = time.monotonic()
    while not await workload.look():
        assert time.monotonic() - began < FREE_S, "accounts stay held"
        await asyncio.sleep(0.1)


async def _scan(client: HttpClient, table: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    start: dict[str, Any] = {}
    while True:
        page = await client.call("Scan", {"TableName": table, "ConsistentRead": True, **start})
        items += page["Items"]
        if "LastEvaluatedKey" not in page:
            return items
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def _client(cluster: RealCluster, name: str) -> HttpClient:
    return HttpClient("127.0.0.1", cluster.port, name, Random(f"{SEED} {name}"))
