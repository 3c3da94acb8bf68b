"""Two or three regions, each a whole cluster, write the same items while everything breaks within them and between.

Then all is healed; all regions come to hold the last writers' items, their streams tell all writes, wherever these were
made, and their indexes are what their tables say.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final
from unittest.mock import patch

from tests.simulation.agreed_log import AgreedLog, watching
from tests.simulation.checkers.global_indexes import unfinished_indexes, wrong_indexes
from tests.simulation.checkers.regions import (
    broken_rules,
    changes_of,
    differences_of,
    left_by,
    lost_writes,
    rows_of,
    winners,
)
from tests.simulation.checkers.replicas import all_served, converged, describe, topology_of, unequal_replicas
from tests.simulation.checkers.streams import expected_changes, wrong_streams
from tests.simulation.client import SimulatedClient
from tests.simulation.faults.between_regions import DEFAULT_WEIGHTS, BetweenRegions
from tests.simulation.faults.storm import DEFAULT_WEIGHTS as WITHIN
from tests.simulation.faults.storm import Storm
from tests.simulation.noticed import noticed_errors
from tests.simulation.region_cluster import RegionCluster, RegionsNetwork
from tests.simulation.scenarios.scenario import (
    MOVED_SECONDS,
    MOVING,
    REPAIRED_SECONDS,
    SERVES_AGAIN_SECONDS,
    START_SECONDS,
    Failed,
    Mutate,
    Outcome,
    Tally,
    fast_folder,
    make_table,
    started,
)
from tests.simulation.shape import REPLACE_SECONDS, SCRUB_SECONDS, SEGMENT_BYTES, TRIMMING, Shape
from tests.simulation.simulated_process import current_process
from tests.simulation.trace import Trace
from tests.simulation.virtual_loop import run_virtual
from tests.simulation.workloads.items import TABLE, table_definition
from tests.simulation.workloads.regions import RegionWorkload
from tests.simulation.workloads.streams import StreamReader

REGIONS: Final = ("us-east-1", "eu-west-1", "sa-east-1")
JOINED_SECONDS: Final = 30.0
ALIKE_SECONDS: Final = 60.0
"""Within so long after healing all regions hold the same: a call that nobody answers takes 20 s to be given up."""
AT_REST_SECONDS = 30.0
"""Within so long after that there is a moment at which nobody in any region writes: tombstones have gone by then."""
BEFORE_JOINING: Final = 3
"""So many items are there before the table gets its replicas."""
LOG_BYTES_MAX: Final = 16 << 20


@dataclass(frozen=True)
class RegionsPlan:
    """What a run consists of. What is None is left to the seed: how many regions there are, how long tombstones stay
    after every region has them, the steps in which calendars move on, and whether tables are compared meanwhile.

    `skew`: seconds by which calendars are off at the most. `lasts`: how long a fault between regions lasts."""

    seconds: float = 20.0
    clients: int = 3
    think: tuple[float, float] = (0.01, 0.3)
    within: Mapping[str, float] = field(default_factory=lambda: WITHIN)
    pause_within: tuple[float, float] = (0.5, 3.0)
    between: Mapping[str, float] = field(default_factory=lambda: DEFAULT_WEIGHTS)
    pause_between: tuple[float, float] = (0.5, 2.5)
    lasts: tuple[float, float] = (0.5, 8.0)
    regions: int | None = None
    tombstone_seconds: float | None = None
    grain: float | None = None
    compared: bool | None = None
    skew: float = 10.0
    in_memory: bool = True


def run_regions(seed: int, plan: RegionsPlan | None = None, mutate: Mutate = nullcontext) -> Outcome:
    """Run one seed from beginning to end. `mutate` breaks the code under test for the time of the run."""
    with tempfile.TemporaryDirectory(prefix="trizone-simulation-", dir=fast_folder()) as folder, mutate():
        run = _Regions(seed, plan or RegionsPlan(), Path(folder))
        # Reports to auto-admin carry the process's id, which would differ from run to run.
        with patch("os.getpid", return_value=1), noticed_errors() as errors, watching(run.log_of_current):
            run_virtual(run.main())
        run.violations += errors
    return run.outcome()


class _Regions:
    """One run of one seed."""

    def __init__(self, seed: int, plan: RegionsPlan, folder: Path) -> None:
        self.violations: list[str] = []
        self._seed = seed
        self._plan = plan
        random = Random(f"{seed}/regions")
        count = plan.regions or random.choice((2, 2, 3))
        self._names = REGIONS[:count]
        compared = random.random() < 0.3 if plan.compared is None else plan.compared
        grain = random.choice((0.0, 0.0, 0.25)) if plan.grain is None else plan.grain
        # Rows of a comparison may come as late as a minute, and nothing may have been forgotten by then.
        tombstones = plan.tombstone_seconds or (300.0 if compared else random.choice((1.0, 3.0)))
        settings: dict[str, Any] = {
            "tombstone_seconds": tombstones,
            "scrub_interval": 2.0 if compared else 1e6,
        }
        replicators = random.choice((1, 2))
        self._indexed, self._streamed = random.random() < 0.5, random.random() < 0.7
        self._about = (
            f"{count} regions, {replicators} replicators each, {'compared' if compared else 'not compared'}, "
            f"tombstones stay {tombstones:g} s, clocks step by {grain:g} s"
        )
        self.trace = Trace()
        self.network = RegionsNetwork(Random(f"{seed}/network"), self.trace)
        self.clusters = [
            RegionCluster(
                seed,
                None if plan.in_memory else folder / name,
                name,
                self._names,
                self.network,
                shape=_shape(random),
                silence=0.5,
                replicators=replicators,
                settings=settings,
                grain=grain,
                skew=plan.skew,
            )
            for name in self._names
        ]
        self._of = {cluster.place.region: cluster for cluster in self.clusters}
        self._clients = {
            name: [SimulatedClient(cluster, f"{name}.client-{number}") for number in range(plan.clients)]
            for name, cluster in self._of.items()
        }
        self._readers = {
            name: StreamReader(SimulatedClient(cluster, f"{name}.reader"), TABLE, cluster.random("reader"))
            for name, cluster in self._of.items()
        }
        self._work = {
            name: [RegionWorkload(client, self._of[name].random(f"{client.name}'s work")) for client in clients]
            for name, clients in self._clients.items()
        }
        self._storms = [
            Storm(cluster, self._clients[name], weights=plan.within, pause=plan.pause_within)
            for name, cluster in self._of.items()
        ]
        self._between = BetweenRegions(
            self.clusters,
            self.network,
            Random(f"{seed}/between"),
            weights=plan.between,
            pause=plan.pause_between,
            lasts=plan.lasts,
        )
        self._ended = 0.0

    def log_of_current(self) -> AgreedLog:
        """The agreed log of the region whose code is running."""
        process = current_process()
        assert process is not None
        return self._of[process.name.partition(".")[0]].agreed

    def outcome(self) -> Outcome:
        """What was found."""
        work = [workload for each in self._work.values() for workload in each]
        faults = self._between.counts + sum((storm.counts for storm in self._storms), Counter())
        events: Counter[str] = sum((cluster.totals for cluster in self.clusters), Counter())
        tally = Tally(
            operations=sum(workload.operations for workload in work),
            answered=sum(workload.answered for workload in work),
            messages=self.network.messages,
            virtual_seconds=self._ended,
            faults=faults,
            events=+events,
        )
        return Outcome(self._seed, self._about, self.violations, tally, self.trace, "regions")

    # --- the run ---

    async def main(self) -> None:
        """All phases."""
        try:
            await self._prepare()
            await self._break()
            await self._come_to_rest()
            self.violations += self._found()
        except Failed as failed:
            self.violations.append(str(failed))
        self.violations += self.network.echoes[:10]
        for cluster in self.clusters:
            await cluster.close()
            self.violations += cluster.failures

    async def _prepare(self) -> None:
        for cluster in self.clusters:
            await started(cluster)
        first = self._names[0]
        client, workload = self._clients[first][0], self._work[first][0]
        await make_table(client, table_definition(indexed=self._indexed, streamed=self._streamed))
        await self._settled(START_SECONDS, self.clusters[:1])
        for number in range(BEFORE_JOINING):
            if not await workload.put(f"shared-{number}"):
                raise Failed("nothing can be written")
        for other in self._names[1:]:
            body = {"TableName": TABLE, "ReplicaUpdates": [{"Create": {"RegionName": other}}]}
            reply = await client.call("UpdateTable", body)
            if reply is None or reply.error:
                raise Failed(f"the table gets no replica in {other}: {reply}")
            names = self._names[: self._names.index(other) + 1]
            if not await self._until(lambda names=names: self._are_joined(names), JOINED_SECONDS):
                raise Failed(f"the table's replica in {other} does not become active")
        await self._settled(START_SECONDS, self.clusters)
        await asyncio.sleep(2.0)  # for cursors to be noted behind what the regions were filled with
        self.network.is_watched = True

    def _are_joined(self, names: tuple[str, ...]) -> bool:
        """Whether each of these regions has the table, with all others as active replicas."""
        for name in names:
            table = topology_of(self._of[name]).table_named(TABLE)
            if table is None or table.status != "ACTIVE":
                return False
            if [replica.state for replica in table.replicas if replica.region in names] != ["ACTIVE"] * len(names):
                return False
        return True

    async def _break(self) -> None:
        over = asyncio.Event()

        async def work(region: str, number: int) -> None:
            random, workload = self._of[region].random(f"pause {number}"), self._work[region][number]
            while not over.is_set():
                await workload.step()
                await asyncio.sleep(random.uniform(*self._plan.think))

        async def read(region: str) -> None:
            while not over.is_set():
                await self._readers[region].step()
                await asyncio.sleep(0.2)

        working = [
            asyncio.ensure_future(work(region, number))
            for region in self._names
            for number in range(len(self._work[region]))
        ]
        working += [asyncio.ensure_future(read(region)) for region in self._names if self._streamed]
        storms = [asyncio.ensure_future(storm.run(self._plan.seconds)) for storm in self._storms]
        await self._between.run(self._plan.seconds)
        await asyncio.wait(storms)
        over.set()
        for storm in self._storms:
            await storm.heal()
        await asyncio.wait(working)  # which takes them no longer than their patience
        for task in (*storms, *working):
            task.result()

    async def _come_to_rest(self) -> None:
        if not await self._until(lambda: all(all_served(cluster) for cluster in self.clusters), SERVES_AGAIN_SECONDS):
            raise Failed(f"{SERVES_AGAIN_SECONDS:g} s after healing not all is served:\n{self._describe()}")
        for storm in self._storms:
            for name in sorted(storm.drained):
                await storm.stop_draining(name)
        await self._until(lambda: not any(self._unlike()), ALIKE_SECONDS, step=0.5)
        if self._indexed:
            await self._until(self._indexes_are_right, SERVES_AGAIN_SECONDS)
        if self._streamed:
            for reader in self._readers.values():
                await reader.drain(20)
        # Last of all: leaders go on to write how far their clocks are while there are tombstones.
        await self._settled(MOVED_SECONDS if self._moves() else AT_REST_SECONDS, self.clusters)
        await self._until(lambda: not any(self._unequal()), REPAIRED_SECONDS, step=0.5)
        await self._settled(AT_REST_SECONDS, self.clusters)
        self._ended = asyncio.get_running_loop().time()

    def _moves(self) -> bool:
        """Whether replicas may have to be made anew elsewhere."""
        return any(
            storm.counts[kind] or storm.cluster.shape.replace_after < REPLACE_SECONDS
            for storm in self._storms
            for kind in MOVING
        )

    def _unequal(self) -> Iterator[str]:
        return (text for cluster in self.clusters for text in unequal_replicas(cluster))

    def _indexes_are_right(self) -> bool:
        return all(
            converged(cluster) and not any(unfinished_indexes(cluster)) and not any(wrong_indexes(cluster))
            for cluster in self.clusters
        )

    async def _settled(self, seconds: float, clusters: Sequence[RegionCluster]) -> None:
        if not await self._until(lambda: all(converged(cluster) for cluster in clusters), seconds):
            raise Failed(f"{seconds:g} s later not every partition serves with equal replicas:\n{self._describe()}")

    async def _until(self, condition: Any, seconds: float, step: float = 0.01) -> bool:
        return await self.clusters[0].until(condition, seconds, step)

    def _describe(self) -> str:
        return "\n".join(f"{cluster.place.region}:\n{describe(cluster)}" for cluster in self.clusters)

    # --- what is checked ---

    def _unlike(self) -> Iterator[str]:
        """How the regions differ from what the last writers left."""
        wanted = left_by(winners({name: changes_of(cluster, TABLE) for name, cluster in self._of.items()}))
        for name, cluster in self._of.items():
            yield from differences_of(wanted, name, rows_of(cluster, TABLE).values())

    def _found(self) -> Iterator[str]:
        yield from self._unlike()
        changes = {name: changes_of(cluster, TABLE) for name, cluster in self._of.items()}
        yield from broken_rules(changes)
        for name, cluster in self._of.items():
            yield from (f"{name}: {text}" for text in unequal_replicas(cluster))
            for workload in self._work[name]:
                yield from workload.wrong
                yield from lost_writes(workload.acknowledged, changes[name])
            if self._indexed:
                yield from (f"{name}: {text}" for text in wrong_indexes(cluster))
            if self._streamed:
                reader = self._readers[name]
                yield from (f"{name}: {text}" for text in reader.wrong)
                yield from (f"{name}: {text}" for text in wrong_streams(expected_changes(cluster, TABLE), reader.read))


def _shape(random: Random) -> Shape:
    """A small cluster; half of them trim their logs all the time, a third have a node more, to which replicas move."""
    settings: dict[str, Any] = {"scrub_interval": SCRUB_SECONDS, "log_segment_bytes": SEGMENT_BYTES}
    if random.random() < 0.5:
        # A region that dies again and again begins many segments: the bound is for more than the storm's.
        settings |= {**TRIMMING, "log_bytes_max": LOG_BYTES_MAX, "log_keep_seconds": random.choice((0.5, 5.0))}
    zones = random.choice(((1, 1, 1), (1, 1, 1), (1, 2, 1)))
    replace_after = random.choice((3.0, REPLACE_SECONDS))
    return Shape(zones, random.choice((1, 2, 3)), replace_after=replace_after, settings=settings)
