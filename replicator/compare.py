"""Compares a table with another region's, range by range, and mends what differs by the rule that all changes follow.

Sums over ranges of hashes are compared, those that differ are cut into smaller ones, and of the smallest the rows
themselves are exchanged: each region takes what wins against what it has. A range that differs is looked at once more
after a moment first, as changes that are on their way make ranges differ, too.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from cluster.requests.call import Call
from cluster.topology import Topology
from cluster.wire import regions_pb2, storage_pb2
from dynamo.errors import ApiError
from dynamo.keys import HASH_SIZE
from dynamo.regions import replica_of
from dynamo.table import Table
from replicator.apply import Callers, NotHere, mend, named_table
from replicator.peers import PeerError, Peers

FIRST_RANGES: Final = 16
CUT: Final = 16
"""A range that differs is cut into so many."""
SMALL_ITEMS: Final = 200
"""A range with no more items than this is mended as a whole."""
AGAIN_SECONDS: Final = 1.0
_HASHES: Final = 1 << 8 * HASH_SIZE
_MODULUS: Final = 1 << 128

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HashRange:
    """Hashes from `low` to `high`, both included, as numbers."""

    low: int
    high: int

    def cut(self, parts: int) -> list[HashRange]:
        """The range in so many parts, of equal length as far as that goes."""
        size = self.high - self.low + 1
        bounds = [self.low + size * part // parts for part in range(parts + 1)]
        return [HashRange(low, high - 1) for low, high in pairwise(bounds) if low < high]

    def to_wire(self) -> regions_pb2.Range:
        """As it travels."""
        return regions_pb2.Range(low=self.low.to_bytes(HASH_SIZE, "big"), high=self.high.to_bytes(HASH_SIZE, "big"))


WHOLE: Final = HashRange(0, _HASHES - 1)


@dataclass(frozen=True, slots=True)
class RangeSum:
    """What a range holds: the sum of the hashes of its items, and how many there are."""

    sum: bytes
    items: int


class Comparer:
    """Compares this region's tables with others', and answers those that compare theirs with this one's."""

    def __init__(
        self,
        region: str,
        topology: Callable[[], Topology],
        requests: Callers,
        peers: Peers,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._region = region
        self._topology = topology
        self._requests = requests
        self._peers = peers
        self._sleep = sleep

    # --- asked by other regions ---

    async def tell_digest(self, request: regions_pb2.DigestRequest) -> regions_pb2.DigestReply:
        """Regions/Digest."""
        reply = regions_pb2.DigestReply()
        try:
            table = named_table(self._topology(), self._region, request.table)
            for each in request.ranges:
                found = await self._sum_here(table, each)
                reply.sums.append(found.sum)
                reply.items.append(found.items)
        except (NotHere, ApiError) as error:
            return regions_pb2.DigestReply(error=str(error))
        return reply

    async def tell_rows(self, request: regions_pb2.RowsRequest) -> regions_pb2.RowsReply:
        """Regions/Rows."""
        try:
            table = named_table(self._topology(), self._region, request.table)
            return await self._rows_here(table, request.range, request.after, tombstones=request.tombstones)
        except (NotHere, ApiError) as error:
            return regions_pb2.RowsReply(error=str(error))

    # --- comparing ---

    async def compare(self, table: Table, region: str) -> regions_pb2.Comparison:
        """Compare with one region and mend what differs. Never raises for a peer's sake."""
        result = regions_pb2.Comparison(region=region)
        theirs, own = replica_of(table, region), replica_of(table, self._region)
        if theirs is None or own is None:
            result.error = f"Region {region} has no replica of the table"
            return result
        name = regions_pb2.TableName(
            region=self._region, to_region=region, table=table.name, since=theirs.since, life=own.since
        )
        try:
            await self._compare(table, name, result)
        except (PeerError, NotHere, ApiError) as error:
            result.error = str(error)
        if result.differing:
            _log.error(
                "table %s differed from region %s's in %d ranges: %d items mended here, %d there",
                table.name,
                region,
                result.differing,
                result.mended_here,
                result.mended_there,
            )
        return result

    async def _compare(self, table: Table, name: regions_pb2.TableName, result: regions_pb2.Comparison) -> None:
        waiting = await self._differing(table, name, WHOLE.cut(FIRST_RANGES), result, count=True)
        small: list[HashRange] = []
        while waiting:
            range_, items = waiting.pop(0)
            parts = range_.cut(CUT) if items > SMALL_ITEMS else []
            if len(parts) > 1:
                waiting += await self._differing(table, name, parts, result)
            else:
                small.append(range_)
        if not small:
            return
        await self._sleep(AGAIN_SECONDS)
        for range_, _ in await self._differing(table, name, small, result):
            result.differing += 1
            await self._mend(table, name, range_, result)

    async def _differing(
        self,
        table: Table,
        name: regions_pb2.TableName,
        ranges: list[HashRange],
        result: regions_pb2.Comparison,
        *,
        count: bool = False,
    ) -> list[tuple[HashRange, int]]:
        """The ranges that differ, each with the larger number of items in it."""
        wire = [range_.to_wire() for range_ in ranges]
        request = regions_pb2.DigestRequest(table=name, ranges=wire)
        reply = await self._peers.call(name.to_region, "Digest", request, regions_pb2.DigestReply)
        if reply.error or len(reply.sums) != len(ranges):
            raise PeerError(reply.error or f"Region {name.to_region} left ranges out")
        found = []
        for range_, each, sum_, items in zip(ranges, wire, reply.sums, reply.items, strict=True):
            here = await self._sum_here(table, each)
            result.ranges += 1
            if count:
                result.items_here += here.items
                result.items_there += items
            if here != RangeSum(sum_, items):
                found.append((range_, max(items, here.items)))
        return found

    async def _sum_here(self, table: Table, range_: regions_pb2.Range) -> RangeSum:
        total = items = 0
        for partition in self._topology().partitions_of(table.id):
            low, high = max(partition.low, range_.low), min(partition.high, range_.high)
            after = b""
            while low <= high:
                digest = storage_pb2.Digest(low=low, high=high, after=after)
                reply = (await self._requests.call(Call(table, partition.low, digest))).digest
                total += int.from_bytes(reply.sum, "big")
                items += reply.items
                after = reply.after
                if not after:
                    break
        return RangeSum((total % _MODULUS).to_bytes(16, "big"), items)

    # --- mending ---

    async def _mend(
        self, table: Table, name: regions_pb2.TableName, range_: HashRange, result: regions_pb2.Comparison
    ) -> None:
        """Give each region what the other one has, deletes first."""
        wire = range_.to_wire()
        for tombstones in (True, False):
            after, more = b"", True
            while more:
                request = regions_pb2.RowsRequest(table=name, range=wire, after=after, tombstones=tombstones)
                theirs = await self._peers.call(name.to_region, "Rows", request, regions_pb2.RowsReply)
                if theirs.error:
                    raise PeerError(theirs.error)
                if theirs.rows:
                    mended = await mend(self._requests, self._topology(), table, theirs.rows, theirs.read_ms)
                    result.mended_here += mended.won
                after, more = theirs.after, bool(theirs.after)
            after, more = b"", True
            while more:
                mine = await self._rows_here(table, wire, after, tombstones=tombstones)
                if mine.rows:
                    await self._mend_there(name, mine, result)
                after, more = mine.after, bool(mine.after)

    async def _mend_there(
        self, name: regions_pb2.TableName, rows: regions_pb2.RowsReply, result: regions_pb2.Comparison
    ) -> None:
        request = regions_pb2.MendRequest(table=name, rows=rows.rows, read_ms=rows.read_ms)
        reply = await self._peers.call(name.to_region, "Mend", request, regions_pb2.MendReply)
        if reply.error:
            raise PeerError(reply.error)
        result.mended_there += reply.won

    async def _rows_here(
        self, table: Table, range_: regions_pb2.Range, after: bytes, *, tombstones: bool
    ) -> regions_pb2.RowsReply:
        """The next rows of a range, of the first partition that has any."""
        start = max(range_.low, after[:HASH_SIZE])
        for partition in self._topology().partitions_of(table.id):
            low, high = max(partition.low, start), min(partition.high, range_.high)
            if low > high:
                continue
            read = storage_pb2.ReadRange(low=low, high=high, tombstones=tombstones)
            if after and after[:HASH_SIZE] >= partition.low:
                read.after = after
            reply = (await self._requests.call(Call(table, partition.low, read))).range
            if reply.rows:
                last = reply.after or _beyond(partition.high, range_.high)
                return regions_pb2.RowsReply(rows=reply.rows, after=last, read_ms=reply.read_ms)
        return regions_pb2.RowsReply()


def _beyond(partition_high: bytes, high: bytes) -> bytes:
    """A row key behind all of a partition, where the range goes on in the next one; empty where it does not."""
    return b"" if partition_high >= high else partition_high + b"\xff" * HASH_SIZE
