"""Carries the changes of one partition to one region.

The partition's leader gives the changes behind the region's cursor, in order. They go to the region in one request at a
time, the next one only when it is known that the one before was taken for good; then the leader is told, and notes it.
So the cursor never runs ahead, and whoever takes over begins behind it and sends some of it again, which the region
ignores.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol

from cluster.clock import Clock
from cluster.requests.call import Call, StalePlanError
from cluster.topology import Topology
from cluster.wire import regions_pb2, storage_pb2
from dynamo.errors import ApiError
from dynamo.regions import replica_of
from dynamo.table import Replica, Table
from replicator.peers import PeerError, Peers
from replicator.status import LinkState

WAIT_MS: Final = 1_000
STANDBY_SECONDS: Final = 1.0
"""How often a replicator that stands by asks whether it is needed."""
PAUSE_SECONDS: Final = 0.2
PAUSE_SECONDS_MAX: Final = 2.0
"""After a failure; longer after each."""
PARKED_SECONDS: Final = 1.0
CHANGED_SECONDS: Final = 0.1
WAITS_SECONDS: Final = 0.02
"""Before changes are sent again that wait for a transaction."""
STATE_SECONDS: Final = 1.0
"""How often the leader is asked how much waits."""
AHEAD: Final = "RegionalChangeAhead"

_log = logging.getLogger(__name__)


class LinkError(Exception):
    """The changes could not be brought there now; the text is one plain sentence."""


class Caller(Protocol):
    """The half of the executor of requests that waits for replies."""

    async def call(self, call: Call) -> storage_pb2.Reply:
        """The reply, never a refusal. Raises ApiError."""
        ...


class LinkKey(NamedTuple):
    """Which link it is. `number` and `since` are those of the region's replica."""

    table: int
    partition: int
    region: str
    number: int
    since: int


class LinkHost(Protocol):
    """What a link needs of its replicator."""

    clock: Clock
    region: str
    reader: int
    """A random number of this process."""
    peers: Peers

    @property
    def requests(self) -> Caller:
        """Carries requests to the region's own storage nodes."""
        ...

    @property
    def topology(self) -> Topology:
        """The newest view of the region's own catalog."""
        ...


class Link:
    """One link, as long as it is wanted."""

    def __init__(self, key: LinkKey, host: LinkHost, sleep: Callable[[float], Awaitable[None]]) -> None:
        self.key = key
        self.state = LinkState()
        self._host = host
        self._sleep = sleep
        self._taken = 0
        self._failures = 0
        self._state_at = 0.0

    async def run(self) -> None:
        """Carry changes until cancelled."""
        while True:
            try:
                await self._sleep(await self._step())
                self._failures = 0
            except StalePlanError:  # the table was changed: a newer view comes by itself
                await self._sleep(CHANGED_SECONDS)
            except (ApiError, PeerError, LinkError) as error:
                self._failed(str(error))
                await self._sleep(min(PAUSE_SECONDS_MAX, PAUSE_SECONDS * self._failures))

    def _failed(self, reason: str) -> None:
        self._failures += 1
        if reason != self.state.last_error:
            _log.info("partition %d to %s: %s", self.key.partition, self.key.region, reason)
        self.state.failed(reason, self._host.clock.wall())

    async def _step(self) -> float:
        """Read once and send what there is; how long to wait before the next time. Raises ApiError, PeerError,
        LinkError."""
        table, low = self._table()
        read = storage_pb2.ReadChanges(
            number=self.key.number,
            after=self._taken,
            confirmed=self._taken,
            wait_ms=WAIT_MS,
            reader=self._host.reader,
        )
        reply = await self._host.requests.call(Call(table, low, read))
        if not reply.HasField("changes"):
            raise LinkError(reply.failure.message or "The leader does not tell its changes")
        changes = reply.changes
        self.state.cut_off, self.state.standby = changes.cut_off, changes.busy
        if changes.cut_off or changes.busy:
            self.state.filled = self.state.filled or changes.filled
            self.state.waiting = self.state.waiting_since_ms = 0
            return STANDBY_SECONDS
        await self._ask_state(table, low)
        if changes.rows:
            await self._send(table, changes)
        self._taken = max(self._taken, changes.next)
        self.state.filled = self.state.filled or changes.filled
        return 0.0

    def _table(self) -> tuple[Table, bytes]:
        """The table as it is now, and the lower end of the partition."""
        topology = self._host.topology
        table, partition = topology.table(self.key.table), topology.partition(self.key.partition)
        if table is None or partition is None:
            raise LinkError("The table is gone")
        return table, partition.low

    async def _ask_state(self, table: Table, low: bytes) -> None:
        now = self._host.clock.boottime()
        if now - self._state_at < STATE_SECONDS:
            return
        self._state_at = now
        read = storage_pb2.ReadRegion(number=self.key.number, taken=self._taken)
        reply = await self._host.requests.call(Call(table, low, read))
        if reply.HasField("region"):
            self.state.waiting = reply.region.waiting
            self.state.waiting_since_ms = reply.region.waiting_since_ms

    async def _send(self, table: Table, changes: storage_pb2.ChangesReply) -> None:
        """Bring the rows to the region; returns once they are durable there."""
        rows, position = list(changes.rows), changes.rows[-1].position
        own = replica_of(table, self._host.region)
        request = regions_pb2.ApplyRequest(
            table=regions_pb2.TableName(
                region=self._host.region,
                to_region=self.key.region,
                table=table.name,
                since=self.key.since,
                life=0 if own is None else own.since,
            ),
            source=self.key.partition,
            position=position,
        )
        while rows:
            del request.rows[:]
            request.rows.extend(rows)
            reply = await self._host.peers.call(self.key.region, "Apply", request, regions_pb2.ApplyReply)
            if reply.error:
                await self._refused(reply)
                continue
            self.state.parked = False
            self.state.won += reply.won
            self.state.conflicts += reply.lost
            left = [row for row in rows if row.position > reply.taken]
            self.state.sent += len(rows) - len(left)
            rows = left
            if rows:
                await self._sleep(WAITS_SECONDS)

    async def _refused(self, reply: regions_pb2.ApplyReply) -> None:
        """Wait where the region's clock has to catch up. Raises LinkError for all else."""
        if reply.error_type != AHEAD:
            raise LinkError(reply.error)
        if not self.state.parked:
            _log.error("partition %d to %s is parked: %s", self.key.partition, self.key.region, reply.error)
        self.state.parked = True
        self.state.failed(reply.error, self._host.clock.wall())
        await self._sleep(PARKED_SECONDS)


def wanted_links(
    tables: list[Table], topology: Topology, readers: Callable[[Table], tuple[Replica, ...]]
) -> set[LinkKey]:
    """The links that there should be."""
    return {
        LinkKey(table.id, partition.id, replica.region, replica.number, replica.since)
        for table in tables
        if table.status not in ("CREATING", "DELETING")
        for replica in readers(table)
        if replica.state != "CREATING"
        for partition in topology.partitions_of(table.id)
    }
