"""The mixed workload: registers, counters, versioned items, items that are written once in batches, and shelves.

Every value written is unique, so that a value that is read names the write that it came from. A shelf is a collection
of registers with one partition key, which are read by Query. The name of an item is its partition key, with
"/" and its sort key if it is on a shelf.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count
from random import Random
from typing import Any

from tests.simulation.workloads.client import Client, Reply
from tests.simulation.workloads.history import UNKNOWN, History, Operation, Unknown, Value

TABLE = "items"
REGISTERS = 4
COUNTERS = 2
VERSIONED = 3
SHELVES = 2
PLACES = 4
"""On each shelf."""
BATCH_MAX = 5

_ALONE = "-"
"""The sort key of an item that is not on a shelf."""
_CONDITION_FAILED = "ConditionalCheckFailedException"
_PADDING = 200
"""Bytes by which items are made longer."""


class ItemWorkload:
    """One client's share of the work. `step` does one operation and records it."""

    def __init__(self, client: Client, history: History, random: Random) -> None:
        self._client = client
        self._history = history
        self._random = random
        self._numbers = count(1)
        self._known: dict[str, Value] = {}
        self._batched: list[str] = []
        self._steps: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (4, self._put),
            (5, self._get),
            (4, self._get_eventually),
            (4, self._add),
            (4, self._replace),
            (1, self._delete),
            (2, self._batch_write),
            (2, self._batch_get),
            (3, self._query),
            (1, self._scan),
        ]

    async def step(self) -> None:
        """One operation of a random kind."""
        weights = [weight for weight, _ in self._steps]
        await self._random.choices([step for _, step in self._steps], weights)[0]()

    # --- reads ---

    async def _get(self) -> None:
        await self.read(self._any_key(), consistent=True)

    async def _get_eventually(self) -> None:
        await self.read(self._any_key(), consistent=False)

    async def read(self, key: str, *, consistent: bool) -> bool:
        """Read one item; whether it was answered."""
        operation = self._history.begin(self._client.name, key, "get", consistent=consistent)
        body = {"TableName": TABLE, "Key": _key(key), "ConsistentRead": consistent}
        reply = await self._call("GetItem", body)
        if reply is None:
            return False
        found = value_of(reply.body.get("Item"))
        self._history.end(operation, done=True, found=found)
        if consistent:
            self._known[key] = found
        return True

    async def _batch_get(self) -> None:
        keys = sorted({self._any_key() for _ in range(3)})
        operations = [self._history.begin(self._client.name, key, "get") for key in keys]
        wanted = {TABLE: {"Keys": [_key(key) for key in keys], "ConsistentRead": True}}
        reply = await self._call("BatchGetItem", {"RequestItems": wanted})
        if reply is None:
            return
        found = {name_of(item): value_of(item) for item in reply.body["Responses"].get(TABLE, [])}
        left = [name_of(key) for key in reply.body["UnprocessedKeys"].get(TABLE, {}).get("Keys", [])]
        for operation in operations:
            if operation.key not in left:
                self._history.end(operation, done=True, found=found.get(operation.key))

    async def _query(self) -> None:
        """Some places of a shelf, in either direction, in pages of any size: a read of each item in that range."""
        shelf = f"shelf-{self._random.randrange(SHELVES)}"
        low, high = sorted(self._random.choices(range(PLACES), k=2))
        consistent = self._random.random() < 0.7
        names = [f"{shelf}/{place}" for place in range(low, high + 1)]
        body: dict[str, Any] = {
            "KeyConditionExpression": "k = :k AND s BETWEEN :low AND :high",
            "ExpressionAttributeValues": {":k": {"S": shelf}, ":low": {"S": str(low)}, ":high": {"S": str(high)}},
            "ScanIndexForward": self._random.random() < 0.5,
        }
        if self._random.random() < 0.3:
            body["Limit"] = self._random.randint(1, 3)
        await self._read_pages("Query", body, names, consistent=consistent)

    async def _scan(self) -> None:
        """Everything, which is a read of each item that all share."""
        await self._read_pages("Scan", {}, self._shared(), consistent=True)

    async def _read_pages(self, operation: str, asked: dict[str, Any], names: list[str], *, consistent: bool) -> None:
        begin = self._history.begin
        operations = [begin(self._client.name, name, "get", consistent=consistent) for name in names]
        body = {"TableName": TABLE, "ConsistentRead": consistent, **asked}
        found: dict[str, Value] = {}
        while True:
            reply = await self._call(operation, body)
            if reply is None:
                return
            found.update({name_of(item): value_of(item) for item in reply.body["Items"]})
            if "LastEvaluatedKey" not in reply.body:
                break
            body = {**body, "ExclusiveStartKey": reply.body["LastEvaluatedKey"]}
        for each in operations:
            self._history.end(each, done=True, found=found.get(each.key))

    # --- writes ---

    async def _put(self) -> None:
        key, token = self._register(), self._token()
        operation = self._history.begin(self._client.name, key, "put", value=token)
        body: dict[str, Any] = {"TableName": TABLE, "Item": self._item(key, token)}
        wants_old = self._random.random() < 0.3
        if wants_old:
            body["ReturnValues"] = "ALL_OLD"
        reply = await self._call("PutItem", body)
        if reply is not None:
            self._done(operation, reply, value_of(reply.body.get("Attributes")) if wants_old else UNKNOWN)

    async def _delete(self) -> None:
        key = self._register()
        operation = self._history.begin(self._client.name, key, "delete")
        reply = await self._call("DeleteItem", {"TableName": TABLE, "Key": _key(key), "ReturnValues": "ALL_OLD"})
        if reply is None:
            return
        found = value_of(reply.body.get("Attributes"))
        self._done(operation, reply, found)
        if found is None:
            self._still_possible(operation, reply)

    async def _add(self) -> None:
        key = f"counter-{self._random.randrange(COUNTERS)}"
        operation = self._history.begin(self._client.name, key, "add", value=1)
        body = {
            "TableName": TABLE,
            "Key": _key(key),
            "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
            "ReturnValues": "UPDATED_NEW",
        }
        reply = await self._call("UpdateItem", body)
        if reply is not None:
            after = int(reply.body["Attributes"]["n"]["N"])
            self._done(operation, reply, after - 1 or None)

    async def _replace(self) -> None:
        """Optimistic locking: the put succeeds only on the version that was read."""
        key = f"versioned-{self._random.randrange(VERSIONED)}"
        if key not in self._known and not await self.read(key, consistent=True):
            return
        expected, token = self._known.pop(key), self._token()
        operation = self._history.begin(self._client.name, key, "replace", expected=expected, value=token)
        body: dict[str, Any] = {
            "TableName": TABLE,
            "Item": self._item(key, token),
            "ConditionExpression": "attribute_not_exists(k)" if expected is None else "v = :expected",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        if expected is not None:
            body["ExpressionAttributeValues"] = {":expected": {"S": expected}}
        reply = await self._call("PutItem", body, _CONDITION_FAILED)
        if reply is None:
            return
        if reply.error:
            self._history.end(operation, done=False, found=value_of(reply.body.get("Item")))
            self._still_possible(operation, reply)
        else:
            self._done(operation, reply, expected)
            self._known[key] = token

    async def _batch_write(self) -> None:
        """Items that are written once; what is left unprocessed stays unknown."""
        items = {}
        for _ in range(self._random.randint(1, BATCH_MAX)):
            token = self._token()
            items[f"once-{token}"] = token
        operations = [self._history.begin(self._client.name, key, "put", value=items[key]) for key in items]
        self._batched += items
        puts = [{"PutRequest": {"Item": self._item(key, token)}} for key, token in items.items()]
        reply = await self._call("BatchWriteItem", {"RequestItems": {TABLE: puts}})
        if reply is None:
            return
        left = [name_of(put["PutRequest"]["Item"]) for put in reply.body["UnprocessedItems"].get(TABLE, [])]
        for operation in operations:
            if operation.key not in left:
                self._done(operation, reply, UNKNOWN)

    # --- answers ---

    async def _call(self, operation: str, body: dict[str, Any], allowed: str = "") -> Reply | None:
        reply = await self._client.call(operation, body)
        if reply is None or reply.error in ("", allowed):
            return reply
        self._history.unexpected.append(f"{self._history.now():.6f} {operation} {body}: {reply.error} {reply.body}")
        return None

    def _done(self, operation: Operation, _reply: Reply, found: Value | Unknown) -> None:
        self._history.end(operation, done=True, found=found)

    def _still_possible(self, operation: Operation, reply: Reply) -> None:
        """The answer rests on no entry of the log, so an earlier try that was lost sight of may still be done.

        Not before the last try was sent, though: had it been done by then, its operation id would have been found.
        """
        if reply.doubtful:
            ghost = self._history.begin(
                operation.client, operation.key, operation.kind, value=operation.value, expected=operation.expected
            )
            ghost.invoked = reply.last_sent

    # --- keys and values ---

    def all_keys(self) -> list[str]:
        """The items that all clients write, and this client's own."""
        return [*self._shared(), *self._batched]

    def _shared(self) -> list[str]:
        shared = [f"register-{number}" for number in range(REGISTERS)]
        shared += [f"counter-{number}" for number in range(COUNTERS)]
        shared += [f"versioned-{number}" for number in range(VERSIONED)]
        shared += [f"shelf-{shelf}/{place}" for shelf in range(SHELVES) for place in range(PLACES)]
        return shared

    def _register(self) -> str:
        if self._random.random() < 0.4:
            return f"shelf-{self._random.randrange(SHELVES)}/{self._random.randrange(PLACES)}"
        return f"register-{self._random.randrange(REGISTERS)}"

    def _any_key(self) -> str:
        if self._batched and self._random.random() < 0.2:
            return self._random.choice(self._batched)
        return self._random.choice(self._shared())

    def _token(self) -> str:
        return f"{self._client.name}.{next(self._numbers)}"

    def _item(self, key: str, token: str) -> dict[str, Any]:
        return {**_key(key), "v": {"S": token}, "padding": {"S": "x" * self._random.randrange(_PADDING)}}


def table_definition(*, indexed: bool = False, streamed: bool = False, collections: bool = False) -> dict[str, Any]:
    """The body of CreateTable. `indexed`: with a global index in which every write of a value moves the item.
    `collections`: with a local one. `streamed`: with a stream."""
    definition: dict[str, Any] = {
        "TableName": TABLE,
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("k", "s")],
        "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}, {"AttributeName": "s", "KeyType": "RANGE"}],
        "BillingMode": "PAY_PER_REQUEST",
    }
    if indexed or collections:
        definition["AttributeDefinitions"].append({"AttributeName": "v", "AttributeType": "S"})
    if indexed:
        definition["GlobalSecondaryIndexes"] = [global_index("by_value")]
    if collections:
        keys = [{"AttributeName": "k", "KeyType": "HASH"}, {"AttributeName": "v", "KeyType": "RANGE"}]
        definition["LocalSecondaryIndexes"] = [
            {"IndexName": "by_local_value", "KeySchema": keys, "Projection": {"ProjectionType": "KEYS_ONLY"}}
        ]
    if streamed:
        definition["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    return definition


def global_index(name: str) -> dict[str, Any]:
    """A global index by value."""
    keys = [{"AttributeName": "v", "KeyType": "HASH"}]
    return {"IndexName": name, "KeySchema": keys, "Projection": {"ProjectionType": "ALL"}}


def name_of(item: dict[str, Any]) -> str:
    """The name of an item, from its key."""
    partition, place = item["k"]["S"], item["s"]["S"]
    return partition if place == _ALONE else f"{partition}/{place}"


def value_of(item: dict[str, Any] | None) -> Value:
    """What is told apart of an item."""
    if not item:
        return None
    if "n" in item:
        return int(item["n"]["N"])
    token: str = item["v"]["S"]
    return token


def _key(name: str) -> dict[str, Any]:
    partition, _, place = name.partition("/")
    return {"k": {"S": partition}, "s": {"S": place or _ALONE}}
