"""The network inside one process: the same promises as over TCP, with queues in place of sockets.

A `MemoryNetwork` is the wire, and each service has a `MemoryTransport` on it, as each process has its own sockets.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from itertools import count
from typing import Any

from cluster.transport import Handlers, Server, Stream, TransportError

MESSAGES_WAITING_MAX = 16  # messages that a stream holds in one direction before `send` waits
STOP_SECONDS = 1.0  # how long handlers may go on when their server stops
FIRST_PORT = 20_001

_log = logging.getLogger(__name__)


class _Pipe:
    """One direction of a stream."""

    def __init__(self) -> None:
        self._messages: deque[bytes] = deque()
        self.closed = False
        self._changed: set[asyncio.Future[None]] = set()

    async def put(self, message: bytes) -> None:
        while not self.closed and len(self._messages) >= MESSAGES_WAITING_MAX:
            await self._change()
        if self.closed:
            raise TransportError("the stream is closed")
        self._messages.append(message)
        self._wake()

    async def get(self) -> bytes | None:
        while not self._messages:
            if self.closed:
                return None
            await self._change()
        message = self._messages.popleft()
        self._wake()
        return message

    def close(self, *, discard: bool) -> None:
        """Take no more; with `discard` what is waiting is lost too."""
        self.closed = True
        if discard:
            self._messages.clear()
        self._wake()

    async def _change(self) -> None:
        future = asyncio.get_running_loop().create_future()
        self._changed.add(future)
        try:
            await future
        finally:
            self._changed.discard(future)

    def _wake(self) -> None:
        for future in self._changed:
            if not future.done():
                future.set_result(None)


class _MemoryStream:
    """One end: what it sends the other end receives."""

    def __init__(self, incoming: _Pipe, outgoing: _Pipe) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    async def send(self, message: bytes) -> None:
        await self._outgoing.put(message)

    async def receive(self) -> bytes | None:
        return await self._incoming.get()

    @property
    def closed(self) -> bool:
        """Whether either end has closed it."""
        return self._outgoing.closed

    def close(self) -> None:
        self._incoming.close(discard=True)
        self._outgoing.close(discard=False)

    def cut(self) -> None:
        """Break it, losing what is under way."""
        self._incoming.close(discard=True)
        self._outgoing.close(discard=True)


class MemoryServer:
    """A server on a MemoryNetwork."""

    def __init__(self, network: MemoryNetwork, address: str, handlers: Handlers) -> None:
        self._network = network
        self._address = address
        self._handlers = handlers
        self._streams: set[_MemoryStream] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self.stopped = False

    @property
    def address(self) -> str:
        """Where it listens."""
        return self._address

    async def stop(self) -> None:
        """Stop listening and end every stream; handlers get `STOP_SECONDS` to finish."""
        self._leave()
        for stream in set(self._streams):
            stream.close()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=STOP_SECONDS)
        await self._cancel()

    async def crash(self) -> None:
        """Be gone at once, as a killed process is: handlers are cut off and messages under way are lost."""
        self._leave()
        for stream in set(self._streams):
            stream.cut()
        await self._cancel()

    def accept(self, method: str) -> _MemoryStream:
        """The caller's end of a new stream. Raises TransportError for an unknown method."""
        handler = self._handlers.streams.get(method)
        if handler is None:
            raise TransportError(f"{self._address} does not serve {method}")
        up, down = _Pipe(), _Pipe()
        ours, theirs = _MemoryStream(up, down), _MemoryStream(down, up)
        self._streams.add(ours)
        task = self._start(_guarded(method, handler, ours))
        task.add_done_callback(lambda _: self._ended(ours))
        return theirs

    async def answer(self, method: str, message: bytes) -> bytes:
        """The answer of a unary method. Raises TransportError when it fails or the server goes away."""
        handler = self._handlers.unary.get(method)
        if handler is None:
            raise TransportError(f"{self._address} does not serve {method}")
        task = self._start(_guarded(method, handler, message))
        try:
            answer: bytes | None = await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.cancelled():
                raise
            answer = None
        if answer is None:
            raise TransportError(f"{method} at {self._address} failed")
        return answer

    def _start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _ended(self, stream: _MemoryStream) -> None:
        stream.close()
        self._streams.discard(stream)

    def _leave(self) -> None:
        self.stopped = True
        self._network.remove(self)

    async def _cancel(self) -> None:
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _guarded(method: str, handler: Callable[[Any], Awaitable[Any]], argument: object) -> Any:
    """The handler's answer, or None after logging why it failed."""
    try:
        return await handler(argument)
    except Exception:
        _log.exception("the handler of %s failed", method)
        return None


class MemoryNetwork:
    """All servers of one process, by address."""

    def __init__(self) -> None:
        self._servers: dict[str, MemoryServer] = {}
        self._ports = count(FIRST_PORT)

    def listen(self, address: str, handlers: Handlers) -> MemoryServer:
        """A new server; port 0 gets an address of its own. Raises OSError when the address is taken."""
        host, _, port = address.rpartition(":")
        if port == "0":
            address = next(found for n in self._ports if (found := f"{host}:{n}") not in self._servers)
        if address in self._servers:
            raise OSError(errno.EADDRINUSE, f"cannot listen on {address}: the port is in use")
        server = self._servers[address] = MemoryServer(self, address, handlers)
        return server

    def server(self, address: str) -> MemoryServer:
        """The server at `address`. Raises TransportError when nothing listens there."""
        server = self._servers.get(address)
        if server is None:
            raise TransportError(f"nothing listens on {address}")
        return server

    def remove(self, server: MemoryServer) -> None:
        """Forget a server that stopped."""
        if self._servers.get(server.address) is server:
            del self._servers[server.address]


class MemoryTransport:
    """One service's access to a MemoryNetwork."""

    def __init__(self, network: MemoryNetwork) -> None:
        self._network = network
        self._streams: list[_MemoryStream] = []

    async def serve(self, address: str, handlers: Handlers) -> Server:
        """Listen on `address`. Raises OSError when it is taken."""
        return self._network.listen(address, handlers)

    async def call(self, address: str, method: str, message: bytes, timeout: float) -> bytes:  # noqa: ASYNC109
        """One request and its answer. Raises TransportError."""
        server = self._network.server(address)
        try:
            async with asyncio.timeout(timeout):
                return await server.answer(method, message)
        except TimeoutError:
            raise TransportError(f"{method} at {address} took longer than {timeout:g} s") from None

    async def open_stream(self, address: str, method: str) -> Stream:
        """Open a stream. Raises TransportError when nothing listens there."""
        stream = self._network.server(address).accept(method)
        self._streams = [known for known in self._streams if not known.closed]
        self._streams.append(stream)
        return stream

    async def close(self) -> None:
        """End every stream that this end opened."""
        for stream in self._streams:
            stream.close()
        self._streams.clear()
