"""Closed-loop load: connections, each of which sends its next request when it has the answer to the last one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import cast
from urllib.parse import urlsplit

_LENGTH = b"content-length:"


@dataclass
class Measured:
    """What a run gave. Latencies are in seconds; an error is an answer other than 200, or a broken connection."""

    latencies: list[float] = field(default_factory=list)
    errors: int = 0
    seconds: float = 0.0

    def percentile(self, fraction: float) -> float:
        """The latency below which this fraction of the answers stayed, in seconds."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(len(ordered) * fraction))] if ordered else 0.0


class _Connection(asyncio.Protocol):
    """One connection. Ends when `next_request` gives None."""

    def __init__(
        self, next_request: Callable[[], bytes | None], measured: Measured, done: asyncio.Future[None]
    ) -> None:
        self._next = next_request
        self._measured = measured
        self._done = done
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._sent = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by inheritance
        self._send()

    def _send(self) -> None:
        assert self._transport is not None
        request = self._next()
        if request is None:
            self._transport.close()
            return
        self._sent = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head_end = self._buffer.find(b"\r\n\r\n")
        if head_end < 0:
            return
        if len(self._buffer) < head_end + 4 + _content_length(self._buffer[:head_end]):
            return
        if self._buffer[9:12] == b"200":
            self._measured.latencies.append(time.perf_counter() - self._sent)
        else:
            self._measured.errors += 1
        self._buffer = b""
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        if error is not None or self._next() is not None:
            self._measured.errors += 1
        if not self._done.done():
            self._done.set_result(None)


def _content_length(head: bytes) -> int:
    start = head.lower().index(_LENGTH) + len(_LENGTH)
    return int(head[start:].split(b"\r\n", 1)[0])


async def run(endpoint: str, next_request: Callable[[], bytes | None], connections: int) -> Measured:
    """Send what `next_request` gives until it gives None to every connection."""
    loop = asyncio.get_running_loop()
    measured = Measured()
    address = urlsplit(endpoint)
    ends = [loop.create_future() for _ in range(connections)]
    started = time.perf_counter()
    for end in ends:
        await loop.create_connection(
            partial(_Connection, next_request, measured, end), address.hostname or "", address.port or 80
        )
    await asyncio.gather(*ends)
    measured.seconds = time.perf_counter() - started
    return measured


def all_of(requests: list[bytes]) -> Callable[[], bytes | None]:
    """Each request once."""
    left = iter(requests)
    return lambda: next(left, None)


def for_seconds(requests: Iterator[bytes], seconds: float) -> Callable[[], bytes | None]:
    """Requests until the time is over; it begins to run now."""
    end = time.perf_counter() + seconds
    return lambda: next(requests) if time.perf_counter() < end else None
