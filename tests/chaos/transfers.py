"""Transfers between a thousand accounts by transactions, each brought to a clear end, and looks at groups of accounts.

Transfers stay within a group, so that its sum never changes. A transfer is sent with one client token again and again
until it succeeds: it has then happened once, and the books say what is on every account.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

from tests.chaos.http_client import HttpClient

TABLE = "accounts"
ACCOUNTS = 1_000
GROUP = 20
OPENING = 1_000
LOOKS_PART = 0.2
REST_S = 0.02
AGAIN_S = 0.05
CLEAR_S = 60.0
"""By then every transfer has succeeded, however often it was in the way of another or met a dead process."""
BATCH = 25
_LATER = frozenset({"TransactionCanceledException", "TransactionConflictException", "TransactionInProgressException"})
_EARLIER_REASONS = frozenset({"None", "TransactionConflict"})


@dataclass
class Books:
    """What all clients did and saw. Latencies in seconds, from the first sending to the success."""

    booked: Counter[int] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    conflicts: int = 0
    unclear: int = 0
    looks: int = 0
    wrong: list[str] = field(default_factory=list)
    stopping: bool = False

    def faults_of(self, found: dict[int, int]) -> Iterator[str]:
        """Accounts that do not hold what they should."""
        for number in range(ACCOUNTS):
            wanted = OPENING + self.booked[number]
            if found.get(number) != wanted:
                yield f"account {number} holds {found.get(number)} and not {wanted}"
        if sum(found.values()) != ACCOUNTS * OPENING:
            yield f"all accounts hold {sum(found.values())} and not {ACCOUNTS * OPENING}"


class Teller:
    """One client of the bank."""

    def __init__(self, books: Books, client: HttpClient, random: Random) -> None:
        self._books = books
        self._client = client
        self._random = random
        self._numbers = count(1)

    async def run(self) -> None:
        """Work until the books are being closed."""
        while not self._books.stopping:
            await (self._look() if self._random.random() < LOOKS_PART else self._transfer())
            await asyncio.sleep(REST_S * 2 * self._random.random())

    def _group(self) -> range:
        first = GROUP * self._random.randrange(ACCOUNTS // GROUP)
        return range(first, first + GROUP)

    async def _look(self) -> None:
        group = self._group()
        gets = [{"Get": {"TableName": TABLE, "Key": _key(number)}} for number in group]
        outcome = await self._client.send("TransactGetItems", {"TransactItems": gets})
        if outcome.error is None or outcome.error in _LATER:
            return
        if outcome.error:
            self._books.wrong.append(f"a look was answered {outcome.error}: {outcome.body}")
            return
        self._books.looks += 1
        balances = [int(each["Item"]["balance"]["N"]) for each in outcome.body["Responses"]]
        if sum(balances) != GROUP * OPENING:
            self._books.wrong.append(f"accounts from {group.start} hold {balances}, in all {sum(balances)}")

    async def _transfer(self) -> None:
        source, target = self._random.sample(self._group(), 2)
        amount = self._random.randint(1, 9)
        body = {
            "TransactItems": [_move(source, -amount), _move(target, amount)],
            "ClientRequestToken": f"{self._client.name}-{next(self._numbers)}",
        }
        began = time.monotonic()
        while not await self._done(body):
            if time.monotonic() > began + CLEAR_S:
                self._books.wrong.append(f"no end after {CLEAR_S:g} s: {body}")
                return
            await asyncio.sleep(AGAIN_S * 2 * self._random.random())
        self._books.latencies.append(time.monotonic() - began)
        self._books.booked[source] -= amount
        self._books.booked[target] += amount

    async def _done(self, body: dict[str, Any]) -> bool:
        """One call; whether the transfer has happened for sure."""
        outcome = await self._client.send("TransactWriteItems", body)
        if outcome.error is None:
            self._books.unclear += 1
        elif outcome.error in _LATER:
            self._books.conflicts += 1
            reasons = {reason["Code"] for reason in outcome.body.get("CancellationReasons", [])}
            if not reasons <= _EARLIER_REASONS:
                self._books.wrong.append(f"a transfer was cancelled for {sorted(reasons)}")
        elif outcome.error:
            self._books.wrong.append(f"a transfer was answered {outcome.error}: {outcome.body}")
        return outcome.error == ""


async def open_accounts(client: HttpClient) -> None:
    """Fill the table."""
    for first in range(0, ACCOUNTS, BATCH):
        items = [{**_key(number), "balance": {"N": str(OPENING)}} for number in range(first, first + BATCH)]
        puts = [{"PutRequest": {"Item": item}} for item in items]
        answer = await client.call("BatchWriteItem", {"RequestItems": {TABLE: puts}})
        assert not answer["UnprocessedItems"]


@asynccontextmanager
async def tellers_at_work(books: Books, clients: Sequence[HttpClient], seed: int) -> AsyncIterator[None]:
    """One teller per client for as long as the block runs; each ends what it has begun."""
    async with asyncio.TaskGroup() as group:
        for number, client in enumerate(clients):
            group.create_task(Teller(books, client, Random(f"{seed} teller {number}")).run())
        try:
            yield
        finally:
            books.stopping = True


async def free_after(clients: Sequence[HttpClient]) -> float:
    """Write to every account alone, again and again where a transaction is in the way. Seconds until all were."""
    began = time.monotonic()
    left = iter(range(ACCOUNTS))
    await asyncio.gather(*(_touch(client, left) for client in clients))
    return time.monotonic() - began


async def _touch(client: HttpClient, left: Iterable[int]) -> None:
    body: dict[str, Any] = {"TableName": TABLE, "UpdateExpression": "SET touched = :yes"}
    body["ExpressionAttributeValues"] = {":yes": {"BOOL": True}}
    for number in left:
        while (outcome := await client.send("UpdateItem", {**body, "Key": _key(number)})).error:
            assert outcome.error == "TransactionConflictException", outcome
            await asyncio.sleep(AGAIN_S)
        assert outcome.error is not None, outcome.causes


async def balances_found(client: HttpClient) -> dict[int, int]:
    """What is on every account, by a strongly consistent scan."""
    found: dict[int, int] = {}
    body: dict[str, Any] = {"TableName": TABLE, "ConsistentRead": True}
    while True:
        page = await client.call("Scan", body)
        found |= {int(item["id"]["S"].partition("-")[2]): int(item["balance"]["N"]) for item in page["Items"]}
        if "LastEvaluatedKey" not in page:
            return found
        body["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def _key(number: int) -> dict[str, Any]:
    return {"id": {"S": f"account-{number}"}}


def _move(number: int, amount: int) -> dict[str, Any]:
    return {
        "Update": {
            "TableName": TABLE,
            "Key": _key(number),
            "UpdateExpression": "ADD balance :amount",
            "ConditionExpression": "attribute_exists(id)",
            "ExpressionAttributeValues": {":amount": {"N": str(amount)}},
        }
    }
