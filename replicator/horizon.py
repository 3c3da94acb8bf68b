"""Lets tombstones go that nobody needs any more.

Each region tells up to which stamp every other one has all that was, or ever will be, written in it. Up to the least
of these stamps, over all regions, every delete has been applied everywhere, and so has every write that such a delete
overrules: nothing that could come back is on its way. Tombstones stay for a while longer, so that rows which two
regions compare at that time are not taken for new ones.

Tombstones of regions that take no part any more are not covered by this: what such a region had sent to some may be
unknown to others. They go once this region's table was compared with all others' and found equal, or there are none.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from cluster.clock import Clock
from cluster.requests.call import Call
from cluster.topology import Topology
from cluster.wire import regions_pb2, storage_pb2
from dynamo.errors import ApiError
from dynamo.regions import readers_of, replica_of
from dynamo.table import Table
from replicator.apply import NotHere, named_table
from replicator.peers import PeerError, Peers

ROUND_SECONDS_MAX: Final = 30.0
ROUNDS_PER_DELAY: Final = 10
SLICES_MAX: Final = 1_000
"""Requests that let tombstones of one partition go in one round: the next one goes on from there."""

_log = logging.getLogger(__name__)


class Caller(Protocol):
    """The half of the executor of requests that waits for replies."""

    async def call(self, call: Call) -> storage_pb2.Reply:
        """The reply, never a refusal. Raises ApiError."""
        ...


class Tables(Protocol):
    """The region's own catalog."""

    @property
    def topology(self) -> Topology:
        """The newest view."""
        ...

    def global_tables(self) -> list[Table]:
        """All global tables."""
        ...


class Horizon:
    """`delay`: seconds for which a tombstone stays after every region has it. `equal(table)`: whether the table was
    found equal in all regions since a region left it last."""

    def __init__(
        self,
        region: str,
        catalog: Tables,
        requests: Caller,
        peers: Peers,
        clock: Clock,
        delay: float,
        equal: Callable[[Table], bool],
    ) -> None:
        self._region = region
        self._catalog = catalog
        self._requests = requests
        self._peers = peers
        self._clock = clock
        self._delay = delay
        self._equal = equal
        self._found: dict[int, deque[tuple[float, int]]] = {}  # by table: when which stamp was found

    @property
    def pause(self) -> float:
        """Seconds between two rounds."""
        return min(ROUND_SECONDS_MAX, self._delay / ROUNDS_PER_DELAY)

    async def tell(self, request: regions_pb2.HorizonRequest) -> regions_pb2.HorizonReply:
        """Regions/Horizon."""
        try:
            table = named_table(self._catalog.topology, self._region, request.table)
            settled, _ = await self._settled_here(table, request.settle_ms)
        except (NotHere, ApiError) as error:
            return regions_pb2.HorizonReply(error=str(error))
        return regions_pb2.HorizonReply(
            settled=[regions_pb2.Settled(region=region, stamp=stamp) for region, stamp in sorted(settled.items())]
        )

    async def round(self) -> None:
        """Look at every table once."""
        for table in self._catalog.global_tables():
            try:
                await self._round(table)
            except (ApiError, PeerError) as error:
                _log.debug("tombstones of table %s stay: %s", table.name, error)

    async def _round(self, table: Table) -> None:
        now = self._clock.boottime()
        settle_ms = int((self._clock.wall() - self._delay / 2) * 1000)
        settled, tombstones = await self._settled_here(table, 0)
        if not tombstones:
            return
        settled, _ = await self._settled_here(table, settle_ms)
        stamps = list(settled.values())
        for replica in readers_of(table):
            stamps += await self._settled_there(table, replica.region, settle_ms)
        if not readers_of(table):
            stamps = [settle_ms << 16]  # nobody is left who could send anything
        found = self._found.setdefault(table.id, deque())
        found.append((now, min(stamps, default=0)))
        stamp = 0
        while found and now - found[0][0] >= self._delay:
            stamp = max(stamp, found.popleft()[1])
        if stamp:
            await self._let_go(table, stamp, orphans=not readers_of(table) or self._equal(table))

    async def _settled_here(self, table: Table, settle_ms: int) -> tuple[dict[str, int], bool]:
        """By other region the stamp up to which it has what was written here, and whether there are tombstones."""
        settled: dict[str, int] = {}
        tombstones = False
        # A table that has lost all its other regions still says whether it holds tombstones.
        regions = [(replica.region, replica.number) for replica in readers_of(table)] or [("", 0)]
        for region, number in regions:
            for partition in self._catalog.topology.partitions_of(table.id):
                read = storage_pb2.ReadRegion(number=number, settle_ms=settle_ms)
                reply = await self._requests.call(Call(table, partition.low, read))
                state = reply.region
                tombstones = tombstones or state.tombstones
                if region:
                    settled[region] = min(settled.get(region, state.settled), state.settled)
        return settled, tombstones

    async def _settled_there(self, table: Table, region: str, settle_ms: int) -> list[int]:
        theirs, own = replica_of(table, region), replica_of(table, self._region)
        assert theirs is not None
        assert own is not None
        request = regions_pb2.HorizonRequest(
            table=regions_pb2.TableName(
                region=self._region,
                to_region=region,
                table=table.name,
                since=theirs.since,
                life=own.since,
            ),
            settle_ms=settle_ms,
        )
        reply = await self._peers.call(region, "Horizon", request, regions_pb2.HorizonReply)
        if reply.error:
            raise PeerError(reply.error)
        return [each.stamp for each in reply.settled] or [0]

    async def _let_go(self, table: Table, stamp: int, *, orphans: bool) -> None:
        for partition in self._catalog.topology.partitions_of(table.id):
            for _ in range(SLICES_MAX):
                drop = storage_pb2.DropTombstones(stamp=stamp, orphans=orphans)
                reply = await self._requests.call(Call(table, partition.low, drop))
                if not reply.write.more:
                    break
