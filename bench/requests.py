"""Requests as the bytes that go over the wire, made beforehand so that the client costs little while measuring."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle
from typing import Any, TypeAlias
from urllib.parse import urlsplit

ITEMS = 5_000
ITEM_BYTES = 1_024
QUERY_PARTITIONS = 100
QUERY_ITEMS = 20
QUERY_ITEM_BYTES = 200
PREPARED = 2_000
AUTHORIZATION = (
    "AWS4-HMAC-SHA256 Credential=bench/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0"
)
DATE = "20260101T000000Z"


def http_request(endpoint: str, operation: str, body: dict[str, Any]) -> bytes:
    """One request of DynamoDB's protocol."""
    content = json.dumps(body, separators=(",", ":")).encode()
    head = (
        f"POST / HTTP/1.1\r\nHost: {urlsplit(endpoint).netloc}\r\nX-Amz-Target: DynamoDB_20120810.{operation}\r\n"
        f"Content-Type: application/x-amz-json-1.0\r\nAuthorization: {AUTHORIZATION}\r\nX-Amz-Date: {DATE}\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def create_table(table: str) -> dict[str, Any]:
    """The body that creates the harness's table."""
    return {
        "TableName": table,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        "AttributeDefinitions": [
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
        ],
    }


def key_of(number: int) -> dict[str, Any]:
    """The key of one of `ITEMS` items."""
    return {"pk": {"S": f"item-{number:06}"}, "sk": {"S": "0"}}


def _item(key: dict[str, Any], size: int, random_bytes: Callable[[int], bytes]) -> dict[str, Any]:
    """An item of `size` DynamoDB bytes."""
    used = sum(len(name) + len(value["S"]) for name, value in key.items()) + len("data")
    filling = base64.b64encode(random_bytes(size)).decode()[: size - used]
    return {**key, "data": {"S": filling}}


def item_of(number: int, random_bytes: Callable[[int], bytes]) -> dict[str, Any]:
    """One of `ITEMS` items."""
    return _item(key_of(number), ITEM_BYTES, random_bytes)


@dataclass(frozen=True)
class Requests:
    """All requests of a run against `endpoint` and `table`, from one seed."""

    endpoint: str
    table: str
    seed: int = 1

    def raw(self, operation: str, body: dict[str, Any]) -> bytes:
        """A request of this body."""
        return http_request(self.endpoint, operation, body)

    def _bytes(self, operation: str, **members: Any) -> bytes:
        return self.raw(operation, {"TableName": self.table, **members})

    def loading(self) -> list[bytes]:
        """What fills the table."""
        dice = random.Random(self.seed)
        items = [item_of(number, dice.randbytes) for number in range(ITEMS)]
        for partition in range(QUERY_PARTITIONS):
            for number in range(QUERY_ITEMS):
                key = {"pk": {"S": f"list-{partition:03}"}, "sk": {"S": f"{number:03}"}}
                items.append(_item(key, QUERY_ITEM_BYTES, dice.randbytes))
        return [self._bytes("PutItem", Item=item) for item in items]

    def workload(self, name: str, make: Callable[[Requests, random.Random], bytes]) -> Iterator[bytes]:
        """The requests of a workload, without end."""
        dice = random.Random(f"{self.seed} {name}")
        return cycle([make(self, dice) for _ in range(PREPARED)])

    def _put(self, dice: random.Random) -> bytes:
        return self._bytes("PutItem", Item=item_of(dice.randrange(ITEMS), dice.randbytes))

    def _get_strong(self, dice: random.Random) -> bytes:
        return self._bytes("GetItem", Key=key_of(dice.randrange(ITEMS)), ConsistentRead=True)

    def _get_eventual(self, dice: random.Random) -> bytes:
        return self._bytes("GetItem", Key=key_of(dice.randrange(ITEMS)))

    def _query(self, dice: random.Random) -> bytes:
        return self._bytes(
            "Query",
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": {"S": f"list-{dice.randrange(QUERY_PARTITIONS):03}"}},
        )


Make: TypeAlias = Callable[[Requests, random.Random], bytes]
"""Makes one request of a workload."""
WORKLOADS: dict[str, Make] = {
    "put 1 KB": Requests._put,
    "get strong": Requests._get_strong,
    "get eventual": Requests._get_eventual,
    "query of 20": Requests._query,
}
