"""A whole cluster in one thread: the real storage nodes, auto-admin and routers over simulated machines.

Each member lives on a machine of its own, which keeps its disk over the lives of its process. LMDB is real, in a folder
that should be on a tmpfs.
"""

from __future__ import annotations

import asyncio
import errno
import shutil
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from autoadmin.service import AutoAdmin
from autoadmin.state import MemoryState
from cluster.local_disk import LocalDisk
from cluster.random_source import SeededRandom
from cluster.settings import AutoAdminSettings, RouterSettings, StorageNodeSettings
from dynamo.errors import ApiError
from router.gateway import Answer, Received
from router.service import Router
from storagenode.hosted import HostedReplica
from storagenode.log.errors import LogError, LogFull
from storagenode.node import Seams, StorageNode
from storagenode.storage.memory_store import MemoryStores
from storagenode.storage.store import StoreError, Stores
from tests.simulation.agreed_log import AgreedLog
from tests.simulation.shape import Shape
from tests.simulation.simulated_disk import SimulatedDisk
from tests.simulation.simulated_machine import CutShort, SimulatedClock, SimulatedExecutor
from tests.simulation.simulated_network import SimulatedNetwork, SimulatedTransport
from tests.simulation.simulated_process import Process
from tests.simulation.simulated_stores import WatchedStores, spoil
from tests.simulation.trace import Trace

CLUSTER_ID = "simulated"
REGION = "us-east-1"
AUTO_ADMIN_PORT = 7000
NODE_PORT = 7100
DRIFT_MAX = 0.01
SKEW_MAX = 15.0


@dataclass(frozen=True)
class Place:
    """Where a cluster is: its region, what the names of its machines begin with, and all regions there are, if it is
    not the only one."""

    region: str = REGION
    prefix: str = ""
    regions: tuple[str, ...] = ()


class Member(ABC):
    """A machine and the process on it. `start` begins a life, `crash` ends it."""

    def __init__(self, cluster: SimulatedCluster, name: str) -> None:
        self.name = name
        self.process: Process | None = None
        self.dying = False
        self.lives = 0
        self._cluster = cluster
        self._random = cluster.random(name)
        self._transport: SimulatedTransport | None = None
        self.clock = SimulatedClock(
            skew=self._random.uniform(-SKEW_MAX, SKEW_MAX),
            drift=self._random.uniform(-DRIFT_MAX, DRIFT_MAX),
            boot_offset=self._random.uniform(0, 1e6),
        )

    @property
    def up(self) -> bool:
        """Whether there is a process."""
        return self.process is not None

    @property
    def down(self) -> bool:
        """Whether a life may begin."""
        return self.process is None and not self.dying

    def start(self) -> None:
        """Begin a life."""
        assert self.down
        self.lives += 1
        self._cluster.trace.note(f"{self.name} starts")
        if self._transport is not None:
            self._transport.restored()
        self._transport = self._cluster.network.transport(self.name)
        self.process = Process(self.name, self._cluster.failed)
        self._begin(self.process, self._transport)

    @abstractmethod
    def _begin(self, process: Process, transport: SimulatedTransport) -> None:
        """Start what runs on this machine."""

    async def crash(self, *, power_lost: bool = False) -> None:
        """End this life: the process is killed, or the whole machine loses power."""
        process = self.process
        if process is None:
            return
        self.process, self.dying = None, True
        self._cluster.trace.note(f"{self.name} {'loses power' if power_lost else 'is killed'}")
        assert self._transport is not None
        self._transport.die(power_lost=power_lost)
        try:
            self._dying()
            await process.kill()
            self._died(power_lost=power_lost)
        finally:
            self.dying = False

    def _dying(self) -> None:  # noqa: B027 (nothing to do is an answer)
        """Before the process is unwound."""

    def _died(self, *, power_lost: bool) -> None:  # noqa: B027 (likewise)
        """After it was."""

    def seeded(self) -> SeededRandom:
        """A source of chance for one life."""
        return SeededRandom(self._random.getrandbits(62))


