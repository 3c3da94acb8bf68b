"""A whole cluster in one thread: the real storage nodes, auto-admin and routers over simulated machines.

Each member lives on a machine of its own, which keeps its disk over the lives of its process. LMDB is real, in a folder
that should be on a tmpfs.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any

from autoadmin.service import AutoAdmin
from autoadmin.state import MemoryState
from cluster.local_disk import LocalDisk
from cluster.random_source import SeededRandom
from cluster.settings import AutoAdminSettings, RouterSettings, StorageNodeSettings
from router.gateway import Answer, Received
from router.service import Router
from storagenode.node import Seams, StorageNode
from storagenode.storage.lmdb_store import LmdbStores
from storagenode.storage.memory_store import MemoryStores
from storagenode.storage.store import Stores
from tests.simulation.simulated_disk import SimulatedDisk
from tests.simulation.simulated_machine import CutShort, SimulatedClock, SimulatedExecutor
from tests.simulation.simulated_network import SimulatedNetwork, SimulatedTransport
from tests.simulation.simulated_process import Process
from tests.simulation.trace import Trace

CLUSTER_ID = "simulated"
REGION = "us-east-1"
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
AUTO_ADMIN_ADDRESS = "auto-admin:7000"
NODE_PORT = 7100
SEGMENT_BYTES = 256 << 10
"""Small, so that logs roll over many times a minute."""
DRIFT_MAX = 0.01
SKEW_MAX = 15.0


class Member:
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

    def _begin(self, process: Process, transport: SimulatedTransport) -> None:
        raise NotImplementedError

    async def crash(self, *, power_lost: bool = False) -> None:
        """End this life: the process is killed, or the whole machine loses power."""
        process = self.process
        if process is None:
            return
        self.process, self.dying = None, True
        self._cluster.trace.note(f"{self.name} {'loses power' if power_lost else 'is killed'}")
        assert self._transport is not None
        self._transport.die(power_lost=power_lost)
        self._dying()
        await process.kill()
        self._died(power_lost=power_lost)
        self.dying = False

    def _dying(self) -> None:
        """Before the process is unwound."""

    def _died(self, *, power_lost: bool) -> None:
        """After it was."""

    def seeded(self) -> SeededRandom:
        """A source of chance for one life."""
        return SeededRandom(self._random.getrandbits(62))


class NodeMember(Member):
    """A storage node."""

    def __init__(self, cluster: SimulatedCluster, name: str, zone: str, folder: Path | None) -> None:
        super().__init__(cluster, name)
        self.disk = SimulatedDisk()
        self.node: StorageNode | None = None
        self.executors: list[SimulatedExecutor] = []
        self._folder = folder
        self._memory_stores = MemoryStores()
        self._cut_loses_power = False
        self.closed_cleanly = False
        self._settings = StorageNodeSettings(
            cluster_id=CLUSTER_ID,
            region=REGION,
            name=name,
            zone=zone,
            data="data",
            listen=f"{name}:{NODE_PORT}",
            auto_admins=(AUTO_ADMIN_ADDRESS,),
            log_segment_bytes=SEGMENT_BYTES,
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
        await node.start()
        await node.run()
        self.closed_cleanly = True
        self._cluster.start_work(self.crash())

    def _stores(self) -> Stores:
        if self._folder is None:
            return self._memory_stores
        return LmdbStores(LocalDisk(), f"{self._folder}/partitions", f"{self._folder}/trash", self.clock.wall)

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

    @property
    def leads(self) -> bool:
        """Whether it leads a partition, as it believes."""
        node = self.node
        return node is not None and hasattr(node, "replicas") and any(hosted.serving for hosted in node.replicas)

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
        self.disk.fault = None
        self.disk.kill()

    def _died(self, *, power_lost: bool) -> None:
        node, self.node = self.node, None
        closed, self.closed_cleanly = self.closed_cleanly, False
        if node is not None and hasattr(node, "log") and not closed:
            if hasattr(node, "replicas"):
                node.abandon()
            else:
                node.log.close()
        if power_lost:
            self.disk.crash(self._random)
            if self._random.random() < 0.5:  # else it is left as it is: nobody may trust it
                self._forget_stores()

    def _forget_stores(self) -> None:
        self._memory_stores = MemoryStores()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


class AutoAdminMember(Member):
    """Auto-admin; its state is durable."""

    def __init__(self, cluster: SimulatedCluster, partitions: int) -> None:
        super().__init__(cluster, "auto-admin")
        self.service: AutoAdmin | None = None
        self._state = MemoryState()
        self._settings = AutoAdminSettings(
            cluster_id=CLUSTER_ID,
            region=REGION,
            data="data",
            listen=AUTO_ADMIN_ADDRESS,
            partitions_per_table=partitions,
        )

    def _begin(self, process: Process, transport: SimulatedTransport) -> None:
        executor = SimulatedExecutor(Random(self._random.getrandbits(62)))
        self.service = AutoAdmin(self._settings, self._state, transport, executor, self.clock)
        process.start(self.service.start())


class RouterMember(Member):
    """A router. Clients hand it requests where its HTTP front would."""

    def __init__(self, cluster: SimulatedCluster, name: str, silence: float) -> None:
        super().__init__(cluster, name)
        self.router: Router | None = None
        self.ready = False
        self._awaited: dict[asyncio.Future[Answer], None] = {}
        self._settings = RouterSettings(
            cluster_id=CLUSTER_ID,
            region=REGION,
            name=name,
            auto_admins=(AUTO_ADMIN_ADDRESS,),
            seeds=tuple(f"{node}:{NODE_PORT}" for node in node_names()),
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


def node_names() -> list[str]:
    """The storage nodes, one in each zone."""
    return [f"node-{zone[-1]}" for zone in ZONES]


class SimulatedCluster:
    """All members, their network and their trace. `folder`: where LMDB lives; None: stores in memory. `silence`: after
    so many seconds routers give up on a node that says nothing."""

    def __init__(
        self, seed: int, folder: Path | None, *, routers: int = 2, partitions: int = 2, silence: float = 0.5
    ) -> None:
        self.seed = seed
        self.trace = Trace()
        self.failures: list[str] = []
        self.network = SimulatedNetwork(self.random("network"), self.trace)
        self.auto_admin = AutoAdminMember(self, partitions)
        self.nodes = [
            NodeMember(self, name, zone, None if folder is None else folder / name)
            for name, zone in zip(node_names(), ZONES, strict=True)
        ]
        self.routers = [RouterMember(self, f"router-{number}", silence) for number in range(1, routers + 1)]
        self._work: set[asyncio.Task[None]] = set()

    @property
    def members(self) -> list[Member]:
        """Every machine."""
        return [self.auto_admin, *self.nodes, *self.routers]

    def random(self, purpose: str) -> Random:
        """A source of chance of its own for each purpose, so that one more draw here changes nothing there."""
        return Random(f"{self.seed}/{purpose}")

    def failed(self, name: str, error: BaseException) -> None:
        """Something broke that nobody foresaw."""
        self.failures.append(f"{name}: {error!r}")
        self.trace.note(f"{name} FAILED {error!r}")

    def start_work(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` beside everything else, as nobody's process."""
        task = asyncio.get_running_loop().create_task(work, context=self.network.context)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    def start(self) -> None:
        """Start every machine that is down."""
        for member in self.members:
            if member.down:
                member.start()

    async def until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait for a condition, for so many virtual seconds at the most; whether it came true."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while not condition():
            if loop.time() >= deadline:
                return False
            await asyncio.sleep(0.01)
        return True

    async def close(self) -> None:
        """Kill everything."""
        for member in self.members:
            await member.crash()
