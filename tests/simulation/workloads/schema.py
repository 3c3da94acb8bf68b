"""Changes of the table's schema while everything else goes on: a global index is made, and made away with."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.simulation.workloads.client import Client
from tests.simulation.workloads.items import TABLE, global_index

NAME = "later_by_value"
_EXPECTED = frozenset(
    {"", "ResourceInUseException", "ResourceNotFoundException", "ValidationException", "LimitExceededException"}
)
"""Also what is answered to a change that was made by a try that was lost sight of, and to one that comes too soon."""


class SchemaWorkload:
    """One client that makes an index, waits until it is filled, and perhaps deletes it and begins anew."""

    def __init__(self, client: Client, random: Random) -> None:
        self.made = 0
        self.wrong: list[str] = []
        self._client = client
        self._random = random

    async def step(self) -> None:
        """Look at the table, and take the next step if it is settled."""
        reply = await self._client.call("DescribeTable", {"TableName": TABLE})
        if reply is None or reply.error:
            if reply is not None:
                self.wrong.append(f"DescribeTable: {reply.error} {reply.body}")
            return
        table = reply.body["Table"]
        states = {index["IndexName"]: index["IndexStatus"] for index in table.get("GlobalSecondaryIndexes", ())}
        if table["TableStatus"] != "ACTIVE" or any(state != "ACTIVE" for state in states.values()):
            return
        if NAME not in states:
            types = [{"AttributeName": "v", "AttributeType": "S"}]
            await self._update({"Create": global_index(NAME)}, AttributeDefinitions=types)
            self.made += 1
        elif self._random.random() < 0.3:
            await self._update({"Delete": {"IndexName": NAME}})

    async def _update(self, change: dict[str, Any], **members: Any) -> None:
        body = {"TableName": TABLE, "GlobalSecondaryIndexUpdates": [change], **members}
        reply = await self._client.call("UpdateTable", body)
        if reply is not None and reply.error not in _EXPECTED:
            self.wrong.append(f"UpdateTable {change}: {reply.error} {reply.body}")
