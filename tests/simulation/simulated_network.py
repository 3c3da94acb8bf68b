"""A network under virtual time: delay, broken connections, and cuts between machines, each from one seeded source.

Messages pass as bytes. A stream is like a TCP connection: in order and whole until it breaks. What is sent over a cut
link
vanishes, and so does the connection, though neither end is told before it next speaks over the mended link.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from random import Random
from typing import Any

from cluster.transport import Handlers, Server, Stream, TransportError


@dataclass
class Weather:
    """How bad the network is at the moment."""

    delay_min: float = 0.0002
    delay_max: float = 0.002
    slow_share: float = 0.0
    slow_max: float = 0.3
    break_share: float = 0.0
    cut: set[tuple[str, str]] = field(default_factory=set)


class SimulatedNetwork:
    """All machines' wires. A machine is named by the host part of its addresses."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.weather = Weather()
        self.messages = 0
        self.lost = 0
        self._listening: dict[str, _SimulatedServer] = {}
        self._next_port = 1000

    def transport(self, machine: str) -> SimulatedTransport:
        """The network as one machine sees it."""
        return SimulatedTransport(self, machine)

    def cut(self, first: str, second: str, *, both_ways: bool = True) -> None:
        """Nothing arrives from `first` at `second` any more."""
        self.weather.cut.add((first, second))
        if both_ways:
            self.weather.cut.add((second, first))

    def mend(self) -> None:
        """All links work again."""
        self.weather.cut.clear()

    def is_cut(self, source: str, target: str) -> bool:
        """Whether what `source` sends to `target` vanishes."""
        return (source, target) in self.weather.cut

    def delay(self) -> float:
        """How long the next message takes."""
        weather = self.weather
        if weather.slow_share and self.random.random() < weather.slow_share:
            return self.random.uniform(weather.delay_max, weather.slow_max)
        return self.random.uniform(weather.delay_min, weather.delay_max)

    def listen(self, server: _SimulatedServer, machine: str, address: str) -> str:
        """Register a server; port 0 picks one."""
        port = address.rpartition(":")[2]
        if port == "0":
            self._next_port += 1
            port = str(self._next_port)
        full = f"{machine}:{port}"
        if full in self._listening:
            raise OSError(f"{full} is taken")
        self._listening[full] = server
        return full

    def forget(self, address: str) -> None:
        """A server is gone."""
        self._listening.pop(address, None)

    def server_at(self, address: str) -> _SimulatedServer | None:
        """Who listens there."""
        return self._listening.get(address)

    def crash(self, machine: str) -> None:
        """All of a machine's servers and connections end; peers are told as a kernel would tell them."""
        for address in [address for address in self._listening if address.rpartition(":")[0] == machine]:
            self._listening.pop(address).crash()


class _End:
    """One end of a stream."""

    def __init__(self, network: SimulatedNetwork, here: str, there: str) -> None:
        self._network = network
        self._here = here
        self._there = there
        self._inbox: deque[bytes] = deque()
        self._arrived = asyncio.Event()
        self._broken = False
        self._lost_something = False
        self._free_at = 0.0
        self.other: _End = self

    async def send(self, message: bytes) -> None:
        await asyncio.sleep(0)
        network = self._network
        if self._broken:
            raise TransportError(f"the stream from {self._here} to {self._there} is broken")
        network.messages += 1
        if network.is_cut(self._here, self._there):
            network.lost += 1
            self._lost_something = True
            return
        if self._lost_something or (
            network.weather.break_share and network.random.random() < network.weather.break_share
        ):
            network.lost += 1
            self._break_both()
            return
        loop = asyncio.get_running_loop()
        self._free_at = max(self._free_at, loop.time() + network.delay())
        loop.call_at(self._free_at, self.other._take, message)

    def _take(self, message: bytes) -> None:
        if self._network.is_cut(self._there, self._here):
            self._network.lost += 1
            self.other._lost_something = True
        elif not self._broken:
            self._inbox.append(message)
            self._arrived.set()

    async def receive(self) -> bytes | None:
        while not self._inbox:
            if self._broken:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        return self._inbox.popleft()

    def close(self) -> None:
        self._break_both()

    def _break_both(self) -> None:
        loop = asyncio.get_running_loop()
        self.break_here()
        if not self._network.is_cut(self._here, self._there):
            # Never before what was already on the way.
            loop.call_at(max(loop.time() + self._network.delay(), self._free_at), self.other.break_here)

    def break_here(self) -> None:
        """This end learns that the stream is over."""
        self._broken = True
        self._arrived.set()


