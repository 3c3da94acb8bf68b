"""What all scenarios have in common: a cluster comes up, clients work while a storm breaks things, all is healed and
has to serve again, and then it is checked."""

from __future__ import annotations

import asyncio
import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

from tests.simulation.checkers.replicas import all_served, converged, describe, left_over, unequal_replicas
from tests.simulation.client import SimulatedClient
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.faults.storm import DEFAULT_WEIGHTS, Storm
from tests.simulation.leases import Leases
from tests.simulation.noticed import noticed_errors
from tests.simulation.promises import Promises
from tests.simulation.shape import REPLACE_SECONDS, Shape
from tests.simulation.trace import Trace
from tests.simulation.virtual_loop import run_virtual

START_SECONDS = 10.0
SERVES_AGAIN_SECONDS = 5.0
"""Within so long after healing every item can be read and the replicas are equal: it takes 3 to notice that a batch was
lost, as long for an election and its lease wait."""
MOVED_SECONDS = 90.0
"""Within so long after healing replicas that were lost, or have to move, are where they should be."""
MOVING = ("wiped disk", "flipped bit in the log", "drained node")
DAMAGING = ("flipped bit in a row", "flipped bit in the log", "flipped bit in a snapshot")
REPAIRED_SECONDS = 20.0
"""Within so long after healing the scrub has found what is damaged, and it is made anew."""

Mutate = Callable[[], AbstractContextManager[object]]


class Failed(Exception):  # noqa: N818
    """The run cannot go on."""


@dataclass(frozen=True)
class StormPlan:
    """How long the storm is, and who works in it. `pause`: seconds between two faults, `think`: between two requests of
    a client, `silence`: after which routers give up on a node that says nothing. `in_memory`: stores in memory rather
    than LMDB."""

    seconds: float = 30.0
    clients: int = 6
    think: tuple[float, float] = (0.01, 0.2)
    weights: Mapping[str, float] = field(default_factory=lambda: DEFAULT_WEIGHTS)
    pause: tuple[float, float] = (0.2, 2.2)
    in_memory: bool = False
    silence: float = 0.5


class Scenario(ABC):
    """One run of one seed. `violations`: what was found."""

    def __init__(self, seed: int, plan: StormPlan, shape: Shape, folder: Path) -> None:
        self.violations: list[str] = []
        self._plan = plan
        self.cluster = SimulatedCluster(seed, None if plan.in_memory else folder, silence=plan.silence, shape=shape)
        self.clients = [SimulatedClient(self.cluster, f"client-{number}") for number in range(plan.clients)]
        self.storm = Storm(self.cluster, self.clients, weights=plan.weights, pause=plan.pause)

    @abstractmethod
    async def prepare(self) -> None:
        """Make the tables; everything is up. Raises Failed."""

    @abstractmethod
    def work(self) -> Sequence[Callable[[], Awaitable[None]]]:
        """What each client does again and again: one step."""

    @abstractmethod
    async def look(self) -> None:
        """All is healed and serves: what has to come right now? Raises Failed."""

    @abstractmethod
    def check(self) -> None:
        """Add to `violations` what the histories and the replicas' rows show."""

    async def main(self) -> None:
        """All phases."""
        try:
            await started(self.cluster)
            await self.prepare()
            if not await self.cluster.until(lambda: converged(self.cluster), START_SECONDS):
                raise Failed("the new tables are not led everywhere")
            await self._break()
            await self._serves_again()
            await self.look()
            await self._repaired()
            await self.settled(MOVED_SECONDS)  # replicas may have been moved, or another one lead, since the last look
            self.violations += unequal_replicas(self.cluster)
            self.check()
            await self.cluster.until(lambda: not left_over(self.cluster), MOVED_SECONDS, step=0.5)
            self.violations += left_over(self.cluster)
        except Failed as failed:
            self.violations.append(str(failed))
        await self.cluster.close()
        self.violations += self.cluster.failures
        if self.cluster.totals["damage found"] and not any(self.storm.counts[kind] for kind in DAMAGING):
            self.violations.append("rows were damaged, and nothing had damaged them")

    async def _break(self) -> None:
        over = asyncio.Event()

        async def work(number: int, step: Callable[[], Awaitable[None]]) -> None:
            random = self.cluster.random(f"pause {number}")
            while not over.is_set():
                await step()
                await asyncio.sleep(random.uniform(*self._plan.think))

        working = [asyncio.ensure_future(work(number, step)) for number, step in enumerate(self.work())]
        await self.storm.run(self._plan.seconds)
        over.set()
        await self.storm.heal()
        await asyncio.wait(working)  # which takes them no longer than their patience
        for task in working:
            task.result()

    async def _serves_again(self) -> None:
        """Every partition is led soon; replicas that are made anew elsewhere may take longer to be equal."""
        cluster = self.cluster
        if not await cluster.until(lambda: all_served(cluster), SERVES_AGAIN_SECONDS):
            raise Failed(f"{SERVES_AGAIN_SECONDS:g} s after healing not all is served:\n{describe(cluster)}")
        for name in sorted(self.storm.drained):
            await self.storm.stop_draining(name)
        moving = any(self.storm.counts[kind] for kind in MOVING) or self.cluster.shape.replace_after < REPLACE_SECONDS
        await self.settled(MOVED_SECONDS if moving else SERVES_AGAIN_SECONDS)

    async def _repaired(self) -> None:
        """What bits have flipped in is found, and made anew; what is left then is a violation."""
        if self.storm.counts["flipped bit in a row"] or self.storm.counts["flipped bit in the log"]:
            await self.cluster.until(lambda: not any(unequal_replicas(self.cluster)), REPAIRED_SECONDS, step=0.5)
            await self.settled(SERVES_AGAIN_SECONDS)

    async def settled(self, seconds: float) -> None:
        """Wait until every partition serves with equal replicas. Raises Failed."""
        if not await self.cluster.until(lambda: converged(self.cluster), seconds):
            raise Failed(
                f"{seconds:g} s after healing not every partition serves with equal replicas:\n{describe(self.cluster)}"
            )


