"""A network under virtual time: delay, broken connections, and cuts between machines, each from one seeded source.

Messages pass as bytes. A stream is like a TCP connection: in order and whole until it breaks; in bad weather it is
worse, repeats messages and mixes up their order. What is sent over a cut link, or to a machine that has lost power,
vanishes, and with it the connection, though neither end is told before it next speaks over the mended link. A killed
process's kernel, in contrast, tells the other end.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import Context
from dataclasses import dataclass, field
from random import Random

from cluster.transport import Handlers, Server, Stream, TransportError
from tests.simulation.simulated_process import Process, current_process
from tests.simulation.trace import Trace

CONNECT_SECONDS = 1.0
"""How long it takes to find out that a machine cannot be reached."""
OVERTAKEN_SECONDS = 0.1
"""A message that is repeated, or overtaken, comes so much later at the most."""


@dataclass
class Weather:
    """How bad the network is at the moment. Shares are of all messages."""

    delay_min: float = 0.0002
    delay_max: float = 0.002
    slow_share: float = 0.0
    slow_max: float = 0.3
    break_share: float = 0.0
    repeat_share: float = 0.0
    """Of messages on a stream, those that arrive twice."""
    overtake_share: float = 0.0
    """Of messages on a stream, those that later ones may overtake."""
    cut: set[tuple[str, str]] = field(default_factory=set)


class SimulatedNetwork:
    """All machines' wires. A machine is named by the host part of its addresses."""

    def __init__(self, random: Random, trace: Trace | None = None) -> None:
        self.random = random
        self.trace = trace
        self.weather = Weather()
        self.messages = 0
        self.lost = 0
        self.context = Context()
        """In which the network itself acts: it is nobody's process."""
        self._slow: dict[str, float] = {}
        self._slow_links: dict[tuple[str, str], float] = {}
        self._listening: dict[str, SimulatedServer] = {}
        self._next_port = 1000

    def transport(self, machine: str) -> SimulatedTransport:
        """The network as one life of a process on this machine sees it."""
        return SimulatedTransport(self, machine)

    def cut(self, first: str, second: str, *, both_ways: bool = True) -> None:
        """Nothing arrives from `first` at `second` any more."""
        self.weather.cut.add((first, second))
        if both_ways:
            self.weather.cut.add((second, first))

    def slow_down(self, machine: str, seconds: float) -> None:
        """Every message from and to this machine takes so much longer."""
        self._slow[machine] = seconds

    def slow_link(self, source: str, target: str, seconds: float) -> None:
        """So does every message from `source` to `target`, and none the other way."""
        self._slow_links[source, target] = seconds

    def mend(self) -> None:
        """All links work again."""
        self.weather = Weather()
        self._slow.clear()
        self._slow_links.clear()

    def is_cut(self, source: str, target: str) -> bool:
        """Whether what `source` sends to `target` vanishes."""
        return (source, target) in self.weather.cut

    def breaks(self) -> bool:
        """Whether the next message breaks its connection."""
        share = self.weather.break_share
        return share > 0 and self.random.random() < share

    def repeats(self) -> bool:
        """Whether the next message arrives twice."""
        share = self.weather.repeat_share
        return share > 0 and self.random.random() < share

    def is_overtaken(self) -> bool:
        """Whether later messages may arrive before the next one."""
        share = self.weather.overtake_share
        return share > 0 and self.random.random() < share

    def delay(self, source: str, target: str) -> float:
        """How long the next message takes."""
        weather = self.weather
        more = self._slow.get(source, 0.0) + self._slow.get(target, 0.0) if self._slow else 0.0
        more += self._slow_links.get((source, target), 0.0)
        if weather.slow_share and self.random.random() < weather.slow_share:
            return more + self.random.uniform(weather.delay_max, weather.slow_max)
        return more + self.random.uniform(weather.delay_min, weather.delay_max)

    def later(self, when: float, function: Callable[..., object], *arguments: object) -> None:
        """Call `function` at `when`, whoever lives or dies until then."""
        asyncio.get_running_loop().call_at(when, function, *arguments, context=self.context)

    def sent(self, source: str, target: str, method: str, content: bytes, *, lost: bool) -> None:
        """Count and note a message."""
        self.messages += 1
        self.lost += lost
        if self.trace is not None:
            self.trace.message(source, target, method, content, " lost" if lost else "")

    def listen(self, server: SimulatedServer, machine: str, address: str) -> str:
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

    def server_at(self, address: str) -> SimulatedServer | None:
        """Who listens there."""
        return self._listening.get(address)