class NodeMember(Member):
    """A storage node."""

    def __init__(
        self, cluster: SimulatedCluster, name: str, zone: str, folder: Path | None, settings: Mapping[str, Any]
    ) -> None:
        super().__init__(cluster, name)
        self.zone = zone
        self.disk = SimulatedDisk()
        self.node: StorageNode | None = None
        self.executors: list[SimulatedExecutor] = []
        self._folder = folder
        self._memory_stores = MemoryStores()
        self._synced: dict[str, int] = {}
        self._cut_loses_power = False
        self.closed_cleanly = False
        self.disk_fails = False
        """Whether a failing disk is why this life may end with an error."""
        self.log_is_damaged = self.needs_new_disk = False
        """Whether bits of its log have flipped; and whether it could not start any more because of that."""
        self._settings = StorageNodeSettings(
            cluster_id=CLUSTER_ID,
            region=cluster.place.region,
            name=name,
            zone=zone,
            data="data",
            listen=f"{name}:{NODE_PORT}",
            auto_admins=cluster.auto_admin_addresses,
            **settings,
        )

    def _begin(self, process: Process, transport: SimulatedTransport) -> None:
        def cut_short() -> None:
            self._cluster.start_work(self.crash(power_lost=self._cut_loses_power))

        self.executors = [SimulatedExecutor(Random(self._random.getrandbits(62)), cut_short=cut_short) for _ in "lw"]
        seams = Seams(
            clock=self.clock,
            disk=self.disk,
            stores=self._stores(),
            transport=transport,
            random=self.seeded(),
            log_executor=self.executors[0],
            executor=self.executors[1],
        )
        self.node = StorageNode(self._settings, seams)
        process.start(self._live(self.node))

    async def _live(self, node: StorageNode) -> None:
        try:
            await node.start()
            await node.run()
            self.closed_cleanly = True
        except Exception as error:
            if not self.ends_by(error):
                raise
            self._cluster.trace.note(f"{self.name} ends: {error!r}")
        self._cluster.start_work(self.crash())

    def ends_by(self, error: BaseException) -> bool:
        """Whether a failing disk, and nothing else, is why this life ends."""
        if isinstance(error, BaseExceptionGroup):
            return all(self.ends_by(each) for each in error.exceptions)
        if self.log_is_damaged and isinstance(error, LogError):
            self.needs_new_disk = True
            return True
        if self.disk.capacity is not None and isinstance(error, LogFull):
            return True  # it was to stop, and could not write what was left
        return self.disk_fails and isinstance(error, OSError | LogError | StoreError)

    def _stores(self) -> Stores:
        if self._folder is None:
            return self._memory_stores
        return self._watched_stores()

    def _watched_stores(self) -> WatchedStores:
        stores = WatchedStores(LocalDisk(), f"{self._folder}/partitions", f"{self._folder}/trash", self.clock.wall)
        stores.synced = self._synced
        return stores

    def crash_at(self, operation: str, skipped: int, *, power_lost: bool) -> None:
        """Crash before the disk's operation of this kind that follows `skipped` others."""
        left, self._cut_loses_power = skipped, power_lost

        def fault(found: str, _path: str) -> OSError | None:
            nonlocal left
            if found == operation:
                left -= 1
                if left < 0:
                    self.disk.fault = None
                    raise CutShort
            return None

        self.disk.fault = fault

    def fail_at(self, operation: str, skipped: int, lasting: bool) -> None:
        """Let the disk fail with EIO at an operation of this kind, after `skipped` others; `lasting`: from then on."""
        left, self.disk_fails = skipped, True

        def fault(found: str, path: str) -> OSError | None:
            nonlocal left
            if found != operation:
                return None
            left -= 1
            if left >= 0:
                return None
            if not lasting:
                self.disk.fault = None
            return OSError(errno.EIO, "the disk fails", path)

        self.disk.fault = fault

    @property
    def leads(self) -> bool:
        """Whether it leads a partition, as it believes."""
        node = self.node
        return node is not None and hasattr(node, "replicas") and any(hosted.serving for hosted in node.replicas)

    def hosted_all(self) -> list[HostedReplica]:
        """The replicas on it; none while it is down or starts."""
        node = self.node
        return list(node.replicas) if node is not None and hasattr(node, "replicas") else []

    def stop_cleanly(self) -> None:
        """Order the node to end as on SIGTERM; its process goes away once it has."""
        if self.node is not None and self.process is not None:
            self.process.call(self.node.stop)

    def hand_over_all(self) -> None:
        """Order the node to let others lead, as a planned move does."""
        node = self.node
        if node is not None and self.process is not None and hasattr(node, "replicas"):
            for hosted in node.hosted_all():
                self.process.call(node.hand_over, hosted)

    def _dying(self) -> None:
        if not self.disk_fails:
            self.disk.fault = None  # a crash at an operation that did not come
        self.disk.kill()

    def _died(self, *, power_lost: bool) -> None:
        node, self.node = self.node, None
        self.disk_fails = self.disk.fault is not None
        if node is not None and hasattr(node, "scrub"):
            scrub = node.scrub
            self._cluster.totals["damage found"] += scrub.damaged_rows + scrub.wrong_sums + scrub.differences
        if node is not None and hasattr(node, "installer"):
            self._cluster.totals["elections"] += node.elections_won
            self._cluster.totals["snapshots"] += node.snapshots.taken
            self._cluster.totals["snapshots installed"] += node.installer.installed
        closed, self.closed_cleanly = self.closed_cleanly, False
        if node is not None and hasattr(node, "log") and not closed:
            if hasattr(node, "replicas"):
                node.abandon()
            else:
                node.log.close()
        if power_lost:
            self.lose_power()

    def lose_disk(self) -> None:
        """The next life begins on an empty disk."""
        assert self.down
        self._cluster.trace.note(f"{self.name} gets an empty disk")
        self.disk = SimulatedDisk()
        self.log_is_damaged = self.needs_new_disk = False
        self._synced.clear()
        self._forget_stores()

    def lose_power(self) -> None:
        """The machine, on which nothing runs any more, loses what was not synced."""
        self.disk.crash(self._random)
        if self._folder is not None:
            spoil(self._watched_stores(), self._folder / "partitions", self._random)
        elif self._random.random() < 0.5:  # else it is left as it is: nobody may trust it
            self._forget_stores()

    def _forget_stores(self) -> None:
        self._memory_stores = MemoryStores()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


