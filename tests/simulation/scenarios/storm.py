"""The main scenario. Clients work while everything breaks; then all is healed, has to serve, and is checked.

The seed decides how large the cluster is and what its table has: a stream, time to live, indexes, and an index that is
made in the middle of it all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.simulation.checkers.counters import wrong_counters
from tests.simulation.checkers.global_indexes import unfinished_indexes, wrong_indexes
from tests.simulation.checkers.linearizability import Undecided, check_item
from tests.simulation.checkers.local_indexes import index_differences
from tests.simulation.checkers.reads import invented_reads, uncommitted_reads
from tests.simulation.checkers.replicas import committed_values, converged, replicas_of
from tests.simulation.checkers.streams import expected_changes, wrong_streams
from tests.simulation.client import SimulatedClient
from tests.simulation.faults.storm import JUMP_MAX
from tests.simulation.scenarios.scenario import (
    SERVES_AGAIN_SECONDS,
    START_SECONDS,
    Failed,
    Mutate,
    Outcome,
    Scenario,
    StormPlan,
    Tally,
    make_table,
    run_scenario,
)
from tests.simulation.shape import Shape, draw_shape
from tests.simulation.simulated_machine import START_OF_TIME
from tests.simulation.workloads.fleeting import ATTRIBUTE, FleetingWorkload
from tests.simulation.workloads.history import History
from tests.simulation.workloads.items import TABLE, ItemWorkload, table_definition
from tests.simulation.workloads.schema import SchemaWorkload
from tests.simulation.workloads.streams import StreamReader

CLOCKS_APART = JUMP_MAX + 3.0
"""By so many seconds a calendar may be ahead of the true time: it jumped, and drifted since."""
SWEPT_SECONDS = 40.0
"""Within so long after healing what has expired is deleted, by the slowest calendar."""
FILLED_SECONDS = 20.0
"""Within so long after healing an index is made, and follows its table. A call may take its whole 10 s first."""


@dataclass(frozen=True)
class Features:
    """What the table has, and what is done to it meanwhile."""

    indexed: bool = False
    collections: bool = False
    streamed: bool = False
    expiring: bool = False
    reshaped: bool = False
    """A global index is made during the storm, and perhaps deleted again."""


def draw_features(random: Random) -> Features:
    """Each feature has its chance."""
    return Features(
        indexed=random.random() < 0.3,
        collections=random.random() < 0.3,
        streamed=random.random() < 0.5,
        expiring=random.random() < 0.4,
        reshaped=random.random() < 0.3,
    )


@dataclass(frozen=True)
class Plan(StormPlan):
    """What a run consists of. `shape` and `features`: None lets the seed decide."""

    seconds: float = 20.0
    think: tuple[float, float] = (0.002, 0.06)
    pause: tuple[float, float] = (0.1, 0.9)
    shape: Shape | None = None
    features: Features | None = None


def run_storm(seed: int, plan: Plan | None = None, mutate: Mutate = nullcontext) -> Outcome:
    """Run one seed from beginning to end. `mutate` breaks the code under test for the time of the run."""
    return run_scenario(lambda folder: _Storm(seed, plan or Plan(), folder), mutate).outcome()


class _Storm(Scenario):
    def __init__(self, seed: int, plan: Plan, folder: Path) -> None:
        super().__init__(seed, plan, plan.shape or draw_shape(Random(f"{seed}/shape")), folder)
        self._features = plan.features or draw_features(Random(f"{seed}/features"))
        self._history = History(lambda: asyncio.get_running_loop().time())
        random = self.cluster.random
        self._items = [ItemWorkload(client, self._history, random(f"{client.name}'s work")) for client in self.clients]
        self._fleeting = FleetingWorkload(self._more("fleeting"), self._history, random("fleeting"), _wall)
        self._reader = StreamReader(self._more("reader"), TABLE, random("reader"))
        self._schema = SchemaWorkload(self._more("schema"), random("schema"))
        self._ended = 0.0

    def _more(self, name: str) -> SimulatedClient:
        client = SimulatedClient(self.cluster, name)
        self.storm.add_client(client)
        return client

    def outcome(self) -> Outcome:
        """What was found."""
        operations = self._history.operations
        events = self.cluster.totals.copy()
        events["membership changes"] = self.cluster.agreed.membership_changes
        events["stream records"] = self._reader.records
        events["indexes made meanwhile"] = self._schema.made
        features = [name for name in Features.__annotations__ if getattr(self._features, name)]
        tally = Tally(
            operations=len(operations),
            answered=sum(operation.done is not None for operation in operations),
            messages=self.cluster.network.messages,
            virtual_seconds=self._ended,
            faults=self.storm.counts,
            events=+events,
        )
        about = "; ".join([str(self.cluster.shape), *([", ".join(features)] if features else [])])
        return Outcome(self.cluster.seed, about, self.violations, tally, self.cluster.trace)

    async def prepare(self) -> None:
        features = self._features
        await make_table(
            self.clients[0],
            table_definition(indexed=features.indexed, collections=features.collections, streamed=features.streamed),
        )
        if features.expiring:
            body = {"TableName": TABLE, "TimeToLiveSpecification": {"Enabled": True, "AttributeName": ATTRIBUTE}}
            # Whoever made the table with a second try did not hear when it was there.
            if not await self.cluster.until(lambda: converged(self.cluster), START_SECONDS):
                raise Failed("the table is not led everywhere")
            await asyncio.sleep(1.0)
            reply = await self.clients[0].call("UpdateTimeToLive", body)
            if reply is None or reply.error:
                raise Failed(f"time to live cannot be set: {reply}")

    def work(self) -> Sequence[Callable[[], Awaitable[None]]]:
        steps: list[Callable[[], Awaitable[None]]] = [workload.step for workload in self._items]
        if self._features.streamed:
            steps.append(self._reader.step)
        if self._features.expiring:
            steps.append(self._fleeting.step)
        if self._features.reshaped:
            steps.append(self._change_schema)
        return steps

    async def _change_schema(self) -> None:
        await self._schema.step()
        await asyncio.sleep(0.5)

    async def look(self) -> None:
        features, cluster = self._features, self.cluster
        for workload in self._items:
            for key in workload.all_keys():
                if not await workload.read(key, consistent=True):
                    raise Failed(f"{key} cannot be read after healing")
        if features.expiring:
            await self._look_at_fleeting()
        if features.indexed or features.reshaped:
            if not await cluster.until(lambda: not any(unfinished_indexes(cluster)), FILLED_SECONDS):
                raise Failed("\n".join(unfinished_indexes(cluster)))
            if not await cluster.until(self._indexes_are_right, FILLED_SECONDS):
                raise Failed("\n".join(wrong_indexes(cluster)) or "the index's partitions do not come to rest")
        await self.settled(SERVES_AGAIN_SECONDS)
        if features.streamed:
            await self._reader.drain(20)
        self._ended = asyncio.get_running_loop().time()

    async def _look_at_fleeting(self) -> None:
        """What has expired by the slowest calendar is gone soon."""
        overdue = [key for key, until in self._fleeting.until.items() if until < _wall() - CLOCKS_APART]
        deadline = asyncio.get_running_loop().time() + SWEPT_SECONDS
        for key in overdue:
            answered, found = await self._fleeting.read(key)
            while found is not None and asyncio.get_running_loop().time() < deadline:
                await asyncio.sleep(1.0)
                answered, found = await self._fleeting.read(key)
            if not answered or found is not None:
                raise Failed(f"{key} has expired, and {'is still there' if answered else 'cannot be read'}")
        for key in self._fleeting.until:
            if not (await self._fleeting.read(key))[0]:
                raise Failed(f"{key} cannot be read after healing")
        self._fleeting.note_deletions(CLOCKS_APART)

    def _indexes_are_right(self) -> bool:
        return converged(self.cluster) and not any(wrong_indexes(self.cluster))

    def check(self) -> None:
        self.violations += self._violations()
        self.violations += [*self._history.unexpected, *self._reader.wrong, *self._schema.wrong]

    def _violations(self) -> Iterator[str]:
        operations, cluster = self._history.operations, self.cluster
        for key, of_key in self._history.strong_by_key():
            try:
                if stuck := check_item(of_key):
                    yield f"{key} is not linearizable:\n{stuck}"
            except Undecided as undecided:
                yield f"{key}: {undecided}"
        yield from wrong_counters(operations)
        yield from invented_reads(operations)
        yield from uncommitted_reads(operations, committed_values(cluster, TABLE))
        if self._features.streamed:
            yield from wrong_streams(expected_changes(cluster, TABLE), self._reader.read)
        if self._features.collections:
            for members in replicas_of(cluster).values():
                for hosted in members:
                    if (schema := hosted.partition.applied_schema) is not None and schema.name == TABLE:
                        yield from index_differences(hosted.store, schema)


def _wall() -> float:
    """The true time of the calendar."""
    return START_OF_TIME + asyncio.get_running_loop().time()