class SimulatedStream:
    """One end of a stream."""

    other: SimulatedStream

    def __init__(self, network: SimulatedNetwork, method: str, here: str, there: str) -> None:
        self._network = network
        self._method = method
        self._here = here
        self._there = there
        self._inbox: deque[bytes] = deque()
        self._arrived = asyncio.Event()
        self._broken = False
        self._dead = False
        self._powerless = False
        self._lost_something = False
        self._free_at = 0.0

    async def send(self, message: bytes) -> None:
        """Hand a message over."""
        await asyncio.sleep(0)
        network = self._network
        if self._broken:
            raise TransportError(f"the stream from {self._here} to {self._there} is broken")
        vanishes = network.is_cut(self._here, self._there) or self.other._powerless
        breaks = not vanishes and (self._lost_something or self._was_not_heard() or network.breaks())
        network.sent(self._here, self._there, self._method, message, lost=vanishes or breaks)
        if vanishes:
            self._lost_something = True
        elif breaks:
            self._break_both()
        else:
            arrives = asyncio.get_running_loop().time() + network.delay(self._here, self._there)
            if network.repeats():
                network.later(arrives + network.random.uniform(0.0, OVERTAKEN_SECONDS), self.other._take, message)
            if network.is_overtaken():
                arrives += network.random.uniform(0.0, OVERTAKEN_SECONDS)
            else:
                self._free_at = arrives = max(self._free_at, arrives)
            network.later(arrives, self.other._take, message)

    def _was_not_heard(self) -> bool:
        """Whether the other end's messages got lost on a link that works again: no connection goes on without them."""
        return self.other._lost_something and not self._network.is_cut(self._there, self._here)

    def _take(self, message: bytes) -> None:
        if self._network.is_cut(self._there, self._here):
            self._network.lost += 1
            self.other._lost_something = True
        elif not self._broken:
            self._inbox.append(message)
            self._arrived.set()
        elif not self.other._broken and not self._network.is_cut(self._here, self._there):
            # It was closed while the other end could not be told; whoever speaks to it learns so.
            soonest = asyncio.get_running_loop().time() + self._network.delay(self._here, self._there)
            self._network.later(soonest, self.other.break_here)

    async def receive(self) -> bytes | None:
        """The next message; None at the end."""
        while not self._inbox:
            if self._broken:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        return self._inbox.popleft()

    def close(self) -> None:
        """End the stream."""
        if not self._dead:
            self._break_both()

    def die(self, *, power_lost: bool) -> None:
        """The process at this end is gone. Its kernel tells the other end, unless that lost power too."""
        if power_lost:
            self.break_here()
        else:
            self._break_both()
        self._dead = True
        self._powerless = power_lost

    def restored(self) -> None:
        """This end's machine is up again: it knows nothing of the stream, and will say so when spoken to."""
        if self._powerless:
            self._powerless = False
            self.other._lost_something = True

    def _break_both(self) -> None:
        if self._broken:
            return
        self.break_here()
        network = self._network
        if not network.is_cut(self._here, self._there):
            # Never before what was already on the way.
            soonest = asyncio.get_running_loop().time() + network.delay(self._here, self._there)
            network.later(max(soonest, self._free_at), self.other.break_here)

    def break_here(self) -> None:
        """This end learns that the stream is over."""
        self._broken = True
        self._arrived.set()