class AutoAdminMember(Member):
    """A member of auto-admin; its state is durable."""

    def __init__(self, cluster: SimulatedCluster, name: str, partitions: int) -> None:
        super().__init__(cluster, name)
        self.service: AutoAdmin | None = None
        self._state = MemoryState()
        self._settings = AutoAdminSettings(
            cluster_id=CLUSTER_ID,
            region=cluster.place.region,
            data="data",
            listen=f"{name}:{AUTO_ADMIN_PORT}",
            peers=tuple(peer for peer in cluster.auto_admin_addresses if not peer.startswith(f"{name}:")),
            partitions_per_table=partitions,
            replace_after=cluster.shape.replace_after,
        )

    def _begin(self, process: Process, transport: SimulatedTransport) -> None:
        executor = SimulatedExecutor(Random(self._random.getrandbits(62)))
        self.service = AutoAdmin(self._settings, self._state, transport, executor, self.clock, self.seeded())
        process.start(self.service.start())

    def lose_disk(self) -> None:
        """The next life begins on an empty disk."""
        assert self.down
        self._state = MemoryState()


class RouterMember(Member):
    """A router. Clients hand it requests where its HTTP front would."""

    def __init__(self, cluster: SimulatedCluster, name: str, silence: float) -> None:
        super().__init__(cluster, name)
        self.router: Router | None = None
        self.ready = False
        self._awaited: dict[asyncio.Future[Answer], None] = {}
        self._settings = RouterSettings(
            cluster_id=CLUSTER_ID,
            region=cluster.place.region,
            name=name,
            auto_admins=cluster.auto_admin_addresses,
            seeds=cluster.node_addresses,
            regions=cluster.place.regions,
            silent_node_seconds=silence,
        )

    def _begin(self, process: Process, transport: SimulatedTransport) -> None:
        self.router = Router(self._settings, transport, self.clock, self.seeded())
        process.start(self._live(self.router))

    async def _live(self, router: Router) -> None:
        router.catalog.start()
        await router.catalog.ready()
        self.ready = True

    def _dying(self) -> None:
        self.ready = False
        awaited, self._awaited = self._awaited, {}
        for answered in awaited:
            if not answered.done():
                answered.set_exception(ConnectionResetError(f"{self.name} died"))

    def request(self, received: Received) -> asyncio.Future[Answer]:
        """Hand a request to the gateway. Raises ConnectionError; the future's may be one as well."""
        if self.router is None or self.process is None or not self.ready:
            raise ConnectionRefusedError(f"{self.name} does not listen")
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._awaited[answered] = None

        def respond(answer: Answer) -> None:
            if self._awaited.pop(answered, "gone") is None and not answered.done():
                answered.set_result(answer)

        self.process.call(self.router._gateway.handle, received, respond)
        return answered


