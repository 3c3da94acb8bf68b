"""The seam between services and the network. Messages pass as serialized bytes, whatever carries them.

Real services use `cluster.grpc_transport`, `trizone.Cluster` uses `cluster.memory_transport`, and the simulator has its
own. An address is "host:port". A method is "Service/Method".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias


class TransportError(Exception):
    """The peer could not be reached, the connection broke, or time ran out. Says nothing of what the peer did."""


class Stream(Protocol):
    """One end of a two-way stream of messages, in order, until either side closes it.

    Cancelling a task that waits in `send` or `receive` may end the stream: do not put a timeout around them.
    """

    async def send(self, message: bytes) -> None:
        """Hand a message over; returns when there is room for the next. Raises TransportError when broken."""
        ...

    async def receive(self) -> bytes | None:
        """The next message, or None when the stream has ended or broken."""
        ...

    def close(self) -> None:
        """End the stream; the other side's `receive` returns None. Messages that it has not taken yet may be lost."""
        ...


UnaryHandler: TypeAlias = Callable[[bytes], Awaitable[bytes]]
StreamHandler: TypeAlias = Callable[[Stream], Awaitable[None]]
"""Serves one stream; the stream is closed when it returns or raises."""


@dataclass(frozen=True)
class Handlers:
    """What a server offers, by method."""

    unary: Mapping[str, UnaryHandler] = field(default_factory=dict)
    streams: Mapping[str, StreamHandler] = field(default_factory=dict)


class Server(Protocol):
    """A listening server."""

    @property
    def address(self) -> str:
        """Where it listens, with the real port when port 0 was asked for."""
        ...

    async def stop(self) -> None:
        """Stop listening and end every stream."""
        ...


class Transport(Protocol):
    """How a process serves and calls."""

    async def serve(self, address: str, handlers: Handlers) -> Server:
        """Listen on `address`. Raises OSError when the port is taken."""
        ...

    async def call(self, address: str, method: str, message: bytes, timeout: float) -> bytes:  # noqa: ASYNC109
        """One request and its answer. Raises TransportError, also when `timeout` seconds pass."""
        ...

    async def open_stream(self, address: str, method: str) -> Stream:
        """Open a stream. Raises TransportError when the peer cannot be reached."""
        ...

    async def close(self) -> None:
        """End every stream and connection that this end opened."""
        ...
