"""Two are on duty, and each may leave while the other stays: the write skew that condition checks are there to refuse.

Whoever leaves writes only the own item and only checks the other's, so that those who leave write no item in common.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.simulation.workloads.client import Client, Reply

PAIRS = 3
_EXPECTED = frozenset(
    {"TransactionCanceledException", "TransactionConflictException", "TransactionInProgressException"}
)


@dataclass
class Duty:
    """What all clients did and saw. The two of a pair are items of two tables."""

    tables: tuple[str, str]
    left: int = 0
    refused: int = 0
    looks: int = 0
    wrong: list[str] = field(default_factory=list)


class DutyWorkload:
    """One client's share of the work."""

    def __init__(self, client: Client, duty: Duty, random: Random) -> None:
        self._client = client
        self._duty = duty
        self._random = random

    async def step(self) -> None:
        """Both try to leave, at the same moment; then somebody looks, and both come back."""
        pair = self._random.randrange(PAIRS)
        await asyncio.gather(self._leave(pair, 0), self._leave(pair, 1))
        await self._look(pair)
        for side in range(2):
            await self._come_back(pair, side)

    async def _leave(self, pair: int, side: int) -> None:
        stays = "attribute_not_exists(away)"
        check = {**self._place(pair, 1 - side), "ConditionExpression": stays}
        update = {**self._place(pair, side), "UpdateExpression": "SET away = :yes"}
        values = {"ExpressionAttributeValues": {":yes": {"BOOL": True}}}
        actions: list[dict[str, Any]] = [{"ConditionCheck": check}, {"Update": {**update, **values}}]
        self._random.shuffle(actions)
        reply = await self._call("TransactWriteItems", {"TransactItems": actions})
        if reply is not None:
            self._duty.left += not reply.error
            reasons = reply.body.get("CancellationReasons", [])
            self._duty.refused += any(reason["Code"] == "ConditionalCheckFailed" for reason in reasons)

    async def _come_back(self, pair: int, side: int) -> None:
        await self._call("UpdateItem", {**self._place(pair, side), "UpdateExpression": "REMOVE away"})

    async def _look(self, pair: int) -> None:
        gets = [{"Get": self._place(pair, side)} for side in range(2)]
        reply = await self._call("TransactGetItems", {"TransactItems": gets})
        if reply is None or reply.error:
            return
        self._duty.looks += 1
        if all("away" in each.get("Item", {}) for each in reply.body["Responses"]):
            self._duty.wrong.append(f"{self._client.name} saw nobody of pair {pair} on duty")

    async def _call(self, operation: str, body: dict[str, Any]) -> Reply | None:
        reply = await self._client.call(operation, body)
        if reply is not None and reply.error and reply.error not in _EXPECTED:
            self._duty.wrong.append(f"{self._client.name} was answered {reply.error}: {reply.body}")
        return reply

    def _place(self, pair: int, side: int) -> dict[str, Any]:
        return {"TableName": self._duty.tables[side], "Key": {"id": {"S": f"duty-{pair}-{side}"}}}