class SimulatedServer:
    """A listening process."""

    def __init__(self, network: SimulatedNetwork, machine: str, address: str, handlers: Handlers) -> None:
        self._network = network
        self.machine = machine
        self.handlers = handlers
        self._process = current_process()
        self._ends: dict[SimulatedStream, None] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._address = network.listen(self, machine, address)

    @property
    def address(self) -> str:
        """Where it listens."""
        return self._address

    def start(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work` as the listening process."""

        async def run() -> None:
            with contextlib.suppress(TransportError):  # a handler may let a broken stream end it
                await work()

        process: Process | None = self._process
        task = process.start(run()) if process is not None else asyncio.get_running_loop().create_task(run())
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None), context=self._network.context)

    def accept(self, caller: str, method: str) -> SimulatedStream:
        """A new stream; the caller's end of it."""
        near = SimulatedStream(self._network, method, caller, self.machine)
        far = SimulatedStream(self._network, method, self.machine, caller)
        near.other, far.other = far, near
        self._ends[far] = None

        async def serve() -> None:
            try:
                await self.handlers.streams[method](far)
            finally:
                far.close()
                self._ends.pop(far, None)

        self.start(serve)
        return near

    def answer(self, method: str, message: bytes) -> asyncio.Future[bytes]:
        """The answer to one call; TransportError if the process ends first."""
        answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        async def serve() -> None:
            try:
                answer = await self.handlers.unary[method](message)
                if not answered.done():
                    answered.set_result(answer)
            finally:
                if not answered.done():
                    answered.set_exception(TransportError(f"{self._address} went away"))

        self.start(serve)
        return answered

    def die(self, *, power_lost: bool) -> list[SimulatedStream]:
        """The process is gone; the ends that it held."""
        self._network.forget(self._address)
        ends = list(self._ends)
        for end in ends:
            end.die(power_lost=power_lost)
        return ends

    async def stop(self) -> None:
        """Stop listening and end every stream."""
        self._network.forget(self._address)
        for task in list(self._tasks):
            task.cancel()
        for end in list(self._ends):
            end.close()


class SimulatedTransport:
    """cluster.transport.Transport of one life of one process."""

    def __init__(self, network: SimulatedNetwork, machine: str) -> None:
        self._network = network
        self._machine = machine
        self._ends: list[SimulatedStream] = []
        self._servers: list[SimulatedServer] = []
        self._dark: list[SimulatedStream] = []
        self._dead = False

    async def serve(self, address: str, handlers: Handlers) -> Server:
        """Listen on this machine; the host part of `address` is replaced by the machine's name."""
        server = SimulatedServer(self._network, self._machine, address, handlers)
        self._servers.append(server)
        return server

    async def call(self, address: str, method: str, message: bytes, timeout: float) -> bytes:  # noqa: ASYNC109
        """One request and its answer."""
        try:
            async with asyncio.timeout(timeout):
                target = address.rpartition(":")[0]
                await self._cross(self._machine, target, method, message)
                server = self._network.server_at(address)
                if server is None or method not in server.handlers.unary:
                    raise TransportError(f"nobody serves {method} at {address}")
                answer = await server.answer(method, message)
                await self._cross(target, self._machine, method, answer)
                return answer
        except TimeoutError as error:
            raise TransportError(f"{method} at {address} took longer than {timeout} s") from error

    async def open_stream(self, address: str, method: str) -> Stream:
        """Open a stream."""
        await self._cross(self._machine, address.rpartition(":")[0], method, b"")
        server = self._network.server_at(address)
        if server is None or method not in server.handlers.streams:
            raise TransportError(f"nobody serves {method} at {address}")
        end = server.accept(self._machine, method)
        self._ends = [end for end in self._ends if not end._broken]
        self._ends.append(end)
        return end

    async def _cross(self, source: str, target: str, method: str, message: bytes) -> None:
        """The time that one message takes; a cut is found out after a while."""
        network = self._network
        if self._dead:
            raise TransportError("this process is dead")
        is_cut = network.is_cut(source, target)
        breaks = not is_cut and network.breaks()
        network.sent(source, target, method, message, lost=is_cut or breaks)
        if is_cut:
            await asyncio.sleep(CONNECT_SECONDS)
            raise TransportError(f"{target} cannot be reached")
        await asyncio.sleep(network.delay(source, target))
        if breaks:
            raise TransportError(f"the connection to {target} broke")
        if self._dead:
            raise TransportError("this process is dead")

    async def close(self) -> None:
        """End every stream that this end opened."""
        for end in self._ends:
            end.close()
        self._ends.clear()

    def die(self, *, power_lost: bool) -> None:
        """The process is gone. With the power of its machine lost nobody is told, until `restored`."""
        self._dead = True
        for end in self._ends:
            end.die(power_lost=power_lost)
        ends = list(self._ends)
        for server in self._servers:
            ends += server.die(power_lost=power_lost)
        self._dark = ends if power_lost else []
        self._ends.clear()
        self._servers.clear()

    def restored(self) -> None:
        """The machine is up again."""
        for end in self._dark:
            end.restored()
        self._dark.clear()
