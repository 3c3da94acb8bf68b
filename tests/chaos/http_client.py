"""A light client of DynamoDB's HTTP API: one connection, and the retries of an AWS SDK.

boto3 costs about a millisecond of CPU per request, which on a machine that also runs the cluster under test would be
most of the load. This client sends what boto3 sends as far as a router looks at it, and retries as botocore 1.44 does
for DynamoDB by default (`standard` mode): 4 attempts, pauses of random(0, 1) * 25 ms * 2^n between them, all with one
invocation id.
"""

from __future__ import annotations

import asyncio
import json
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
    """Every attempt failed; whether the request was carried out is not known. `causes`: of each attempt."""

    def __init__(self, causes: list[str]) -> None:
        super().__init__("; ".join(causes))
        self.causes = causes


@dataclass(frozen=True)
class _Answer:
    status: int
    body: bytes


class HttpClient:
    """One client, one request at a time. `port` may be shared by several routers: each connection gets one of them."""

    def __init__(self, host: str, port: int, name: str, random: Random) -> None:
        self._host = host
        self._port = port
        self._name = name
        self._random = random
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.retries = 0

    async def call(self, operation: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer to one operation. Raises Refused or GaveUp."""
        content = json.dumps(body).encode()
        head = self._head(operation, len(content))
        causes: list[str] = []
        for attempt in range(ATTEMPTS_MAX):
            if attempt:
                self.retries += 1
                await asyncio.sleep(self._random.random() * BACKOFF_SCALE_S * 2 ** (attempt - 1))
            try:
                answer = await asyncio.wait_for(self._attempt(head + content), TIMEOUT_S)
            except (OSError, EOFError, TimeoutError) as error:
                await self.close()
                causes.append(f"{type(error).__name__} {error}")
                continue
            if answer.status == 200:
                result: dict[str, Any] = json.loads(answer.body)
                return result
            error_type, message = _error_of(answer)
            if answer.status not in RETRYABLE:
                raise Refused(error_type, message)
            causes.append(f"{answer.status} {error_type}: {message}")
        raise GaveUp(causes)

    def _head(self, operation: str, length: int) -> bytes:
        invocation = UUID(int=self._random.getrandbits(128), version=4)
        lines = (
            "POST / HTTP/1.1",
            f"Host: {self._host}:{self._port}",
            f"X-Amz-Target: DynamoDB_20120810.{operation}",
            "Content-Type: application/x-amz-json-1.0",
            f"Content-Length: {length}",
            f"Authorization: {_AUTHORIZATION.format(key=self._name)}",
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


def _error_of(answer: _Answer) -> tuple[str, str]:
    try:
        content = json.loads(answer.body)
        return str(content["__type"]).rpartition("#")[2], str(content.get("message", content.get("Message", "")))
    except (ValueError, KeyError):
        return "", answer.body[:200].decode("latin-1")
