"""A client in the simulation: it speaks to any router that lives, and retries as an AWS SDK does."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import orjson

from router.gateway import Answer, Received
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.workloads.client import Reply

TRIES = 4
PATIENCE = (0.5, 5.0)
"""Seconds that a try waits for its answer: a length between these for each client call."""
PAUSE_MAX = 1.0
_STREAMS = "DynamoDBStreams_20120810"
_SERVICES = {"DescribeStream": _STREAMS, "GetShardIterator": _STREAMS, "GetRecords": _STREAMS}
_RETRYABLE = frozenset({"InternalServerError", "ServiceUnavailable", "ThrottlingException"})


class _NoAnswer(Exception):  # noqa: N818
    """The connection broke, or time ran out."""


class SimulatedClient:
    """workloads.client.Client. `loss`: the share of connections that break before or after the request arrives."""

    def __init__(self, cluster: SimulatedCluster, name: str) -> None:
        self.name = name
        self.loss = 0.0
        self._quiet_until = 0.0
        self._cluster = cluster
        self._random = cluster.random(name)
        self._numbers = count(1)

    def be_quiet(self, seconds: float) -> None:
        """Send nothing new for so long."""
        self._quiet_until = asyncio.get_running_loop().time() + seconds

    async def call(self, operation: str, body: dict[str, Any]) -> Reply | None:
        """The reply; None when no try had a clear one."""
        await asyncio.sleep(max(0.0, self._quiet_until - asyncio.get_running_loop().time()))
        invocation = f"{self.name}-{next(self._numbers)}"
        received = Received(
            b"POST",
            b"/",
            {
                b"x-amz-target": f"{_SERVICES.get(operation, 'DynamoDB_20120810')}.{operation}".encode(),
                b"amz-sdk-invocation-id": invocation.encode(),
                b"host": b"simulated",
            },
            orjson.dumps(body),
        )
        patience = self._random.uniform(*PATIENCE)
        note = self._cluster.trace.note
        note(f"{invocation} {operation} {received.body.decode()}")
        doubtful = False
        for number in range(TRIES):
            last_sent = asyncio.get_running_loop().time()
            try:
                answer = await self._try(received, patience)
            except ConnectionRefusedError as error:
                note(f"{invocation} {error}")
            except _NoAnswer as error:
                note(f"{invocation} no answer: {error}")
                doubtful = True
            else:
                note(f"{invocation} {answer.status} {answer.body.decode()}")
                reply = _reply(answer, doubtful=doubtful, last_sent=last_sent)
                if reply.error not in _RETRYABLE:
                    return reply
                doubtful = True
            await asyncio.sleep(self._random.uniform(0, min(PAUSE_MAX, 0.05 * 2**number)))
        return None

    async def _try(self, received: Received, patience: float) -> Answer:
        """One request and its answer over a connection that may break. Raises _NoAnswer, ConnectionRefusedError."""
        fate = "whole"
        if self.loss and self._random.random() < self.loss:
            fate = self._random.choice(("request lost", "answer lost"))
        routers = self._cluster.routers
        router = self._random.choice([router for router in routers if router.ready] or routers)
        try:
            async with asyncio.timeout(patience):
                await self._travel()
                if fate == "request lost":
                    raise _NoAnswer(fate)
                answer = await router.request(received)
                await self._travel()
        except (TimeoutError, ConnectionResetError) as error:
            raise _NoAnswer(repr(error)) from error
        if fate == "answer lost":
            raise _NoAnswer(fate)
        return answer

    async def _travel(self) -> None:
        await asyncio.sleep(self._random.uniform(0.0002, 0.001))


def _reply(answer: Answer, *, doubtful: bool, last_sent: float) -> Reply:
    body = orjson.loads(answer.body)
    error = body.get("__type", "").rpartition("#")[2] if answer.status != 200 else ""
    return Reply(error, body, doubtful, last_sent)
