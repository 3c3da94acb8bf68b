"""Writers of unique items and of counters, and what they saw.

Each writer puts items of its own, new ones and its older ones again, and adds 1 to counters that all share. A writer
rests between two requests, so that the cluster and not the test uses the machine.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from tests.chaos.http_client import GaveUp, HttpClient
from tests.chaos.ledger import Ledger
from tests.chaos.real_cluster import until

TABLE = "kills"
COUNTERS = 12
ADDS_PART = 0.5
REWRITES_PART = 0.3
REST_S = 0.02
FILLING = "x" * 200


class Client(Protocol):
    """What a writer needs of a client: HttpClient's, or boto3 behind it."""

    async def call(self, operation: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer to one operation. Raises Refused or GaveUp."""
        ...


@dataclass(frozen=True)
class Acknowledged:
    """One write that succeeded: its key, and when it began and ended, on the monotonic clock."""

    key: str
    began: float
    ended: float


@dataclass(frozen=True)
class Failed:
    """One write that failed for good."""

    key: str
    at: float
    why: str


@dataclass
class Load:
    """What all writers did so far."""

    ledger: Ledger = field(default_factory=Ledger)
    acknowledged: list[Acknowledged] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    stopping: bool = False

    def failed_between(self, first: float, last: float) -> list[Failed]:
        """The writes that failed for good in this time."""
        return [failure for failure in self.failed if first <= failure.at <= last]


class Writer:
    """One client of the cluster."""

    def __init__(self, load: Load, number: int, client: Client, random: Random) -> None:
        self._load = load
        self._number = number
        self._client = client
        self._random = random
        self._items = 0

    async def run(self) -> None:
        """Write until the load is stopping."""
        while not self._load.stopping:
            if self._random.random() < ADDS_PART:
                await self._add(f"counter-{self._random.randrange(COUNTERS)}")
            else:
                await self._put()
            await asyncio.sleep(REST_S * 2 * self._random.random())

    async def _put(self) -> None:
        ledger = self._load.ledger
        if self._items and self._random.random() < REWRITES_PART:
            key = f"item-{self._number}-{self._random.randrange(self._items)}"
        else:
            key = f"item-{self._number}-{self._items}"
            self._items += 1
        if not ledger.may_write(key):
            return
        value = ledger.acknowledged.get(key, 0) + 1
        item = {"id": {"S": key}, "value": {"N": str(value)}, "filling": {"S": FILLING}}
        if await self._write("PutItem", key, {"TableName": TABLE, "Item": item}):
            ledger.acknowledged[key] = value
        else:
            ledger.uncertain[key] = value

    async def _add(self, name: str) -> None:
        body = {
            "TableName": TABLE,
            "Key": {"id": {"S": name}},
            "UpdateExpression": "ADD #value :one",
            "ExpressionAttributeNames": {"#value": "value"},
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }
        done = await self._write("UpdateItem", name, body)
        (self._load.ledger.added if done else self._load.ledger.perhaps_added)[name] += 1

    async def _write(self, operation: str, key: str, body: dict[str, Any]) -> bool:
        began = time.monotonic()
        try:
            await self._client.call(operation, body)
        except GaveUp as error:
            self._load.failed.append(Failed(key, time.monotonic(), str(error)))
            return False
        self._load.acknowledged.append(Acknowledged(key, began, time.monotonic()))
        return True


async def create_table(client: HttpClient, name: str = TABLE) -> None:
    """A table with the partition key `id`, ready to be used."""
    body = {
        "TableName": name,
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    }
    await client.call("CreateTable", body)

    async def active() -> bool:
        answer = await client.call("DescribeTable", {"TableName": name})
        return bool(answer["Table"]["TableStatus"] == "ACTIVE")

    await until(active, "the table is active")


@asynccontextmanager
async def under_load(load: Load, clients: Sequence[Client], seed: int) -> AsyncIterator[None]:
    """One writer per client for as long as the block runs; each ends what it has begun."""
    async with asyncio.TaskGroup() as group:
        for number, client in enumerate(clients):
            group.create_task(Writer(load, number, client, Random(f"{seed} {number}")).run())
        try:
            yield
        finally:
            load.stopping = True


async def values_found(client: HttpClient, table: str = TABLE) -> tuple[dict[str, int], dict[str, int]]:
    """The values of all items, and of all counters, by a strongly consistent scan."""
    items: dict[str, int] = {}
    counters: dict[str, int] = {}
    body: dict[str, Any] = {"TableName": table, "ConsistentRead": True, "ProjectionExpression": "id, #value"}
    body["ExpressionAttributeNames"] = {"#value": "value"}
    while True:
        page = await client.call("Scan", body)
        for item in page["Items"]:
            key = item["id"]["S"]
            (counters if key.startswith("counter-") else items)[key] = int(item["value"]["N"])
        if "LastEvaluatedKey" not in page:
            return items, counters
        body["ExclusiveStartKey"] = page["LastEvaluatedKey"]
