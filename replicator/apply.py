"""Takes what other regions send into this region's partitions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, Protocol, TypeVar

from cluster.requests.call import Call, StalePlanError
from cluster.topology import Topology
from cluster.wire import regions_pb2, storage_pb2
from dynamo.errors import ApiError
from dynamo.keys import HASH_SIZE
from dynamo.regions import PRESENT, replica_of
from dynamo.table import Table

TRIES_MAX: Final = 5
"""How often a request is made anew because the table changed."""

R = TypeVar("R")


class NotHere(Exception):  # noqa: N818  an answer to the asking region
    """The request is for what this region does not have, or not any more; the text is one plain sentence."""


class Callers(Protocol):
    """The half of the executor of requests that waits for replies."""

    async def call(self, call: Call) -> storage_pb2.Reply:
        """The reply, never a refusal. Raises ApiError."""
        ...

    async def call_all(self, calls: Sequence[Call]) -> list[storage_pb2.Reply | ApiError]:
        """The result of each call, in order."""
        ...


class Lookup(Protocol):
    """The region's own catalog."""

    @property
    def topology(self) -> Topology:
        """The newest view."""
        ...

    async def refresh(self) -> None:
        """Look for a newer one."""
        ...


def named_table(topology: Topology, own: str, name: regions_pb2.TableName) -> Table:
    """The table that a request of another region means. Raises NotHere."""
    if name.to_region != own:
        raise NotHere(f"This is region {own}, not {name.to_region}")
    table = topology.table_named(name.table)
    if table is None or not table.region or table.status in ("CREATING", "DELETING"):
        raise NotHere(f"Region {own} has no global table {name.table} yet")
    mine, theirs = replica_of(table, own), replica_of(table, name.region)
    if mine is None or mine.since != name.since or mine.state not in PRESENT:
        raise NotHere(f"Table {name.table} in region {own} is not the replica that {name.region} means")
    if theirs is None or theirs.since != name.life or theirs.state not in PRESENT:
        raise NotHere(f"Region {name.region} is no replica of table {name.table} that {own} knows of")
    return table


class Applier:
    """Answers Regions/Apply and Regions/Mend."""

    def __init__(self, region: str, catalog: Lookup, requests: Callers) -> None:
        self._region = region
        self._catalog = catalog
        self._requests = requests

    async def apply(self, request: regions_pb2.ApplyRequest) -> regions_pb2.ApplyReply:
        """Take the changes of one partition elsewhere; answers once they are durable here."""
        return await self._until_planned(
            lambda: self._apply(request), lambda text: regions_pb2.ApplyReply(error_type="Passing", error=text)
        )

    async def mend(self, request: regions_pb2.MendRequest) -> regions_pb2.MendReply:
        """Take rows of a comparison."""
        return await self._until_planned(lambda: self._mend(request), lambda text: regions_pb2.MendReply(error=text))

    async def _until_planned(self, work: Callable[[], Awaitable[R]], failed: Callable[[str], R]) -> R:
        for _ in range(TRIES_MAX):
            try:
                return await work()
            except StalePlanError:
                await self._catalog.refresh()
            except NotHere as error:
                await self._catalog.refresh()
                return failed(str(error))
            except ApiError as error:
                return failed(error.message)
        return failed("The table was changed time and again")

    async def _apply(self, request: regions_pb2.ApplyRequest) -> regions_pb2.ApplyReply:
        table = named_table(self._catalog.topology, self._region, request.table)
        calls = [
            Call(
                table,
                rows[0].key[:HASH_SIZE],
                storage_pb2.RegionalWrite(
                    life=request.table.life, source=request.source, position=request.position, rows=rows
                ),
            )
            for rows in by_partition(self._catalog.topology, table, request.rows)
        ]
        reply = regions_pb2.ApplyReply(taken=request.position)
        for result in await self._requests.call_all(calls):
            if isinstance(result, ApiError):
                raise result
            if result.HasField("failure"):
                return regions_pb2.ApplyReply(error_type=result.failure.type, error=result.failure.message)
            reply.taken = min(reply.taken, result.write.taken)
            reply.won += result.write.won
            reply.lost += result.write.lost
        return reply

    async def _mend(self, request: regions_pb2.MendRequest) -> regions_pb2.MendReply:
        table = named_table(self._catalog.topology, self._region, request.table)
        return await mend(self._requests, self._catalog.topology, table, request.rows, request.read_ms)


async def mend(
    requests: Callers, topology: Topology, table: Table, rows: Iterable[storage_pb2.RegionalRow], read_ms: int
) -> regions_pb2.MendReply:
    """Write those of the rows that win here. Raises ApiError."""
    calls = [
        Call(table, some[0].key[:HASH_SIZE], storage_pb2.RegionalWrite(rows=some, read_ms=read_ms))
        for some in by_partition(topology, table, rows)
    ]
    reply = regions_pb2.MendReply()
    for result in await requests.call_all(calls):
        if isinstance(result, ApiError):
            raise result
        if result.HasField("failure"):
            raise ApiError(result.failure.type, result.failure.message)
        reply.won += result.write.won
        reply.lost += result.write.lost
    return reply


def by_partition(
    topology: Topology, table: Table, rows: Iterable[storage_pb2.RegionalRow]
) -> list[list[storage_pb2.RegionalRow]]:
    """The rows of each partition here, in their order. Raises NotHere."""
    found: dict[int, list[storage_pb2.RegionalRow]] = {}
    for row in rows:
        try:
            partition = topology.partition_for(table.id, row.key[:HASH_SIZE])
        except LookupError as error:
            raise NotHere(str(error)) from error
        found.setdefault(partition.id, []).append(row)
    return list(found.values())
