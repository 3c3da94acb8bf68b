"""The HTTP server that every process has for whoever looks after it: GET /metrics, /healthz and /readyz."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

HEAD_BYTES_MAX = 16 << 10
READ_SECONDS = 5.0
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}
_TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True)
class _Answer:
    status: int
    body: bytes
    content_type: str = _TEXT


class StatusServer:
    """Serves a process's metrics and health. `ready` tells whether it serves its clients yet."""

    def __init__(self, registry: CollectorRegistry, ready: Callable[[], bool]) -> None:
        self._registry = registry
        self._ready = ready
        self._server: asyncio.Server | None = None
        self._address = ""

    @property
    def address(self) -> str:
        """Where it listens, with the real port; empty before `start`."""
        return self._address

    async def start(self, address: str) -> None:
        """Listen on "host:port". Raises OSError when the port is taken."""
        host, _, port = address.rpartition(":")
        self._server = await asyncio.start_server(self._serve, host, int(port), limit=HEAD_BYTES_MAX)
        self._address = f"{host}:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(READ_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            answer = self._answer(head)
        except (TimeoutError, asyncio.LimitOverrunError):
            answer = _Answer(400, b"the request's head did not come whole\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()
            return
        try:
            writer.write(_bytes(answer))
            await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    def _answer(self, head: bytes) -> _Answer:
        parts = head.split(b"\r\n", 1)[0].split(b" ")
        if len(parts) != 3:
            return _Answer(400, b"not an HTTP request\n")
        if parts[0] != b"GET":
            return _Answer(405, b"only GET is served here\n")
        match parts[1].split(b"?", 1)[0]:
            case b"/metrics":
                return _Answer(200, generate_latest(self._registry), CONTENT_TYPE_LATEST)
            case b"/healthz":
                return _Answer(200, b"ok\n")
            case b"/readyz":
                return _Answer(200, b"ready\n") if self._ready() else _Answer(503, b"not ready yet\n")
        return _Answer(404, b"there are /metrics, /healthz and /readyz\n")


def _bytes(answer: _Answer) -> bytes:
    head = (
        f"HTTP/1.1 {answer.status} {_REASONS[answer.status]}\r\nContent-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(answer.body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + answer.body
