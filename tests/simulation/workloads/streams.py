"""A reader of a table's stream, as Lambda or a Kinesis adapter reads it: each shard from its beginning, each record
once."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from tests.simulation.workloads.client import Client, Reply
from tests.simulation.workloads.history import Value
from tests.simulation.workloads.items import name_of, value_of

LIMIT_MAX = 40
_EXPIRED = "ExpiredIteratorException"


class StreamedChange(NamedTuple):
    """A record of a stream."""

    position: int
    event: str
    name: str
    old: Value
    new: Value


class StreamReader:
    """`read`: what it got of each partition, in the order in which it came. `wrong`: answers that should not be."""

    def __init__(self, client: Client, table: str, random: Random) -> None:
        self.read: dict[int, list[StreamedChange]] = {}
        self.wrong: list[str] = []
        self._client = client
        self._table = table
        self._random = random
        self._arn = ""
        self._shards: list[str] = []
        self._iterators: dict[str, str] = {}
        self._last: dict[str, str] = {}

    @property
    def records(self) -> int:
        """How many it got."""
        return sum(map(len, self.read.values()))

    async def step(self) -> None:
        """One more page of some shard; the first steps find out what shards there are."""
        if not self._arn:
            reply = await self._call("DescribeTable", {"TableName": self._table})
            if reply is not None and not reply.error:
                self._arn = reply.body["Table"]["LatestStreamArn"]
        elif not self._shards:
            reply = await self._call("DescribeStream", {"StreamArn": self._arn})
            if reply is not None and not reply.error:
                self._shards = [shard["ShardId"] for shard in reply.body["StreamDescription"]["Shards"]]
        else:
            await self._read(self._random.choice(self._shards))

    async def drain(self, tries: int) -> None:
        """Read every shard up to what it has now."""
        for _ in range(tries):
            before = self.records
            for shard in self._shards or [""]:
                if not shard:
                    await self.step()
                else:
                    await self._read(shard, limit=1000)
            if self._shards and self.records == before:
                return

    async def _read(self, shard: str, limit: int = 0) -> None:
        if shard not in self._iterators and not await self._find_place(shard):
            return
        iterator = self._iterators[shard]
        limit = limit or self._random.randint(1, LIMIT_MAX)
        reply = await self._call("GetRecords", {"ShardIterator": iterator, "Limit": limit}, _EXPIRED)
        if reply is None or reply.error or self._random.random() < 0.1:
            del self._iterators[shard]  # it goes on behind the last record that it took
        if reply is None or reply.error:
            return
        for record in reply.body["Records"]:
            self._take(shard, record)
        following = reply.body.get("NextShardIterator")
        if following is None:
            self.wrong.append(f"shard {shard} is closed")
        elif shard in self._iterators:
            self._iterators[shard] = following

    async def _find_place(self, shard: str) -> bool:
        last = self._last.get(shard)
        place = {"ShardIteratorType": "TRIM_HORIZON"}
        if last is not None:
            place = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": last}
        reply = await self._call("GetShardIterator", {"StreamArn": self._arn, "ShardId": shard, **place})
        if reply is None or reply.error:
            return False
        self._iterators[shard] = reply.body["ShardIterator"]
        return True

    def _take(self, shard: str, record: dict[str, Any]) -> None:
        change = record["dynamodb"]
        self._last[shard] = sequence = change["SequenceNumber"]
        position, partition = int(sequence[1:21]), int(shard.split("-")[1])
        old, new = value_of(change.get("OldImage")), value_of(change.get("NewImage"))
        found = StreamedChange(position, record["eventName"], name_of(change["Keys"]), old, new)
        self.read.setdefault(partition, []).append(found)

    async def _call(self, operation: str, body: dict[str, Any], *allowed: str) -> Reply | None:
        reply = await self._client.call(operation, body)
        if reply is not None and reply.error and reply.error not in allowed:
            self.wrong.append(f"{operation} {body}: {reply.error} {reply.body}")
        return reply
