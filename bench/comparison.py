"""What servers are compared by, beyond the single requests: counters, mixes, batches and transactions."""

from __future__ import annotations

import random
from collections.abc import Callable

from bench import requests
from bench.requests import WORKLOADS, Requests, item_of

COUNTERS = 1_000
BATCH = 25


def _update(made: Requests, dice: random.Random) -> bytes:
    return made.raw(
        "UpdateItem",
        {
            "TableName": made.table,
            "Key": {"pk": {"S": f"counter-{dice.randrange(COUNTERS):04}"}, "sk": {"S": "0"}},
            "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        },
    )


def _mixed(reads: float) -> Callable[[Requests, random.Random], bytes]:
    def make(made: Requests, dice: random.Random) -> bytes:
        return WORKLOADS["get eventual" if dice.random() < reads else "put 1 KB"](made, dice)

    return make


def _batch(made: Requests, dice: random.Random) -> bytes:
    items = [item_of(number, dice.randbytes) for number in dice.sample(range(requests.ITEMS), BATCH)]
    return made.raw(
        "BatchWriteItem", {"RequestItems": {made.table: [{"PutRequest": {"Item": item}} for item in items]}}
    )


def _transact(made: Requests, dice: random.Random) -> bytes:
    puts = [
        {"Put": {"TableName": made.table, "Item": item_of(number, dice.randbytes)}}
        for number in dice.sample(range(requests.ITEMS), 2)
    ]
    return made.raw("TransactWriteItems", {"TransactItems": puts})


COMPARISON: dict[str, Callable[[Requests, random.Random], bytes]] = {
    **WORKLOADS,
    "update ADD": _update,
    "half writes": _mixed(0.5),
    "5 % writes": _mixed(0.95),
    "batch of 25": _batch,
    "transact 2": _transact,
}
