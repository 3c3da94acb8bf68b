"""Killing processes one after the other under load, and measuring what it did to the writers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any, Literal, TypeAlias

from tests.chaos.gaps import longest_gap, percentile
from tests.chaos.load import TABLE, Load
from tests.chaos.real_cluster import PartitionView, RealCluster, until

Target: TypeAlias = Literal["storage node", "leader", "frozen leader", "auto-admin", "router", "all"]
"""`leader` is a storage node that leads at least one partition; a `frozen leader` is stopped by SIGSTOP for a while."""
FROZEN_S = 2.0
"""Longer than a lease and an election: who wakes up after it has been replaced, and does not know it."""
CALM_WRITES = 20
"""So many writes to each partition are to succeed before a kill, and again after it."""


@dataclass
class Kill:
    """One kill and its effect. Times are monotonic seconds; `gaps` are the longest times between two successful writes
    by partition, and `led` the partitions whose leader was killed."""

    target: Target
    name: str
    at: float
    led: list[int]
    recovered: float = 0.0
    gaps: dict[int, float] = field(default_factory=dict)
    failed: int = 0

    @property
    def gap_led(self) -> float:
        """The longest gap of a partition whose leader was killed; 0 if there is none."""
        return max((gap for partition, gap in self.gaps.items() if partition in self.led), default=0.0)

    @property
    def gap_others(self) -> float:
        """The longest gap of the other partitions."""
        return max((gap for partition, gap in self.gaps.items() if partition not in self.led), default=0.0)

    def __str__(self) -> str:
        led = f"{self.gap_led:.2f} s where it led, " if self.led else ""
        gaps = f"gaps of {led}{self.gap_others:.2f} s elsewhere"
        whole = f"whole again after {self.recovered - self.at:.1f} s"
        return f"{self.target} {self.name}: {gaps}, {self.failed} failed for good, {whole}"


class Killer:
    """Kills processes of a cluster while a load runs on it. Every kill waits until the cluster is whole again."""

    def __init__(self, cluster: RealCluster, load: Load, random: Random) -> None:
        self.kills: list[Kill] = []
        self._cluster = cluster
        self._load = load
        self._random = random
        self._calm = 0  # from this acknowledged write on every partition has some before the next kill

    async def kill(self, target: Target) -> Kill:
        """One kill, from a whole cluster to a whole cluster."""
        before = await self._whole()
        if not self.kills:
            await self._writes_to(before)
        calm = self._calm
        kill = await self._strike(target, before)
        after = await self._whole()
        kill.recovered = time.monotonic()
        await self._writes_to(after)
        for partition in before:
            times = [write.ended for write in self._load.acknowledged[calm:] if partition.holds(write.key)]
            kill.gaps[partition.id] = longest_gap(times, kill.at, kill.recovered)
        kill.failed = len(self._load.failed_between(kill.at, time.monotonic()))
        self.kills.append(kill)
        return kill

    async def _whole(self) -> list[PartitionView]:
        """The partitions of the load's table, once everything is well."""
        return [partition for partition in await self._cluster.whole() if partition.table == TABLE]

    async def _strike(self, target: Target, before: list[PartitionView]) -> Kill:
        """Kill and see it started again."""
        if target == "all":
            kill = Kill(target, "all", time.monotonic(), [partition.id for partition in before])
            await self._cluster.kill_all()
            await self._cluster.start()
            return kill
        name = self._choose(target, before)
        if target == "frozen leader":
            at = time.monotonic()
            pid = self._cluster.pids()[name]
            self._cluster.freeze([pid])
            await asyncio.sleep(FROZEN_S)
            self._cluster.wake([pid])
        else:
            pid, at = self._cluster.kill(name)
            await self._cluster.replaced(name, pid)
        return Kill(target, name, at, [partition.id for partition in before if partition.leader == name])

    def _choose(self, target: Target, partitions: list[PartitionView]) -> str:
        """A random process of the wanted kind."""
        if target in ("leader", "frozen leader"):
            fitting = {partition.leader for partition in partitions if partition.leader}
        elif target == "storage node":
            fitting = {node for partition in partitions for node in partition.positions}
        else:
            fitting = {name for name in self._cluster.pids() if name.startswith(target)}
        return self._random.choice(sorted(fitting))

    async def _writes_to(self, partitions: list[PartitionView]) -> None:
        """Wait for some more successful writes to each partition."""
        since = time.monotonic()
        self._calm = seen = len(self._load.acknowledged)

        async def enough() -> bool:
            new = [write.key for write in self._load.acknowledged[seen:] if write.began > since]
            return all(sum(map(partition.holds, new)) >= CALM_WRITES for partition in partitions)

        await until(enough, "writes to every partition succeed")


def summary(load: Load, kills: Iterable[Kill], began: float, ended: float) -> dict[str, Any]:
    """Everything measured, for a report. Times are seconds since `began`."""
    latencies = [write.ended - write.began for write in load.acknowledged]
    seconds = int(ended - began) + 1
    succeeded, failed = [0] * seconds, [0] * seconds
    for write in load.acknowledged:
        succeeded[int(write.ended - began)] += 1
    for failure in load.failed:
        failed[int(failure.at - began)] += 1
    return {
        "seconds": round(ended - began, 1),
        "acknowledged": len(load.acknowledged),
        "failed_for_good": len(load.failed),
        "latency_ms": {name: round(percentile(latencies, part) * 1000, 1) for name, part in _PARTS.items()},
        "kills": [_relative(kill, began) for kill in kills],
        "acknowledged_by_second": succeeded,
        "failed_by_second": failed,
        "reasons": sorted({failure.why for failure in load.failed})[:20],
    }


_PARTS = {"p50": 0.5, "p99": 0.99, "max": 1.0}


def _relative(kill: Kill, began: float) -> dict[str, Any]:
    content = asdict(kill)
    content["at"], content["recovered"] = round(kill.at - began, 3), round(kill.recovered - began, 3)
    content["gaps"] = {str(partition): round(gap, 3) for partition, gap in kill.gaps.items()}
    return content
