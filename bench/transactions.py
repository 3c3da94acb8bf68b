"""Transactions of two items: in one partition, in two, and with items that many want at once."""

from __future__ import annotations

import random
from collections.abc import Callable

from bench import requests
from bench.requests import Requests, item_of, key_of
from dynamo.keys import partition_hash, split_hashes

PARTITIONS = 3
"""Of a new table on one node per zone. On another service, or after splits, two items may come to lie otherwise."""
_FIRST_OF = [low for low, _ in split_hashes(PARTITIONS)]


def _partition(number: int) -> int:
    hashed = partition_hash("S", key_of(number)["pk"]["S"])
    return sum(low <= hashed for low in _FIRST_OF)


def _pair(dice: random.Random, *, together: bool) -> tuple[int, int]:
    """Two items that are in one partition, or in two."""
    while True:
        first, second = dice.sample(range(requests.ITEMS), 2)
        if (_partition(first) == _partition(second)) is together:
            return first, second


def _write(made: Requests, dice: random.Random, pair: tuple[int, int]) -> bytes:
    puts = [{"Put": {"TableName": made.table, "Item": item_of(number, dice.randbytes)}} for number in pair]
    return made.raw("TransactWriteItems", {"TransactItems": puts})


def _read(made: Requests, pair: tuple[int, int]) -> bytes:
    gets = [{"Get": {"TableName": made.table, "Key": key_of(number)}} for number in pair]
    return made.raw("TransactGetItems", {"TransactItems": gets})


def _hot(items: int) -> Callable[[Requests, random.Random], bytes]:
    """One of the two items is one of so many, the other any of all; in two partitions."""

    def write(made: Requests, dice: random.Random) -> bytes:
        hot = dice.randrange(min(items, requests.ITEMS))
        while _partition(other := dice.randrange(requests.ITEMS)) == _partition(hot):
            pass
        return _write(made, dice, (hot, other))

    return write


TRANSACTIONS: dict[str, Callable[[Requests, random.Random], bytes]] = {
    "write 2 in 1": lambda made, dice: _write(made, dice, _pair(dice, together=True)),
    "write 2 in 2": lambda made, dice: _write(made, dice, _pair(dice, together=False)),
    "read 2 in 1": lambda made, dice: _read(made, _pair(dice, together=True)),
    "read 2 in 2": lambda made, dice: _read(made, _pair(dice, together=False)),
    "write hot 1": _hot(1),
    "write hot 10": _hot(10),
    "write hot 1000": _hot(1_000),
}
"""`in 1` and `in 2`: partitions. Of the hot ones, those that were in the way of another are errors."""
