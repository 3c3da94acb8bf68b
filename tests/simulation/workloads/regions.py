"""Writers of the same few items in every region: puts of unique values, deletes, updates, and transactions."""

from __future__ import annotations

from itertools import count
from random import Random
from typing import Any, Final

from tests.simulation.workloads.client import Client
from tests.simulation.workloads.items import TABLE

NAMES: Final = tuple(f"shared-{number}" for number in range(10))
_CONFLICTS: Final = frozenset({"TransactionCanceledException", "TransactionConflictException"})
"""What is answered to writes that meet a transaction."""


class RegionWorkload:
    """One client's share. `acknowledged`: the values whose write succeeded; `wrong`: answers that should not be."""

    def __init__(self, client: Client, random: Random, names: tuple[str, ...] = NAMES) -> None:
        self.acknowledged: list[str] = []
        self.operations = self.answered = 0
        self.wrong: list[str] = []
        self._client = client
        self._random = random
        self._names = names
        self._numbers = count(1)

    async def step(self) -> None:
        """One write of a random kind."""
        write = self._random.choices((self._put, self._delete, self._update, self._transact), (6, 4, 2, 1))[0]
        await write()

    def _key(self, name: str) -> dict[str, Any]:
        return {"k": {"S": name}, "s": {"S": "-"}}

    def _any(self) -> dict[str, Any]:
        return self._key(self._random.choice(self._names))

    def _token(self) -> str:
        return f"{self._client.name}/{next(self._numbers)}"

    async def put(self, name: str) -> bool:
        """Put an item, whether it was acknowledged."""
        token = self._token()
        body = {"TableName": TABLE, "Item": {**self._key(name), "v": {"S": token}}}
        return await self._write("PutItem", body, token)

    async def _put(self) -> None:
        await self.put(self._random.choice(self._names))

    async def _delete(self) -> None:
        await self._write("DeleteItem", {"TableName": TABLE, "Key": self._any()})

    async def _update(self) -> None:
        token = self._token()
        body = {
            "TableName": TABLE,
            "Key": self._any(),
            "UpdateExpression": "SET v = :v",
            "ExpressionAttributeValues": {":v": {"S": token}},
        }
        await self._write("UpdateItem", body, token)

    async def _transact(self) -> None:
        """One put and one delete, of two items."""
        one, other = self._random.sample(self._names, 2)
        token = self._token()
        put = {"Put": {"TableName": TABLE, "Item": {**self._key(one), "v": {"S": token}}}}
        delete = {"Delete": {"TableName": TABLE, "Key": self._key(other)}}
        await self._write("TransactWriteItems", {"TransactItems": [put, delete]}, token)

    async def _write(self, operation: str, body: dict[str, Any], token: str = "") -> bool:
        self.operations += 1
        reply = await self._client.call(operation, body)
        if reply is None:
            return False
        self.answered += 1
        if reply.error:
            if reply.error not in _CONFLICTS:
                self.wrong.append(f"{operation} {body}: {reply.error} {reply.body}")
            return False
        if token:
            self.acknowledged.append(token)
        return True
