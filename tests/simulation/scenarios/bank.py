"""Transactions of all kinds while everything breaks: a bank, pairs on duty, and random ones.

Then all is healed; no item may stay marked, the books have to be right, somebody on duty, and the rest serializable.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.simulation.checkers.bank import all_items, marks_left, wrong_books
from tests.simulation.checkers.replicas import converged
from tests.simulation.checkers.serializability import violations
from tests.simulation.client import SimulatedClient
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.scenarios.scenario import (
    SERVES_AGAIN_SECONDS,
    START_SECONDS,
    Failed,
    Mutate,
    Scenario,
    StormPlan,
    Tally,
    make_table,
    run_scenario,
    started,
)
from tests.simulation.shape import Shape, draw_shape
from tests.simulation.trace import Trace
from tests.simulation.workloads.bank import ACCOUNTS, RECEIPTS, Bank, BankWorkload, account, table_definition
from tests.simulation.workloads.duty import Duty, DutyWorkload
from tests.simulation.workloads.transactions import RandomTransactions, TransactionHistory, keys_of

FREE_SECONDS = 5.0
"""Within so long after every partition serves again no item is marked any more."""


@dataclass(frozen=True)
class Plan(StormPlan):
    """What a run consists of. `shape`: None lets the seed decide."""

    shape: Shape | None = None


@dataclass
class Outcome:
    """What a run came to."""

    seed: int
    violations: list[str]
    transfers: Counter[bool | None]
    looks: int
    duty: Duty
    transactions: int
    tally: Tally
    trace: Trace

    def report(self) -> str:
        """All of it."""
        head = (
            f"seed {self.seed}: transfers {dict(self.transfers)}, {self.looks} looks, {self.duty.left} left, "
            f"{self.duty.refused} had to stay, {self.transactions} other transactions, "
            f"{self.tally.faults.total()} faults"
        )
        return "\n".join([head, *self.violations])


def run_bank(seed: int, plan: Plan | None = None, mutate: Mutate = nullcontext) -> Outcome:
    """Run one seed from beginning to end. `mutate` breaks the code under test for the time of the run."""
    return run_scenario(lambda folder: _Bank(seed, plan or Plan(), folder), mutate).outcome()


@dataclass
class _Share:
    """What one client does."""

    bank: BankWorkload
    transactions: RandomTransactions
    duty: DutyWorkload
    random: Random

    async def step(self) -> None:
        """One request, of one of these."""
        work = (self.bank.step, self.transactions.step, self.duty.step)
        await self.random.choices(work, (4, 5, 1))[0]()


class _Bank(Scenario):
    def __init__(self, seed: int, plan: Plan, folder: Path) -> None:
        super().__init__(seed, plan, plan.shape or draw_shape(Random(f"{seed}/shape")), folder)
        self._bank = Bank()
        self._duty = Duty((ACCOUNTS, RECEIPTS))
        self._history = TransactionHistory(lambda: asyncio.get_running_loop().time(), (ACCOUNTS, RECEIPTS))
        self._shares = [self._share(client) for client in self.clients]
        self._ended = 0.0

    def _share(self, client: SimulatedClient) -> _Share:
        def random(purpose: str) -> Random:
            return self.cluster.random(f"{client.name}'s {purpose}")

        return _Share(
            BankWorkload(client, self._bank, random("work")),
            RandomTransactions(client, self._history, random("transactions")),
            DutyWorkload(client, self._duty, random("duty")),
            random("choices"),
        )

    def outcome(self) -> Outcome:
        """What was found."""
        bank, count = self._bank, len(self._history.transactions)
        operations = count + len(bank.transfers) + bank.looks + self._duty.left + self._duty.refused
        tally = Tally(
            operations=operations,
            answered=operations,
            messages=self.cluster.network.messages,
            virtual_seconds=self._ended,
            faults=self.storm.counts,
            events=self.cluster.totals,
        )
        return Outcome(
            seed=self.cluster.seed,
            violations=self.violations,
            transfers=Counter(transfer.done for transfer in bank.transfers),
            looks=bank.looks,
            duty=self._duty,
            transactions=count,
            tally=tally,
            trace=self.cluster.trace,
        )

    async def prepare(self) -> None:
        await make_tables(self.clients[0])

    def work(self) -> Sequence[Callable[[], Awaitable[None]]]:
        return [share.step for share in self._shares]

    async def look(self) -> None:
        cluster = self.cluster
        if not await cluster.until(lambda: not marks_left(cluster), FREE_SECONDS):
            raise Failed(f"items stay marked: {marks_left(cluster)}")
        await self.settled(SERVES_AGAIN_SECONDS)
        first = self._shares[0]
        if not await first.bank.look():
            raise Failed("the accounts cannot be read")
        for group in range(self._history.groups):
            if not await first.transactions.read(keys_of(group)):
                raise Failed(f"{keys_of(group)} cannot be read")
        self._ended = asyncio.get_running_loop().time()

    def check(self) -> None:
        self.violations += wrong_books(all_items(self.cluster), self._bank)
        for group in self._history.by_group():
            self.violations += violations(group)
        self.violations += [*self._bank.wrong, *self._duty.wrong, *self._history.unexpected]


async def make_tables(client: SimulatedClient) -> None:
    """Make the bank's tables. Raises Failed."""
    for name in (ACCOUNTS, RECEIPTS):
        await make_table(client, table_definition(name))
    # The first transaction makes the ledger, for which auto-admin has to live.
    opening = {"TransactItems": [{"Delete": {"TableName": ACCOUNTS, "Key": account(number)}} for number in range(8)]}
    reply = await client.call("TransactWriteItems", opening)
    if reply is None or reply.error:
        raise Failed(f"transactions do not work: {reply}")


async def start(cluster: SimulatedCluster, client: SimulatedClient) -> None:
    """Start everything and make the bank's tables. Raises Failed."""
    await started(cluster)
    await make_tables(client)
    if not await cluster.until(lambda: converged(cluster), START_SECONDS):
        raise Failed("the tables are not led everywhere")