async def started(cluster: SimulatedCluster) -> None:
    """Start everything. Raises Failed."""
    cluster.start()
    if not await cluster.until(lambda: all(router.ready for router in cluster.routers), START_SECONDS):
        raise Failed("the routers do not get a catalog")
    service = cluster.auto_admin.service
    assert service is not None
    if not await cluster.until(lambda: service.live_nodes == len(cluster.nodes), START_SECONDS):
        raise Failed("the nodes do not report")


async def make_table(client: SimulatedClient, definition: dict[str, Any]) -> None:
    """Make a table. Raises Failed."""
    reply = await client.call("CreateTable", definition)
    if reply is None or reply.error not in ("", "ResourceInUseException"):  # that is the answer to a second try
        raise Failed(f"the table cannot be made: {reply}")


@dataclass
class Tally:
    """What a run came to, in numbers that can be added up."""

    operations: int = 0
    answered: int = 0
    messages: int = 0
    virtual_seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    """Elections, snapshots and the like."""

    def add(self, other: Tally) -> None:
        """Add another run's."""
        self.operations += other.operations
        self.answered += other.answered
        self.messages += other.messages
        self.virtual_seconds += other.virtual_seconds
        self.faults += other.faults
        self.events += other.events


R = TypeVar("R", bound=Scenario)


def run_scenario(make: Callable[[Path], R], mutate: Mutate = nullcontext) -> R:
    """Run a scenario from beginning to end. `mutate` breaks the code under test for the time of the run."""
    with tempfile.TemporaryDirectory(prefix="trizone-simulation-", dir=fast_folder()) as folder, mutate():
        run = make(Path(folder))
        # Reports to auto-admin carry the process's id, which would differ from run to run.
        promises, leases = Promises(), Leases(run.cluster)
        with (
            patch("os.getpid", return_value=1),
            noticed_errors() as errors,
            run.cluster.agreed.watch(),
            promises.watch(),
            leases.watch(),
        ):
            run_virtual(run.main())
        run.violations += [*errors, *promises.wrong[:3], *leases.wrong]
    return run


def fast_folder() -> str | None:
    """Where files cost little, if there is such a place."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


@dataclass
class Outcome:
    """What a run came to. `scenario` names the one to run again; empty: the storm."""

    seed: int
    about: str
    violations: list[str]
    tally: Tally
    trace: Trace
    scenario: str = ""

    def __str__(self) -> str:
        tally = self.tally
        return (
            f"seed {self.seed} ({self.about}): {tally.operations} operations ({tally.answered} answered), "
            f"{tally.faults.total()} faults, {tally.messages} messages, {len(self.violations)} violations"
        )

    def report(self) -> str:
        """The violations, and how to see them again."""
        scenario = f"--scenario {self.scenario} " if self.scenario else ""
        how = f"Replay: make sim SEED={self.seed} SEEDS=1 ARGS='{scenario}--trace FILE'"
        return "\n".join([str(self), *self.violations, how])
