"""Items with a time to live: they are there until it is over, and gone some time after."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

from tests.simulation.workloads.client import Client, Reply
from tests.simulation.workloads.history import History, Value
from tests.simulation.workloads.items import TABLE, value_of

ATTRIBUTE = "until"
LIVES = (-30.0, 60.0)
"""Seconds that an item has to live, by the true time."""


class FleetingWorkload:
    """One client's share. `wall`: the true time of the calendar, in seconds."""

    def __init__(self, client: Client, history: History, random: Random, wall: Callable[[], float]) -> None:
        self.until: dict[str, int] = {}
        """Item → when its time to live is over."""
        self._client = client
        self._history = history
        self._random = random
        self._wall = wall
        self._numbers = count(1)

    async def step(self) -> None:
        """Put an item, or read one."""
        if not self.until or self._random.random() < 0.4:
            await self._put()
        else:
            await self.read(self._random.choice(list(self.until)))

    async def _put(self) -> None:
        token = f"{self._client.name}.fleeting-{next(self._numbers)}"
        key, until = f"fleeting-{token}", int(self._wall() + self._random.uniform(*LIVES))
        self.until[key] = until
        operation = self._history.begin(self._client.name, key, "put", value=token)
        item = {**_key(key), "v": {"S": token}, ATTRIBUTE: {"N": str(until)}}
        if await self._call("PutItem", {"TableName": TABLE, "Item": item}) is not None:
            self._history.end(operation, done=True)

    async def read(self, key: str) -> tuple[bool, Value]:
        """A strongly consistent read: whether it was answered, and with what."""
        operation = self._history.begin(self._client.name, key, "get")
        reply = await self._call("GetItem", {"TableName": TABLE, "Key": _key(key), "ConsistentRead": True})
        if reply is None:
            return False, None
        found = value_of(reply.body.get("Item"))
        self._history.end(operation, done=True, found=found)
        return True, found

    def note_deletions(self, early: float) -> None:
        """Add what the service may have done to the history: a delete of each item, not before its time to live was
        over by the fastest clock, which is `early` seconds ahead of the true time."""
        wall, now = self._wall(), self._history.now()
        for key, until in self.until.items():
            if until - early <= wall:
                deletion = self._history.begin("the service", key, "delete")
                deletion.invoked = max(0.0, now - (wall - (until - early)))

    async def _call(self, operation: str, body: dict[str, Any]) -> Reply | None:
        reply = await self._client.call(operation, body)
        if reply is None or not reply.error:
            return reply
        self._history.unexpected.append(f"{self._history.now():.6f} {operation} {body}: {reply.error} {reply.body}")
        return None


def _key(key: str) -> dict[str, Any]:
    return {"k": {"S": key}, "s": {"S": "-"}}
