"""A replicator put together from its parts, over whatever clock, chance and network it is given.

It holds nothing: cursors are kept by the partitions' leaders, membership by auto-admin. Any number may run, and die; of
several that would carry the same changes the leader lets one read and the others stand by.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Final, TypeVar

from google.protobuf.message import Message

from cluster.clock import Clock
from cluster.random_source import RandomSource
from cluster.requests.call import Call
from cluster.requests.executor import Executor
from cluster.settings import ReplicatorSettings
from cluster.topology import Topology
from cluster.transport import Handlers, Server, Transport
from cluster.wire import regions_pb2, storage_pb2
from dynamo.errors import ApiError
from dynamo.regions import PRESENT, readers_of
from dynamo.table import Replica, Table
from replicator.apply import Applier
from replicator.catalog import RegionCatalog
from replicator.compare import Comparer
from replicator.horizon import Horizon
from replicator.link import Link, LinkKey, wanted_links
from replicator.membership import Membership
from replicator.peers import Peers
from replicator.status import TableLink

SCRUB_LOOK_SECONDS: Final = 5.0
"""How often it is looked whether a comparison is due, at the least."""
SILENCE_SECONDS: Final = 2.0
"""A node that owes answers and says nothing for so long is given up: longer than it may wait for a change."""
PAUSE_SECONDS: Final = 1.0
"""After a round that failed in a way nobody thought of."""

_log = logging.getLogger(__name__)
Request = TypeVar("Request", bound=Message)


class Replicator:
    """Carries changes of one region's global tables to the others, and takes theirs."""

    def __init__(self, settings: ReplicatorSettings, transport: Transport, clock: Clock, random: RandomSource) -> None:
        self.settings = settings
        self.clock = clock
        self.region = settings.region
        self.reader = random.below((1 << 63) - 1) + 1
        self.peers = Peers(transport, settings.peers)
        self.catalog = RegionCatalog(transport, settings.cluster_id, settings.auto_admins, settings.seeds)
        self.requests = Executor(transport, self.catalog, clock, settings.cluster_id, silence=SILENCE_SECONDS)
        self._transport = transport
        self._links: dict[LinkKey, tuple[Link, asyncio.Task[None]]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._server: Server | None = None
        self._compared: dict[tuple[int, str], tuple[float, int, bool]] = {}
        self._applier = Applier(self.region, self.catalog, self.requests)
        self._comparer = Comparer(self.region, lambda: self.topology, self.requests, self.peers, asyncio.sleep)
        self.membership = Membership(
            self.region,
            self.catalog,
            self.peers,
            clock,
            items=self._items,
            filled=self._filled,
            cut_off=self._cut_off,
        )
        self.horizon = Horizon(
            self.region,
            self.catalog,
            self.requests,
            self.peers,
            clock,
            settings.tombstone_seconds,
            self._equal,
        )

    @property
    def topology(self) -> Topology:
        """The newest view of the region's own catalog."""
        return self.catalog.topology

    @property
    def address(self) -> str:
        """Where it listens; empty before `start`."""
        return "" if self._server is None else self._server.address

    @property
    def ready(self) -> bool:
        """Whether it serves and has a catalog."""
        return self._server is not None and self.catalog.known

    # --- life ---

    async def start(self) -> None:
        """Listen and begin. Raises OSError when the port is taken."""
        self._server = await self._transport.serve(self.settings.listen, self._handlers())
        self._tasks = [
            asyncio.create_task(self._again_and_again(self._membership_round, lambda: self.settings.exchange_interval)),
            asyncio.create_task(self._again_and_again(self.horizon.round, lambda: self.horizon.pause)),
            asyncio.create_task(self._again_and_again(self._scrub, self._scrub_pause)),
        ]

    async def stop(self) -> None:
        """End all links and stop listening."""
        tasks = [*self._tasks, *(task for _, task in self._links.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._links.clear()
        server, self._server = self._server, None
        if server is not None:
            await server.stop()
        await self.requests.close()

    async def _again_and_again(self, work: Callable[[], Awaitable[None]], pause: Callable[[], float]) -> None:
        while True:
            try:
                await work()
            except Exception:
                _log.exception("a round failed; it goes on")
                await asyncio.sleep(PAUSE_SECONDS)
            await asyncio.sleep(pause())

    async def _membership_round(self) -> None:
        await self.membership.round()
        self._follow()

    def _follow(self) -> None:
        """Have exactly the links that the catalog asks for."""
        wanted = wanted_links(self.catalog.global_tables(), self.topology, readers_of)
        for key in [key for key in self._links if key not in wanted]:
            self._links.pop(key)[1].cancel()
        for key in sorted(wanted - self._links.keys()):
            link = Link(key, self, asyncio.sleep)
            self._links[key] = (link, asyncio.create_task(self._guarded(link)))

    async def _guarded(self, link: Link) -> None:
        while True:
            try:
                await link.run()
            except Exception:
                _log.exception("a link failed; it goes on")
                await asyncio.sleep(PAUSE_SECONDS)

    # --- what the parts ask ---

    def _links_of(self, table: Table, replica: Replica) -> list[Link]:
        return [
            link
            for key, (link, _) in self._links.items()
            if (key.table, key.region, key.since) == (table.id, replica.region, replica.since)
        ]

    async def _items(self, table: Table) -> int:
        """How many items a table has here. Raises ApiError."""
        calls = [
            Call(table, partition.low, storage_pb2.Statistics()) for partition in self.topology.partitions_of(table.id)
        ]
        items = 0
        for result in await self.requests.call_all(calls):
            if isinstance(result, ApiError):
                raise result
            items += result.statistics.items
        return items

    def _filled(self, table: Table, replica: Replica) -> bool:
        links = self._links_of(table, replica)
        partitions = self.topology.partitions_of(table.id)
        return len(links) == len(partitions) and all(link.state.filled for link in links)

    def _cut_off(self, table: Table, replica: Replica) -> bool:
        return any(link.state.cut_off for link in self._links_of(table, replica))

    def _equal(self, table: Table) -> bool:
        """Whether every region was compared, and found equal, since the last change of membership."""
        newest = _newest(table)
        found = [self._compared.get((table.id, replica.region)) for replica in readers_of(table)]
        return all(each is not None and each[1] == newest and each[2] for each in found)

    # --- scrub ---

    def _scrub_pause(self) -> float:
        return min(SCRUB_LOOK_SECONDS, self.settings.scrub_interval)

    async def _scrub(self) -> None:
        """Compare what is due: each pair of regions once an interval, and after each change of membership."""
        for table in self.catalog.global_tables():
            for replica in readers_of(table):
                if replica.state == "ACTIVE" and table.status == "ACTIVE" and self._is_due(table, replica):
                    await self._compare(table, replica.region)

    def _is_due(self, table: Table, replica: Replica) -> bool:
        at, newest, _ = self._compared.get((table.id, replica.region), (0.0, 0, False))
        left = any(each.state not in PRESENT for each in table.replicas)
        if newest != _newest(table) and left:
            return True
        if not at:
            # The first one comes after an interval, and of two regions one compares.
            self._compared[table.id, replica.region] = (self.clock.boottime(), newest, False)
            return False
        return self.region < replica.region and self.clock.boottime() - at >= self.settings.scrub_interval

    async def _compare(self, table: Table, region: str) -> regions_pb2.Comparison:
        newest = _newest(table)
        result = await self._comparer.compare(table, region)
        equal = not result.error and not result.differing
        self._compared[table.id, region] = (self.clock.boottime(), newest if not result.error else 0, equal)
        return result

    # --- what it serves ---

    def _handlers(self) -> Handlers:
        return Handlers(
            unary={
                "Regions/Exchange": partial(_serve, regions_pb2.ExchangeRequest, self.membership.exchange),
                "Regions/Join": partial(_serve, regions_pb2.JoinRequest, self.membership.join),
                "Regions/Apply": partial(_serve, regions_pb2.ApplyRequest, self._applier.apply),
                "Regions/Mend": partial(_serve, regions_pb2.MendRequest, self._applier.mend),
                "Regions/Digest": partial(_serve, regions_pb2.DigestRequest, self._comparer.tell_digest),
                "Regions/Rows": partial(_serve, regions_pb2.RowsRequest, self._comparer.tell_rows),
                "Regions/Horizon": partial(_serve, regions_pb2.HorizonRequest, self.horizon.tell),
                "Regions/Status": partial(_serve, regions_pb2.StatusRequest, self._status),
                "Regions/Compare": partial(_serve, regions_pb2.CompareRequest, self._compare_now),
            }
        )

    async def _status(self, request: regions_pb2.StatusRequest) -> regions_pb2.StatusReply:
        if request.cluster_id != self.settings.cluster_id:
            return regions_pb2.StatusReply()
        return regions_pb2.StatusReply(
            region=self.region,
            replicator=self.settings.name,
            links=[link.to_wire(self.now()) for link in self.table_links()],
            peers=[
                regions_pb2.PeerStatus(
                    region=region,
                    reachable=region not in self.peers.errors,
                    last_error=self.peers.errors.get(region, ""),
                )
                for region in self.peers.regions
            ],
        )

    async def _compare_now(self, request: regions_pb2.CompareRequest) -> regions_pb2.CompareReply:
        if request.cluster_id != self.settings.cluster_id:
            return regions_pb2.CompareReply(error="This replicator is of another cluster")
        await self.catalog.refresh()
        table = self.catalog.table(request.table)
        if table is None or not table.region:
            return regions_pb2.CompareReply(error=f"There is no global table {request.table}")
        return regions_pb2.CompareReply(
            comparisons=[await self._compare(table, replica.region) for replica in readers_of(table)]
        )

    # --- for metrics ---

    def now(self) -> float:
        """Seconds since the epoch."""
        return self.clock.wall()

    def unreachable(self) -> list[str]:
        """Regions that did not answer last."""
        return sorted(self.peers.errors)

    def table_links(self) -> list[TableLink]:
        """All links by table and region, those included that have no partition yet."""
        found = []
        for table in self.catalog.global_tables():
            for replica in table.replicas:
                if replica.region != self.region and replica.state != "REMOVED":
                    states = [link.state for link in self._links_of(table, replica)]
                    found.append(TableLink(table.name, replica.region, replica.state, states))
        return found


def _newest(table: Table) -> int:
    """When the membership changed last."""
    return max((replica.since for replica in table.replicas), default=0)


async def _serve(
    kind: type[Request], handle: Callable[[Request], Coroutine[Any, Any, Message]], message: bytes
) -> bytes:
    request = kind()
    request.ParseFromString(message)
    return (await handle(request)).SerializeToString()
