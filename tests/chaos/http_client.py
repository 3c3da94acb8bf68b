"""A light client of DynamoDB's HTTP API: one connection, and the retries of an AWS SDK.

boto3 costs about a millisecond of CPU per request, which on a machine that also runs the cluster under test would be
most of the load. This client sends what boto3 sends as far as a router looks at it, and retries as botocore 1.44 does
for DynamoDB by default (`standard` mode): 4 attempts, pauses of random(0, 1) * 25 ms * 2^n between them, all with one
invocation id.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any
from uuid import UUID

ATTEMPTS_MAX = 4
BACKOFF_SCALE_S = 0.025
TIMEOUT_S = 60.0
RETRYABLE = frozenset({500, 502, 503, 504})
_AUTHORIZATION = (
    "AWS4-HMAC-SHA256 Credential={key}/20260101/us-east-1/dynamodb/aws4_request, "
    "SignedHeaders=host;x-amz-date;x-amz-target, Signature=" + "0" * 64
)


class Refused(Exception):  # noqa: N818
    """The service said no, and trying again would not help. `type` is the error's short name."""

    def __init__(self, error_type: str, message: str) -> None:
        super().__init__(f"{error_type}: {message}")
        self.type = error_type


class GaveUp(Exception):  # noqa: N818
    """Every attempt failed, `causes` of each; whether the request was carried out is not known."""

    def __init__(self, causes: Sequence[str]) -> None:
        super().__init__("; ".join(causes))


@dataclass(frozen=True)
class Outcome:
    """What became of a request. `error`: the last answer's error type, "" for success; None: no attempt was answered
    clearly, and `causes` tells why.

    `doubtful`: an attempt before the answered one ended without a clear answer, so it may still come to pass.
    `last_sent`: when the last attempt left, on the monotonic clock.
    """

    error: str | None
    body: dict[str, Any]
    causes: tuple[str, ...]
    last_sent: float

    @property
    def doubtful(self) -> bool:
        """Whether an earlier attempt may still come to pass."""
        return bool(self.causes)


@dataclass(frozen=True)
class _Answer:
    status: int
    body: bytes


class HttpClient:
    """One client, one request at a time. `port` may be shared by several routers: each connection gets one of them."""

    def __init__(self, host: str, port: int, name: str, random: Random) -> None:
        self.name = name
        self._host = host
        self._port = port
        self._random = random
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(self, operation: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer to one operation. Raises Refused or GaveUp."""
        outcome = await self.send(operation, body)
        if outcome.error is None:
            raise GaveUp(outcome.causes)
        if outcome.error:
            earlier = f" (after {'; '.join(outcome.causes)})" if outcome.causes else ""
            raise Refused(outcome.error, str(outcome.body.get("message", "")) + earlier)
        return outcome.body

    async def send(self, operation: str, body: dict[str, Any]) -> Outcome:
        """What became of one operation, after all attempts."""
        content = json.dumps(body).encode()
        request = self._head(operation, len(content)) + content
        causes: list[str] = []
        last_sent = 0.0
        for attempt in range(ATTEMPTS_MAX):
            if attempt:
                await asyncio.sleep(self._random.random() * BACKOFF_SCALE_S * 2 ** (attempt - 1))
            last_sent = time.monotonic()
            try:
                answer = await asyncio.wait_for(self._attempt(request), TIMEOUT_S)
            except (OSError, EOFError, TimeoutError) as error:
                await self.close()
                causes.append(f"{type(error).__name__} {error}")
                continue
            if answer.status not in RETRYABLE:
                result: dict[str, Any] = json.loads(answer.body)
                error_type = "" if answer.status == 200 else str(result["__type"]).rpartition("#")[2]
                return Outcome(error_type, result, tuple(causes), last_sent)
            causes.append(f"{answer.status} {answer.body[:200].decode('latin-1')}")
        return Outcome(None, {}, tuple(causes), last_sent)

    def _head(self, operation: str, length: int) -> bytes:
        invocation = UUID(int=self._random.getrandbits(128), version=4)
        lines = (
            "POST / HTTP/1.1",
            f"Host: {self._host}:{self._port}",
            f"X-Amz-Target: DynamoDB_20120810.{operation}",
            "Content-Type: application/x-amz-json-1.0",
            f"Content-Length: {length}",
            f"Authorization: {_AUTHORIZATION.format(key=self.name)}",
            f"amz-sdk-invocation-id: {invocation}",
        )
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    async def _attempt(self, request: bytes) -> _Answer:
        if self._streams is not None and self._streams[0].at_eof():
            await self.close()  # an SDK's pool too sees that a connection was closed, and opens another
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        status_line, *headers = head.decode("latin-1").split("\r\n")
        length = next(int(line.partition(":")[2]) for line in headers if line.lower().startswith("content-length:"))
        return _Answer(int(status_line.split()[1]), await reader.readexactly(length))

    async def close(self) -> None:
        """Close the connection; the next request opens another."""
        streams, self._streams = self._streams, None
        if streams is not None:
            streams[1].transport.abort()
