"""Random small transactions on few items, for the serializability checker; single operations meet them.

Every value written is unique. A client token is sent again on purpose: after no clear answer, after success, and twice
at once; the transaction must happen once all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any, Final, TypeAlias

from tests.simulation.workloads.client import Client, Reply

FOREVER: Final = float("inf")
ITEMS = 5
"""In each group."""
GROUP_SECONDS = 3.0
"""Then all turn to the next group of items: the checker's search grows faster than what it is given."""
SENT_AGAIN_MAX = 3
CANCELED, CONFLICT = "TransactionCanceledException", "TransactionConflictException"
IN_PROGRESS, CONDITION_FAILED = "TransactionInProgressException", "ConditionalCheckFailedException"

Value: TypeAlias = str | None
"""An item's unique token. None: there is no item."""


@dataclass(slots=True, eq=False)
class Transaction:
    """What one request met and wrote, at one moment: items that it `reads` had these values, those that it `writes`
    have these since. Without an end (`returned` is FOREVER) it may happen at any time after `invoked`, or never.

    `alone`: a plain read. A transaction being committed comes to its items one after the other, and single reads may
    see that; they are held to their own item's order alone.
    """

    client: str
    invoked: float
    reads: dict[str, Value] = field(default_factory=dict)
    writes: dict[str, Value] = field(default_factory=dict)
    returned: float = FOREVER
    alone: bool = False

    def __str__(self) -> str:
        until = "..." if self.returned == FOREVER else f"{self.returned:.6f}"
        return f"{self.invoked:.6f} {until:>10} {self.client:9} reads {self.reads} writes {self.writes}"


@dataclass
class TransactionHistory:
    """All that clients did and heard."""

    now: Callable[[], float]
    tables: tuple[str, str]
    transactions: list[Transaction] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    groups: int = 0

    def by_group(self) -> Iterator[list[Transaction]]:
        """The transactions of each group of items, which meet no others."""
        groups: dict[str, list[Transaction]] = {}
        for each in self.transactions:
            for key in (*each.reads, *each.writes)[:1]:
                groups.setdefault(key.partition("-")[0], []).append(each)
        yield from groups.values()

    def table_of(self, key: str) -> str:
        """Which table an item is in."""
        return self.tables[int(key.rpartition("-")[2]) % 2]


def keys_of(group: int) -> list[str]:
    """The items of a group."""
    return [f"g{group}-{number}" for number in range(ITEMS)]


