"""The main scenario. Clients work while everything breaks; then all is healed, has to serve, and is checked."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from tests.simulation.checkers.counters import wrong_counters
from tests.simulation.checkers.global_indexes import wrong_indexes
from tests.simulation.checkers.linearizability import Undecided, check_item
from tests.simulation.checkers.reads import invented_reads, uncommitted_reads
from tests.simulation.checkers.replicas import committed_values, converged, describe, unequal_replicas
from tests.simulation.client import SimulatedClient
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.faults.storm import DEFAULT_WEIGHTS, Storm
from tests.simulation.noticed import noticed_errors
from tests.simulation.trace import Trace
from tests.simulation.virtual_loop import run_virtual
from tests.simulation.workloads.history import History
from tests.simulation.workloads.items import ItemWorkload, table_definition

START_SECONDS = 10.0
SERVES_AGAIN_SECONDS = 5.0
"""Within so long after healing every item can be read and the replicas are equal: it takes 3 to notice that a batch was
lost, as long for an election and its lease wait."""


@dataclass(frozen=True)
class Plan:
    """What a run consists of. `in_memory`: stores in memory rather than LMDB. `indexed`: the table has
    a global index. `silence`: seconds after which routers
    give up on a node that says nothing."""

    seconds: float = 60.0
    clients: int = 6
    think: tuple[float, float] = (0.01, 0.2)
    weights: Mapping[str, float] = field(default_factory=lambda: DEFAULT_WEIGHTS)
    pause: tuple[float, float] = (0.2, 2.2)
    in_memory: bool = False
    indexed: bool = False
    silence: float = 0.5


@dataclass
class Outcome:
    """What a run came to."""

    seed: int
    violations: list[str]
    operations: int
    answered: int
    faults: Counter[str]
    messages: int
    trace: Trace

    def __str__(self) -> str:
        return (
            f"seed {self.seed}: {self.operations} operations ({self.answered} answered), "
            f"{self.faults.total()} faults, {self.messages} messages, {len(self.violations)} violations"
        )

    def report(self) -> str:
        """The violations, and how to see them again."""
        return "\n".join(
            [str(self), *self.violations, f"Replay: make sim SEED={self.seed} SEEDS=1 ARGS='--trace FILE'"]
        )


def run_storm(
    seed: int, plan: Plan | None = None, mutate: Callable[[], AbstractContextManager[object]] = nullcontext
) -> Outcome:
    """Run one seed from beginning to end. `mutate` breaks the code under test for the time of the run."""
    plan = plan or Plan()
    with tempfile.TemporaryDirectory(prefix="trizone-simulation-", dir=_fast_folder()) as folder, mutate():
        run = _Run(seed, plan, None if plan.in_memory else Path(folder))
        # Reports to auto-admin carry the process's id, which would differ from run to run.
        with patch("os.getpid", return_value=1), noticed_errors() as errors:
            run_virtual(run.main())
        run.violations += errors
    return run.outcome()


def _fast_folder() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


class _Run:
    def __init__(self, seed: int, plan: Plan, folder: Path | None) -> None:
        self._plan = plan
        self._cluster = SimulatedCluster(seed, folder, silence=plan.silence)
        self._history = History(lambda: asyncio.get_running_loop().time())
        self._clients = [SimulatedClient(self._cluster, f"client-{number}") for number in range(plan.clients)]
        self._workloads = [
            ItemWorkload(client, self._history, self._cluster.random(f"{client.name}'s work"))
            for client in self._clients
        ]
        self._storm = Storm(self._cluster, self._clients, weights=plan.weights, pause=plan.pause)
        self.violations: list[str] = []

    def outcome(self) -> Outcome:
        """What was found."""
        return Outcome(
            seed=self._cluster.seed,
            violations=self.violations,
            operations=len(self._history.operations),
            answered=sum(operation.done is not None for operation in self._history.operations),
            faults=self._storm.counts,
            messages=self._cluster.network.messages,
            trace=self._cluster.trace,
        )

    async def main(self) -> None:
        """All phases."""
        try:
            await self._start()
            await self._break()
            await self._heal()
            self.violations += self._check()
        except _Failed as failed:
            self.violations.append(str(failed))
        self.violations += [*self._cluster.failures, *self._history.unexpected]
        await self._cluster.close()

    async def _start(self) -> None:
        cluster = self._cluster
        cluster.start()
        if not await cluster.until(lambda: all(router.ready for router in cluster.routers), START_SECONDS):
            raise _Failed("the routers do not get a catalog")
        service = cluster.auto_admin.service
        assert service is not None
        if not await cluster.until(lambda: service.live_nodes == len(cluster.nodes), START_SECONDS):
            raise _Failed("the nodes do not report")
        reply = await self._clients[0].call("CreateTable", table_definition(indexed=self._plan.indexed))
        if reply is None or reply.error not in ("", "ResourceInUseException"):  # that is the answer to a second try
            raise _Failed(f"the table cannot be made: {reply}")
        if not await cluster.until(lambda: converged(cluster), START_SECONDS):
            raise _Failed("the new table is not led everywhere")

    async def _break(self) -> None:
        over = asyncio.Event()

        async def work(workload: ItemWorkload) -> None:
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
        """The clients are done by now, which took them no longer than their patience. Nothing may be out of order."""
        cluster = self._cluster
        if not await cluster.until(lambda: converged(cluster), SERVES_AGAIN_SECONDS):
            raise _Failed(
                f"{SERVES_AGAIN_SECONDS} s after healing not every partition serves with equal replicas:\n"
                + describe(cluster)
            )
        if self._plan.indexed and not await cluster.until(self._indexes_are_right, SERVES_AGAIN_SECONDS):
            raise _Failed("\n".join(wrong_indexes(cluster)) or "the index's partitions do not come to rest")
        for workload in self._workloads:
            for key in workload.all_keys():
                if not await workload.read(key, consistent=True):
                    raise _Failed(f"{key} cannot be read after healing")

    def _indexes_are_right(self) -> bool:
        return converged(self._cluster) and not any(wrong_indexes(self._cluster))

    def _check(self) -> Iterator[str]:
        operations = self._history.operations
        for key, of_key in self._history.strong_by_key():
            try:
                if stuck := check_item(of_key):
                    yield f"{key} is not linearizable:\n{stuck}"
            except Undecided as undecided:
                yield f"{key}: {undecided}"
        yield from wrong_counters(operations)
        yield from invented_reads(operations)
        yield from uncommitted_reads(operations, committed_values(self._cluster))
        yield from unequal_replicas(self._cluster)


class _Failed(Exception):  # noqa: N818
    """The run cannot go on."""
