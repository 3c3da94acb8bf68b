"""All services of a small cluster on one event loop, over in-memory transports. `trizone.Cluster` runs it."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from autoadmin.service import AutoAdmin
from autoadmin.state import MemoryState
from cluster.clock import SystemClock
from cluster.executor import ThreadExecutor
from cluster.ids import cluster_id
from cluster.local_disk import LocalDisk
from cluster.memory_transport import MemoryNetwork, MemoryTransport
from cluster.random_source import SystemRandom
from cluster.settings import AutoAdminSettings, ReplicatorSettings, RouterSettings, StorageNodeSettings
from dynamo.user import User
from replicator.service import Replicator
from router.credentials import KnownKey
from router.service import Router
from storagenode.node import Seams, StorageNode
from storagenode.storage.lmdb_store import LmdbStores
from trizone.composition import zones_of

PAUSE_S = 0.002
SEGMENT_BYTES = 4 << 20
"""Smaller than a real node's: a test writes little and wants to start at once."""


class Services:
    """Auto-admin, one storage node per zone and a router; ready when `async with` has entered."""

    def __init__(
        self,
        region: str,
        folder: Path,
        network: MemoryNetwork | None = None,
        replicator: dict[str, Any] | None = None,
        *,
        auto_admins: int = 1,
        credentials: tuple[str, str] | None = None,
        **node_settings: Any,
    ) -> None:
        """`node_settings`: settings of the storage nodes that are not to be their defaults. Clusters of several regions
        share a `network`; then `replicator` are the settings of a replicator that is started, too, `peers` above all.
        `auto_admins`: members of auto-admin, one or three. `credentials`: access key and secret of a user who may do
        everything; then requests have to be signed.
        """
        self._region = region
        self._folder = folder
        self._node_settings: dict[str, Any] = {"log_segment_bytes": SEGMENT_BYTES, **node_settings}
        self._replicator_settings = replicator
        self._known_keys = [KnownKey(User("user", 0.0, admin=True), *credentials)] if credentials else []
        self._network = network or MemoryNetwork()
        self._clock = SystemClock()
        self._random = SystemRandom()
        self._cluster_id = cluster_id(self._random)
        self._stack = AsyncExitStack()
        self._admin_addresses = _admin_addresses(self._cluster_id, auto_admins)
        self.nodes: list[StorageNode] = []
        self.auto_admins: list[AutoAdmin] = []
        self.router: Router
        self.replicator: Replicator | None = None

    async def __aenter__(self) -> Self:
        """Start everything. Raises what keeps a service from starting."""
        async with AsyncExitStack() as stack:
            for address in self._admin_addresses:
                self.auto_admins.append(await self._start_auto_admin(stack, address))
            for zone in zones_of(self._region):
                self.nodes.append(await self._start_node(stack, zone))
            while self.auto_admin.live_nodes < len(self.nodes) or not all(map(_knows_leader, self.auto_admins)):  # noqa: ASYNC110 (it is a number, not an event)
                await asyncio.sleep(PAUSE_S)
            self.router = await self._start_router(stack)
            if self._replicator_settings is not None:
                self.replicator = await self._start_replicator(stack, self._replicator_settings)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop everything, what was started last first."""
        await self._stack.aclose()

    def _transport(self, stack: AsyncExitStack) -> MemoryTransport:
        transport = MemoryTransport(self._network)
        stack.push_async_callback(transport.close)
        return transport

    def _executor(self, stack: AsyncExitStack, name: str) -> ThreadExecutor:
        executor = ThreadExecutor(name)
        stack.callback(executor.close)
        return executor

    @property
    def auto_admin(self) -> AutoAdmin:
        """The member of auto-admin that leads; the first one while none does."""
        return next((member for member in self.auto_admins if member.serving), self.auto_admins[0])

    async def _start_auto_admin(self, stack: AsyncExitStack, address: str) -> AutoAdmin:
        settings = AutoAdminSettings(
            cluster_id=self._cluster_id,
            region=self._region,
            data=str(self._folder),
            listen=address,
            peers=tuple(other for other in self._admin_addresses if other != address),
        )
        transport, executor = self._transport(stack), self._executor(stack, "auto-admin")
        auto_admin = AutoAdmin(settings, MemoryState(), transport, executor, self._clock, self._random)
        await auto_admin.start()
        stack.push_async_callback(auto_admin.stop)
        return auto_admin

    async def _start_node(self, stack: AsyncExitStack, zone: str) -> StorageNode:
        data = self._folder / zone
        settings = StorageNodeSettings(
            cluster_id=self._cluster_id,
            region=self._region,
            name=f"{zone}-1",
            zone=zone,
            data=str(data),
            auto_admins=self._admin_addresses,
            **self._node_settings,
        )
        disk = LocalDisk()
        seams = Seams(
            clock=self._clock,
            disk=disk,
            stores=LmdbStores(disk, f"{data}-partitions", f"{data}-trash", self._clock.wall),
            transport=self._transport(stack),
            random=self._random,
            log_executor=self._executor(stack, f"{zone}-log"),
            executor=self._executor(stack, zone),
        )
        node = StorageNode(settings, seams)
        await node.start()
        running = asyncio.create_task(node.run())
        stack.push_async_callback(_stopped, node, running)
        return node

    async def _start_router(self, stack: AsyncExitStack) -> Router:
        settings = RouterSettings(
            cluster_id=self._cluster_id,
            region=self._region,
            auto_admins=self._admin_addresses,
            seeds=tuple(node.address for node in self.nodes),
            regions=self._regions(),
            auth="enforce" if self._known_keys else "off",
        )
        transport = self._transport(stack)
        router = Router(settings, transport, self._clock, self._random, known_keys=self._known_keys)
        stack.push_async_callback(router.stop)
        await router.start(shared=False)
        return router

    def _regions(self) -> tuple[str, ...]:
        """All regions that there are."""
        if self._replicator_settings is None:
            return ()
        peers = self._replicator_settings.get("peers", ())
        return (self._region, *(peer.partition("=")[0] for peer in peers))

    async def _start_replicator(self, stack: AsyncExitStack, settings: dict[str, Any]) -> Replicator:
        replicator = Replicator(
            ReplicatorSettings(
                cluster_id=self._cluster_id,
                region=self._region,
                auto_admins=self._admin_addresses,
                seeds=tuple(node.address for node in self.nodes),
                **settings,
            ),
            self._transport(stack),
            self._clock,
            self._random,
        )
        stack.push_async_callback(replicator.stop)
        await replicator.start()
        return replicator


def _admin_addresses(cluster_id: str, count: int) -> tuple[str, ...]:
    """In memory a host may have any name."""
    return tuple(f"auto-admin-{number}.{cluster_id}:7000" for number in range(1, count + 1))


def _knows_leader(member: AutoAdmin) -> bool:
    return member.serving or member.member.leader > 0


async def _stopped(node: StorageNode, running: asyncio.Task[None]) -> None:
    """Stop as a killed process would: the data is not needed any more."""
    running.cancel()
    await asyncio.wait([running])
    node.abandon()