class RandomTransactions:
    """One client's share of the work."""

    def __init__(self, client: Client, history: TransactionHistory, random: Random) -> None:
        self._client = client
        self._history = history
        self._random = random
        self._numbers = count(1)
        self._known: dict[str, Value] = {}
        self._group = 0

    async def step(self) -> None:
        """One request of a random kind."""
        self._group = int(self._history.now() / GROUP_SECONDS)
        self._history.groups = max(self._history.groups, self._group + 1)
        kinds = (self._write, self._read, self._put, self._get)
        await self._random.choices(kinds, (6, 4, 2, 2))[0]()

    # --- transactions ---

    async def _read(self) -> None:
        await self.read(self._some(self._random.randint(2, 4)))

    async def read(self, keys: list[str]) -> bool:
        """TransactGetItems of these items; whether it was answered with them."""
        invoked = self._history.now()
        gets = [{"Get": self._place(key)} for key in keys]
        reply = await self._call("TransactGetItems", {"TransactItems": gets}, CANCELED)
        if reply is None or reply.error:
            return False
        found = [_value(each.get("Item")) for each in reply.body["Responses"]]
        self._known.update(zip(keys, found, strict=True))
        self._note(invoked, reads=dict(zip(keys, found, strict=True)))
        return True

    async def _write(self) -> None:
        asked = Transaction(self._client.name, self._history.now())
        keys = self._some(self._random.randint(1, 3))
        actions = [self._action(key, asked) for key in keys]
        if not asked.writes:
            return
        body = {"TransactItems": actions, "ClientRequestToken": self._token()}
        replies = await self._sent(body)
        done = min((ended for reply, ended in replies if reply is not None and not reply.error), default=None)
        if done is not None:
            asked.returned = done
            self._history.transactions.append(asked)
            await self._perhaps_replay(body)
            return
        for reply, ended in replies:
            self._refused(keys, reply, ended)
        if any(reply is None or reply.error == IN_PROGRESS or reply.doubtful for reply, _ in replies):
            self._history.transactions.append(asked)  # it may have happened, or happen later

    async def _sent(self, body: dict[str, Any]) -> list[tuple[Reply | None, float]]:
        """The replies, and when they came: of one call or of two at once; and again while nothing is clear."""
        replies: list[tuple[Reply | None, float]] = []
        for _ in range(SENT_AGAIN_MAX):
            calls = [self._transact(body) for _ in range(1 + (self._random.random() < 0.1))]
            replies += await asyncio.gather(*calls)
            last = replies[-1][0]
            if (last is not None and last.error != IN_PROGRESS) or self._random.random() < 0.3:
                break
        return replies

    async def _transact(self, body: dict[str, Any]) -> tuple[Reply | None, float]:
        reply = await self._call("TransactWriteItems", body, CANCELED, IN_PROGRESS)
        return reply, self._history.now()

    async def _perhaps_replay(self, body: dict[str, Any]) -> None:
        """What was done is done, whatever became of its items since: the same token succeeds, and does nothing."""
        if self._random.random() < 0.3:
            await asyncio.sleep(self._random.uniform(0, 0.5))
            await self._call("TransactWriteItems", body)

    def _refused(self, keys: list[str], reply: Reply | None, ended: float) -> None:
        """Each failed condition tells what its item was; not all were looked at at the same moment."""
        if reply is None or reply.error != CANCELED:
            return
        for key, reason in zip(keys, reply.body["CancellationReasons"], strict=True):
            if reason["Code"] == "ConditionalCheckFailed":
                found = self._known[key] = _value(reason.get("Item"))
                read = Transaction(self._client.name, reply.last_sent, {key: found}, returned=ended)
                self._history.transactions.append(read)

    def _action(self, key: str, asked: Transaction) -> dict[str, Any]:
        """A random action, noted in `asked`."""
        conditional = key in self._known and self._random.random() < 0.6
        body = self._condition(key) if conditional else {}
        if conditional:
            asked.reads[key] = self._known[key]
            if self._random.random() < 0.4:
                return {"ConditionCheck": {**self._place(key), **body}}
        kind = self._random.choice(("Put", "Update", "Delete"))
        asked.writes[key] = None if kind == "Delete" else self._token()
        if kind == "Put":
            return {"Put": {"TableName": self._history.table_of(key), "Item": _item(key, asked.writes[key]), **body}}
        if kind == "Delete":
            return {"Delete": {**self._place(key), **body}}
        values = {**body.pop("ExpressionAttributeValues", {}), ":new": {"S": asked.writes[key]}}
        update = {"UpdateExpression": "SET v = :new", "ExpressionAttributeValues": values}
        return {"Update": {**self._place(key), **body, **update}}

    def _condition(self, key: str) -> dict[str, Any]:
        """That the item is as this client last saw it."""
        known = self._known[key]
        body: dict[str, Any] = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        if known is None:
            return {**body, "ConditionExpression": "attribute_not_exists(id)"}
        values = {":known": {"S": known}}
        return {**body, "ConditionExpression": "v = :known", "ExpressionAttributeValues": values}

    # --- single operations ---

    async def _get(self) -> None:
        (key,) = self._some(1)
        invoked = self._history.now()
        reply = await self._call("GetItem", {**self._place(key), "ConsistentRead": True})
        if reply is not None:
            self._known[key] = found = _value(reply.body.get("Item"))
            self._note(invoked, reads={key: found}, alone=True)

    async def _put(self) -> None:
        (key,) = self._some(1)
        token = self._token()
        asked = Transaction(self._client.name, self._history.now(), writes={key: token})
        body: dict[str, Any] = {"TableName": self._history.table_of(key), "Item": _item(key, token)}
        if key in self._known and self._random.random() < 0.5:
            asked.reads[key] = self._known[key]
            body.update(self._condition(key))
        else:
            body["ReturnValues"] = "ALL_OLD"
        reply = await self._call("PutItem", body, CONFLICT, CONDITION_FAILED)
        if reply is None or reply.doubtful or not reply.error:
            self._history.transactions.append(asked)
        if reply is None:
            return
        if not reply.error:
            asked.returned = self._history.now()
            asked.reads.setdefault(key, _value(reply.body.get("Attributes")))
        elif reply.error == CONDITION_FAILED:
            self._known[key] = found = _value(reply.body.get("Item"))
            self._note(reply.last_sent, reads={key: found})

    # --- parts ---

    async def _call(self, operation: str, body: dict[str, Any], *allowed: str) -> Reply | None:
        reply = await self._client.call(operation, body)
        if reply is None or not reply.error or reply.error in allowed:
            return reply
        self._history.unexpected.append(f"{self._history.now():.6f} {operation} {body}: {reply.error} {reply.body}")
        return None

    def _note(self, invoked: float, *, reads: dict[str, Value], alone: bool = False) -> None:
        read = Transaction(self._client.name, invoked, reads, returned=self._history.now(), alone=alone)
        self._history.transactions.append(read)

    def _some(self, number: int) -> list[str]:
        return self._random.sample(keys_of(self._group), number)

    def _token(self) -> str:
        return f"{self._client.name}.{next(self._numbers)}"

    def _place(self, key: str) -> dict[str, Any]:
        return {"TableName": self._history.table_of(key), "Key": {"id": {"S": key}}}


def _item(key: str, token: Value) -> dict[str, Any]:
    return {"id": {"S": key}, "v": {"S": token}}


def _value(item: dict[str, Any] | None) -> Value:
    if not item:
        return None
    token: str = item["v"]["S"]
    return token
