"""Transactions of all kinds while everything breaks: a bank, pairs on duty, and random ones.

Then all is healed; no item may stay marked, the books have to be right, somebody on duty, and the rest serializable.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from unittest.mock import patch

from tests.simulation.checkers.bank import all_items, marks_left, wrong_books
from tests.simulation.checkers.replicas import converged, describe, unequal_replicas
from tests.simulation.checkers.serializability import violations
from tests.simulation.client import SimulatedClient
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.faults.storm import DEFAULT_WEIGHTS, Storm
from tests.simulation.noticed import noticed_errors
from tests.simulation.trace import Trace
from tests.simulation.virtual_loop import run_virtual
from tests.simulation.workloads.bank import ACCOUNTS, RECEIPTS, Bank, BankWorkload, account, table_definition
from tests.simulation.workloads.duty import Duty, DutyWorkload
from tests.simulation.workloads.transactions import RandomTransactions, TransactionHistory, keys_of

START_SECONDS = 10.0
SERVES_AGAIN_SECONDS = 5.0
FREE_SECONDS = 5.0
"""Within so long after every partition serves again no item is marked any more."""


@dataclass(frozen=True)
class Plan:
    """What a run consists of."""

    seconds: float = 30.0
    clients: int = 6
    think: tuple[float, float] = (0.01, 0.2)
    weights: Mapping[str, float] = field(default_factory=lambda: DEFAULT_WEIGHTS)
    pause: tuple[float, float] = (0.2, 2.2)


@dataclass
class Outcome:
    """What a run came to."""

    seed: int
    violations: list[str]
    transfers: Counter[bool | None]
    looks: int
    duty: Duty
    transactions: int
    faults: Counter[str]
    trace: Trace

    def report(self) -> str:
        """All of it."""
        head = (
            f"seed {self.seed}: transfers {dict(self.transfers)}, {self.looks} looks, {self.duty.left} left, "
            f"{self.duty.refused} had to stay, {self.transactions} other transactions, {self.faults.total()} faults"
        )
        return "\n".join([head, *self.violations])


def run_bank(
    seed: int, plan: Plan | None = None, mutate: Callable[[], AbstractContextManager[object]] = nullcontext
) -> Outcome:
    """Run one seed from beginning to end. `mutate` breaks the code under test for the time of the run."""
    with tempfile.TemporaryDirectory(prefix="trizone-simulation-", dir=_fast_folder()) as folder, mutate():
        run = _Run(seed, plan or Plan(), Path(folder))
        with patch("os.getpid", return_value=1), noticed_errors() as errors:
            run_virtual(run.main())
        run.violations += errors
    return run.outcome()


def _fast_folder() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


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


class _Run:
    def __init__(self, seed: int, plan: Plan, folder: Path) -> None:
        self._plan = plan
        self._cluster = SimulatedCluster(seed, folder)
        self._bank = Bank()
        self._clients = [SimulatedClient(self._cluster, f"client-{number}") for number in range(plan.clients)]
        self._duty = Duty((ACCOUNTS, RECEIPTS))
        self._history = TransactionHistory(lambda: asyncio.get_running_loop().time(), (ACCOUNTS, RECEIPTS))
        self._workloads = [self._share(client) for client in self._clients]
        self._storm = Storm(self._cluster, self._clients, weights=plan.weights, pause=plan.pause)
        self.violations: list[str] = []

    def _share(self, client: SimulatedClient) -> _Share:
        def random(purpose: str) -> Random:
            return self._cluster.random(f"{client.name}'s {purpose}")

        return _Share(
            BankWorkload(client, self._bank, random("work")),
            RandomTransactions(client, self._history, random("transactions")),
            DutyWorkload(client, self._duty, random("duty")),
            random("choices"),
        )

    def outcome(self) -> Outcome:
        """What was found."""
        bank = self._bank
        return Outcome(
            seed=self._cluster.seed,
            violations=self.violations,
            transfers=Counter(transfer.done for transfer in bank.transfers),
            looks=bank.looks,
            duty=self._duty,
            transactions=len(self._history.transactions),
            faults=self._storm.counts,
            trace=self._cluster.trace,
        )

    async def main(self) -> None:
        """All phases."""
        try:
            await start(self._cluster, self._clients[0])
            await self._break()
            await self._heal()
            self.violations += wrong_books(all_items(self._cluster), self._bank)
            self.violations += unequal_replicas(self._cluster)
            for group in self._history.by_group():
                self.violations += violations(group)
        except _Failed as failed:
            self.violations.append(str(failed))
        self.violations += [*self._cluster.failures, *self._bank.wrong, *self._duty.wrong, *self._history.unexpected]
        await self._cluster.close()

    async def _break(self) -> None:
        over = asyncio.Event()

        async def work(workload: _Share) -> None:
            random = self._cluster.random(f"pause {self._workloads.index(workload)}")
            while not over.is_set():
                await workload.step()
                await asyncio.sleep(random.uniform(*self._plan.think))

        working = [asyncio.ensure_future(work(workload)) for workload in self._workloads]
        await self._storm.run(self._plan.seconds)
        over.set()
        await self._storm.heal()
        await asyncio.wait(working)
        for task in working:
            task.result()

    async def _heal(self) -> None:
        cluster = self._cluster
        if not await cluster.until(lambda: converged(cluster), SERVES_AGAIN_SECONDS):
            raise _Failed(f"not every partition serves again:\n{describe(cluster)}")
        if not await cluster.until(lambda: not marks_left(cluster), FREE_SECONDS):
            raise _Failed(f"items stay marked: {marks_left(cluster)}")
        if not await cluster.until(lambda: converged(cluster), SERVES_AGAIN_SECONDS):
            raise _Failed(f"replicas stay unequal:\n{describe(cluster)}")
        first = self._workloads[0]
        if not await first.bank.look():
            raise _Failed("the accounts cannot be read")
        for group in range(self._history.groups):
            if not await first.transactions.read(keys_of(group)):
                raise _Failed(f"{keys_of(group)} cannot be read")


async def start(cluster: SimulatedCluster, client: SimulatedClient) -> None:
    """Start everything and make the bank's tables."""
    cluster.start()
    if not await cluster.until(lambda: all(router.ready for router in cluster.routers), START_SECONDS):
        raise _Failed("the routers do not get a catalog")
    service = cluster.auto_admin.service
    assert service is not None
    if not await cluster.until(lambda: service.live_nodes == len(cluster.nodes), START_SECONDS):
        raise _Failed("the nodes do not report")
    for name in (ACCOUNTS, RECEIPTS):
        reply = await client.call("CreateTable", table_definition(name))
        if reply is None or reply.error not in ("", "ResourceInUseException"):
            raise _Failed(f"the table cannot be made: {reply}")
    # The first transaction makes the ledger, for which auto-admin has to live.
    opening = {"TransactItems": [{"Delete": {"TableName": ACCOUNTS, "Key": account(number)}} for number in range(8)]}
    reply = await client.call("TransactWriteItems", opening)
    if reply is None or reply.error:
        raise _Failed(f"transactions do not work: {reply}")
    if not await cluster.until(lambda: converged(cluster), START_SECONDS):
        raise _Failed("the tables are not led everywhere")


class _Failed(Exception):  # noqa: N818
    """The run cannot go on."""