def auto_admin_names(count: int, prefix: str = "") -> list[str]:
    """Auto-admin's members."""
    return [f"{prefix}auto-admin", *(f"{prefix}auto-admin-{number}" for number in range(2, count + 1))]


class SimulatedCluster:
    """All members, their network and their trace. `folder`: where LMDB lives; None: stores in memory. `silence`: after
    so many seconds routers give up on a node that says nothing. `network`: one that several clusters share."""

    def __init__(
        self,
        seed: int,
        folder: Path | None,
        *,
        routers: int = 2,
        shape: Shape | None = None,
        silence: float = 0.5,
        auto_admins: int = 0,
        place: Place = Place(),
        network: SimulatedNetwork | None = None,
    ) -> None:
        self.seed = seed
        self.place = place
        self.shape = shape or Shape()
        auto_admins = auto_admins or self.shape.auto_admins
        self.trace = Trace() if network is None or network.trace is None else network.trace
        self.agreed = AgreedLog()
        self.totals: Counter[str] = Counter()
        """What the nodes did in all their lives: elections won, snapshots taken and installed."""
        self.closed = False
        self.failures: list[str] = []
        self.network = network or SimulatedNetwork(self.random("network"), self.trace)
        names = auto_admin_names(auto_admins, place.prefix)
        nodes = [(place.prefix + name, zone) for name, zone in self.shape.nodes]
        self.auto_admin_addresses = tuple(f"{name}:{AUTO_ADMIN_PORT}" for name in names)
        self.node_addresses = tuple(f"{name}:{NODE_PORT}" for name, _ in nodes)
        self.auto_admins = [AutoAdminMember(self, name, self.shape.partitions) for name in names]
        self.nodes = [
            NodeMember(self, name, zone, None if folder is None else folder / name, self.shape.settings)
            for name, zone in nodes
        ]
        self.routers = [
            RouterMember(self, f"{place.prefix}router-{number}", silence) for number in range(1, routers + 1)
        ]
        self._work: set[asyncio.Task[None]] = set()

    @property
    def auto_admin(self) -> AutoAdminMember:
        """The member of auto-admin that leads, as far as it knows; the first one if none does."""
        leads = [member for member in self.auto_admins if member.service is not None and member.service.serving]
        return next((member for member in leads if member.up), self.auto_admins[0])

    @property
    def members(self) -> list[Member]:
        """Every machine."""
        return [*self.auto_admins, *self.nodes, *self.routers]

    def random(self, purpose: str) -> Random:
        """A source of chance of its own for each purpose, so that one more draw here changes nothing there."""
        return Random(f"{self.seed}/{self.place.prefix}{purpose}")

    def failed(self, name: str, error: BaseException) -> None:
        """Something broke that nobody foresaw. An ApiError is an answer, which whoever waits for the task gives."""
        if isinstance(error, ApiError) or any(node.ends_by(error) for node in self.nodes if node.name == name):
            return
        self.failures.append(f"{name}: {error!r}")
        self.trace.note(f"{name} FAILED {error!r}")

    def start_work(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` beside everything else, as nobody's process."""
        task = asyncio.get_running_loop().create_task(work, context=self.network.context)
        self._work.add(task)
        task.add_done_callback(self._worked)

    def _worked(self, task: asyncio.Task[None]) -> None:
        self._work.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failures.append(f"the simulation itself: {error!r}")

    def start(self) -> None:
        """Start every machine that is down, those whose disk was given up with an empty one."""
        for node in self.nodes:
            if node.down and node.needs_new_disk:
                node.lose_disk()
        for member in self.members:
            if member.down:
                member.start()

    async def until(self, condition: Callable[[], bool], seconds: float, step: float = 0.01) -> bool:
        """Wait for a condition, for so many virtual seconds at the most; whether it came true."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while not condition():
            if loop.time() >= deadline:
                return False
            await asyncio.sleep(step)
        return True

    async def close(self) -> None:
        """Kill everything."""
        self.closed = True
        for member in self.members:
            await member.crash()
