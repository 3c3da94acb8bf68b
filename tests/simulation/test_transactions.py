"""Transactions while everything breaks, and while one thing breaks at every step of theirs."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from router.gateway import Answer, Received
from tests.simulation.checkers.bank import all_items, marks_left
from tests.simulation.checkers.replicas import converged, describe, unequal_replicas
from tests.simulation.client import SimulatedClient
from tests.simulation.cluster import Member, SimulatedCluster
from tests.simulation.scenarios.bank import FREE_SECONDS, Plan, run_bank, start
from tests.simulation.transaction_mutants import MUTANTS, PLANS, seeds_until_found
from tests.simulation.virtual_loop import run_virtual
from tests.simulation.workloads.bank import ACCOUNTS, RECEIPTS

MUTANT_SEEDS = range(1, 13)
QUICK = ("answer_before_the_parts_have_applied", "checks_that_hold_nothing")
"""Found with the first seeds."""
ITEMS = 6
STEP_SECONDS = 0.001
STEPS = 24
"""Crashes come after so many steps of this length: a transaction takes about 18 ms."""


@pytest.mark.parametrize("seed", range(1, 6))
def test_money_neither_comes_up_nor_gets_lost(seed: int) -> None:
    """Nor is anything else wrong that transactions of all kinds can show."""
    outcome = run_bank(seed, Plan(seconds=20))
    assert not outcome.violations, outcome.report()
    assert outcome.transfers[True] >= 20
    assert outcome.looks >= 5
    assert outcome.duty.left >= 5
    assert outcome.transactions >= 40


@pytest.mark.parametrize("name", QUICK)
def test_what_is_wrong_is_found(name: str) -> None:
    assert seeds_until_found(name, MUTANT_SEEDS)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [name for name in MUTANTS if name not in QUICK])
def test_all_that_is_wrong_is_found(name: str) -> None:
    assert seeds_until_found(name, MUTANT_SEEDS)


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANS)
def test_without_its_mutant_a_plan_finds_nothing(name: str) -> None:
    outcome = run_bank(1, PLANS[name])
    assert not outcome.violations, outcome.report()


@pytest.mark.parametrize("victim", ["router", "node-a", "node-b", "node-c"])
def test_a_crash_at_any_step_leaves_a_transaction_whole(victim: str) -> None:
    with tempfile.TemporaryDirectory(prefix="trizone-simulation-") as folder:
        cluster = SimulatedCluster(1, Path(folder), routers=2)
        with cluster.agreed.watch():
            answers = run_virtual(_crash_at_every_step(cluster, victim))
    assert answers[-1] == "200", "the steps do not reach to the end of the transaction"
    if victim == "router":
        assert answers[:5] == ["no answer"] * 5, "the steps do not begin before the transaction's end"


async def _crash_at_every_step(cluster: SimulatedCluster, victim: str) -> list[str]:
    await start(cluster, SimulatedClient(cluster, "client"))
    member = cluster.routers[0] if victim == "router" else next(each for each in cluster.nodes if each.name == victim)
    answers = [await _trial(cluster, member, number) for number in range(STEPS)]
    assert not list(unequal_replicas(cluster))
    assert not cluster.failures
    await cluster.close()
    return answers


async def _trial(cluster: SimulatedCluster, victim: Member, number: int) -> str:
    """Do a transaction, crash `victim` after that many steps, and see that all comes right. What it was answered."""
    names = [f"{number}-{index}" for index in range(ITEMS)]
    answered = asyncio.ensure_future(_request(cluster, names))
    await asyncio.sleep(number * STEP_SECONDS)
    await victim.crash()
    await asyncio.sleep(0.2)
    victim.start()
    assert await cluster.until(lambda: all(router.ready for router in cluster.routers), 5.0)
    (answer,) = await asyncio.gather(answered, return_exceptions=True)
    assert await cluster.until(lambda: converged(cluster), 5.0), describe(cluster)
    assert await cluster.until(lambda: not marks_left(cluster), FREE_SECONDS), marks_left(cluster)
    assert await cluster.until(lambda: converged(cluster), 5.0), describe(cluster)
    present = {name in set(_names(cluster)) for name in names}
    assert len(present) == 1, f"after {number} steps: {sorted(set(_names(cluster)))}"
    if isinstance(answer, Answer):
        assert answer.status >= 500 or present == {answer.status == 200}
        return str(answer.status)
    assert isinstance(answer, ConnectionError)
    return "no answer"


def _request(cluster: SimulatedCluster, names: list[str]) -> Coroutine[Any, Any, Answer]:
    """Put these items, in both tables, by way of the first router."""
    puts = [
        {"Put": {"TableName": (ACCOUNTS, RECEIPTS)[index % 2], "Item": {"id": {"S": name}}}}
        for index, name in enumerate(names)
    ]
    body = orjson.dumps({"TransactItems": puts, "ClientRequestToken": names[0]})
    headers = {b"x-amz-target": b"DynamoDB_20120810.TransactWriteItems", b"host": b"simulated"}

    async def ask() -> Answer:
        return await cluster.routers[0].request(Received(b"POST", b"/", headers, body))

    return ask()


def _names(cluster: SimulatedCluster) -> Iterator[str]:
    return (item["id"].get("S", "") for item in all_items(cluster))
