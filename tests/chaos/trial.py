"""A cluster under the shared workloads while faults come and go, and the verdict on what clients saw.

Two kinds of clients work side by side: writers, whose ledger says what must be there in the end, and the mixed workload
of the simulation, whose history is checked for linearizability item by item.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random

from tests.chaos.conftest import Report
from tests.chaos.gaps import percentile
from tests.chaos.http_client import HttpClient
from tests.chaos.load import TABLE, Load, create_table, under_load, values_found
from tests.chaos.real_cluster import PartitionView, RealCluster, until
from tests.chaos.replicas import differing_replicas
from tests.chaos.test_linearizability import WorkloadClient, violations, working
from tests.chaos.timeline import LeaderWatch, Marked, watched_leaders, write_timeline
from tests.simulation.workloads.history import History
from tests.simulation.workloads.items import ItemWorkload, table_definition

WRITERS = 6
CLIENTS = 4
CALM_WRITES = 10
"""So many writes to each partition are to succeed before a fault, and again after it."""


@dataclass
class Fault:
    """One fault. Times are monotonic seconds; `failed` are writes that failed for good from its beginning on until all
    was well."""

    name: str
    at: float
    ended: float = 0.0
    recovered: float = 0.0
    failed: int = 0
    p50: float = 0.0
    p99: float = 0.0
    slowest: float = 0.0

    def __str__(self) -> str:
        latency = f"writes meanwhile p50 {self.p50 * 1000:.0f} ms, p99 {self.p99 * 1000:.0f} ms"
        whole = f"whole again after {self.recovered - self.ended:.1f} s, slowest write until then {self.slowest:.2f} s"
        return f"{self.name} for {self.ended - self.at:.1f} s: {self.failed} failed for good, {latency}, {whole}"


class Trial:
    """One run. `faults` are those that are over; `began` and `ended` are monotonic seconds."""

    def __init__(self, cluster: RealCluster, seed: int) -> None:
        self.cluster = cluster
        self.load = Load()
        self.history = History(time.monotonic)
        self.faults: list[Fault] = []
        self.began = self.ended = 0.0
        self.watch = LeaderWatch()
        self._seed = seed
        self._views: list[PartitionView] = []
        self._items: dict[str, int] = {}
        self._counters: dict[str, int] = {}

    def client(self, name: str) -> HttpClient:
        """A client of the cluster."""
        return HttpClient("127.0.0.1", self.cluster.port, name, Random(f"{self._seed} {name}"))

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """All clients work for as long as the block runs; then everything is read."""
        reader = self.client("reader")
        await create_table(reader)
        await reader.call("CreateTable", table_definition())
        partitions = await self.whole()
        workloads = [
            ItemWorkload(WorkloadClient(self.client(f"client-{n}")), self.history, Random(f"{self._seed} {n}"))
            for n in range(CLIENTS)
        ]
        writers = [self.client(f"writer-{number}") for number in range(WRITERS)]
        self.began = time.monotonic()
        async with (
            watched_leaders(self.cluster) as self.watch,
            under_load(self.load, writers, self._seed),
            working(workloads),
        ):
            await self.writes_to(partitions)
            yield
        self.ended = time.monotonic()
        for key in sorted(set().union(*(workload.all_keys() for workload in workloads))):
            assert await workloads[0].read(key, consistent=True), f"{key} cannot be read"
        self._items, self._counters = await values_found(reader)
        await reader.close()
        await self.cluster.whole()

    async def fault(self, name: str, during: Callable[[], Awaitable[object]]) -> Fault:
        """One fault, from a whole cluster to a whole cluster: `during` makes it, and ends it."""
        fault = Fault(name, time.monotonic())
        await during()
        fault.ended = time.monotonic()
        await self.writes_to(await self.whole())
        fault.recovered = time.monotonic()
        fault.failed = len(self.load.failed_between(fault.at, fault.recovered))
        took = [w.ended - w.began for w in self.load.acknowledged if fault.at <= w.ended and w.began <= fault.ended]
        fault.p50, fault.p99 = percentile(took, 0.5), percentile(took, 0.99)
        fault.slowest = max((w.ended - w.began for w in self.load.acknowledged if w.ended >= fault.at), default=0.0)
        self.faults.append(fault)
        return fault

    async def whole(self) -> list[PartitionView]:
        """The partitions of the writers' table, once every partition is well."""
        self._views = await self.cluster.whole()
        return [partition for partition in self._views if partition.table == TABLE]

    def leader(self) -> str:
        """The node that led the most partitions when all was well the last time."""
        leaders = [str(partition.leader) for partition in self._views]
        return max(sorted(set(leaders)), key=leaders.count)

    async def writes_to(self, partitions: Sequence[PartitionView]) -> None:
        """Wait until some more writes to each partition have succeeded."""
        since, seen = time.monotonic(), len(self.load.acknowledged)

        async def enough() -> bool:
            new = [write.key for write in self.load.acknowledged[seen:] if write.began > since]
            return all(sum(map(partition.holds, new)) >= CALM_WRITES for partition in partitions)

        await until(enough, "writes to every partition succeed")

    def write(self, report: Report, name: str) -> None:
        """What was measured: a file of numbers, and a picture."""
        marked = [Marked(fault.name, fault.at, fault.ended) for fault in self.faults]
        write_timeline(report, name, self.load, self.watch, marked, self.began, self.ended)

    def faults_found(self) -> Iterator[str]:
        """Whatever must never be, once the cluster has stopped."""
        yield from differing_replicas(self.cluster.data)
        yield from self.load.ledger.faults_of_items(self._items)
        yield from self.load.ledger.faults_of_counters(self._counters)
        yield from violations(self.history)
        if len(self.load.ledger.acknowledged) <= WRITERS:
            yield "hardly anything was written"