def _pair(network: SimulatedNetwork, caller: str, server: str) -> tuple[_End, _End]:
    near, far = _End(network, caller, server), _End(network, server, caller)
    near.other, far.other = far, near
    return near, far


class _SimulatedServer:
    def __init__(self, network: SimulatedNetwork, machine: str, address: str, handlers: Handlers) -> None:
        self._network = network
        self.machine = machine
        self.handlers = handlers
        self._ends: list[_End] = []
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._address = network.listen(self, machine, address)

    @property
    def address(self) -> str:
        return self._address

    def start(self, work: Any) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
        return task

    def accept(self, caller: str, method: str) -> _End:
        near, far = _pair(self._network, caller, self.machine)
        self._ends.append(far)

        async def serve() -> None:
            try:
                await self.handlers.streams[method](far)
            finally:
                far.close()
                self._ends.remove(far)

        self.start(serve())
        return near

    def crash(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        for end in list(self._ends):
            end.close()

    async def stop(self) -> None:
        self._network.forget(self._address)
        self.crash()


class SimulatedTransport:
    """cluster.transport.Transport of one machine."""

    def __init__(self, network: SimulatedNetwork, machine: str) -> None:
        self._network = network
        self._machine = machine
        self._ends: list[_End] = []

    async def serve(self, address: str, handlers: Handlers) -> Server:
        """Listen on this machine; the host part of `address` is replaced by the machine's name."""
        return _SimulatedServer(self._network, self._machine, address, handlers)

    async def call(self, address: str, method: str, message: bytes, timeout: float) -> bytes:  # noqa: ASYNC109
        """One request and its answer."""
        try:
            async with asyncio.timeout(timeout):
                await self._cross(self._machine, address)
                server = self._network.server_at(address)
                if server is None or method not in server.handlers.unary:
                    raise TransportError(f"nobody serves {method} at {address}")
                handler = server.handlers.unary[method]
                answer: bytes = await asyncio.shield(server.start(_bytes(handler(message))))
                await self._cross(server.machine, f"{self._machine}:0")
                return answer
        except TimeoutError as error:
            raise TransportError(f"{method} at {address} took longer than {timeout} s") from error
        except asyncio.CancelledError as error:
            if (task := asyncio.current_task()) and task.cancelling():
                raise
            raise TransportError(f"{address} went away") from error

    async def open_stream(self, address: str, method: str) -> Stream:
        """Open a stream."""
        await self._cross(self._machine, address)
        server = self._network.server_at(address)
        if server is None or method not in server.handlers.streams:
            raise TransportError(f"nobody serves {method} at {address}")
        end = server.accept(self._machine, method)
        self._ends.append(end)
        return end

    async def _cross(self, source: str, target_address: str) -> None:
        """The time that one message takes; a cut is found out after a while."""
        self._network.messages += 1
        if self._network.is_cut(source, target_address.rpartition(":")[0]):
            self._network.lost += 1
            await asyncio.sleep(1.0)
            raise TransportError(f"{target_address} cannot be reached")
        await asyncio.sleep(self._network.delay())

    async def close(self) -> None:
        """End every stream that this end opened."""
        for end in self._ends:
            end.close()
        self._ends.clear()


async def _bytes(work: Any) -> bytes:
    answer: bytes = await work
    return answer
