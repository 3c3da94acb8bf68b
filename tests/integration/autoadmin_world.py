"""Auto-admin in one process with stand-ins for storage nodes and routers, over the in-memory network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from autoadmin.service import AutoAdmin
from autoadmin.state import MemoryState, StateStore
from cluster.convert import node_to_wire, update_from_wire, update_to_wire
from cluster.executor import ThreadExecutor
from cluster.memory_transport import MemoryNetwork, MemoryServer, MemoryTransport
from cluster.settings import AutoAdminSettings
from cluster.topology import NodePlace, PartitionState, Topology
from cluster.transport import Handlers, Stream, TransportError
from cluster.wire import admin_pb2, common_pb2, node_pb2
from dynamo.table import Table, decode_table, encode_table
from tests.unit.autoadmin_samples import CLUSTER, nodes

ADDRESS = "127.0.0.1:7000"


async def until(condition: Callable[[], bool]) -> None:
    """Let others run until `condition` holds, for what no event tells of."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0)


class ManualClock:
    """Moves when the test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def boottime(self) -> float:
        return self.now

    def wall(self) -> float:
        return 1_700_000_000.0 + self.now


class Watched:
    """A view of the catalog that a test waits on."""

    def __init__(self) -> None:
        self.topology = Topology()
        self.updates: list[common_pb2.CatalogUpdate] = []
        self._changed = asyncio.Condition()

    async def take(self, message: bytes) -> None:
        update = common_pb2.CatalogUpdate.FromString(message)
        self.updates.append(update)
        self.topology = self.topology.with_update(update_from_wire(update))
        async with self._changed:
            self._changed.notify_all()

    async def until(self, condition: Callable[[Topology], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: condition(self.topology))


class FakeNode:
    """Follows the catalog, leads every partition of which it is the preferred leader, and drops on order."""

    def __init__(self, network: MemoryNetwork, place: NodePlace) -> None:
        self.place = place
        self.view = Watched()
        self.leads = True
        self.drops = True
        self.cluster_id = CLUSTER
        self.ended = asyncio.Event()
        self._dropped: set[int] = set()
        self._transport = MemoryTransport(network)
        self._stream: Stream | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Serve its copy of the catalog, and open a session."""
        server = await self._transport.serve("127.0.0.1:0", Handlers(unary={"Node/Catalog": self._catalog}))
        self.place = replace(self.place, address=server.address)
        await self.connect()

    async def connect(self) -> None:
        """Open a session and report."""
        self.ended.clear()
        self._stream = await self._transport.open_stream(ADDRESS, "Node/Session")
        await self.report()
        self._task = asyncio.create_task(self._follow(self._stream))

    async def close(self) -> None:
        """End the session."""
        assert self._stream is not None
        self._stream.close()
        await self.ended.wait()

    async def report(self) -> None:
        """Tell what it leads and what it has dropped."""
        topology = self.view.topology
        leads = [
            node_pb2.ReplicaReport(partition=partition.id, replica=place.replica, role="leader", serving=True)
            for partition in topology.partitions_on(self.place.id)
            if (place := partition.replica_on(self.place.id)) and place.replica == partition.preferred_leader
        ]
        assert self._stream is not None
        await self._stream.send(
            node_pb2.Report(
                cluster_id=self.cluster_id,
                node=node_to_wire(self.place),
                catalog_epoch=topology.epoch,
                catalog_version=topology.version,
                replicas=leads if self.leads else [],
                dropped_replicas=self._dropped if self.drops else [],
            ).SerializeToString()
        )

    async def _follow(self, stream: Stream) -> None:
        while (message := await stream.receive()) is not None:
            await self.view.take(message)
            self._dropped |= {
                place.replica
                for partition in self.view.topology.partitions_on(self.place.id)
                if partition.state is PartitionState.DROPPED and (place := partition.replica_on(self.place.id))
            }
            with suppress(TransportError):  # auto-admin is gone again
                await self.report()
        self.ended.set()

    async def _catalog(self, _: bytes) -> bytes:
        return update_to_wire(self.view.topology.full()).SerializeToString()


class World:
    """One auto-admin, which can be killed and started again on the same state, and the network around it."""

    def __init__(self, **settings: object) -> None:
        self.network = MemoryNetwork()
        self.clock = ManualClock()
        self.store: StateStore = MemoryState()
        self.settings = AutoAdminSettings(
            cluster_id=CLUSTER,
            data="unused",
            listen=ADDRESS,
            **settings,  # type: ignore[arg-type]
        )
        self.client = MemoryTransport(self.network)
        self.nodes = [FakeNode(self.network, place) for place in nodes()]
        self._executor = ThreadExecutor("state")
        self.admin = self._admin()

    def _admin(self) -> AutoAdmin:
        transport = MemoryTransport(self.network)
        return AutoAdmin(self.settings, self.store, transport, self._executor, self.clock)

    async def start(self) -> None:
        """Start auto-admin and all nodes; return once all are known."""
        await self.admin.start()
        for node in self.nodes:
            await node.start()
        for node in self.nodes:
            await node.view.until(lambda topology: len(topology.nodes) == len(self.nodes))

    async def kill(self) -> None:
        """Kill auto-admin as SIGKILL does."""
        server = self.network.server(ADDRESS)
        assert isinstance(server, MemoryServer)
        await server.crash()
        await self.admin.stop()

    async def restart(self) -> None:
        """Start it again on what is durable, and let the nodes come back."""
        self.admin = self._admin()
        await self.admin.start()
        for node in self.nodes:
            await node.ended.wait()
            await node.connect()

    async def stop(self) -> None:
        await self.admin.stop()
        await self.client.close()
        self._executor.close()

    # --- as a router ---

    async def call(self, method: str, name: str, table: Table | None = None, **members: int) -> admin_pb2.TableReply:
        """One of the calls that change tables."""
        request = admin_pb2.TableRequest(
            cluster_id=CLUSTER, name=name, definition=encode_table(table) if table else b"", **members
        )
        answer = await self.client.call(ADDRESS, f"Admin/{method}", request.SerializeToString(), 30)
        return admin_pb2.TableReply.FromString(answer)

    async def watch(self, epoch: int = 0, version: int = 0) -> tuple[Stream, Watched]:
        """Follow the catalog as a router does."""
        stream, watched = await self.client.open_stream(ADDRESS, "Admin/Watch"), Watched()
        request = admin_pb2.WatchRequest(
            cluster_id=CLUSTER, epoch=epoch, version=version, router=common_pb2.RouterRecord(name="router-1")
        )
        await stream.send(request.SerializeToString())
        return stream, watched

    async def status(self) -> admin_pb2.StatusReply:
        """Admin/Status."""
        request = admin_pb2.StatusRequest(cluster_id=CLUSTER).SerializeToString()
        return admin_pb2.StatusReply.FromString(await self.client.call(ADDRESS, "Admin/Status", request, 5))


def described(reply: admin_pb2.TableReply) -> Table:
    """The table in a reply that is no error."""
    assert not reply.error_type, reply.error_message
    return decode_table(reply.table.definition)
