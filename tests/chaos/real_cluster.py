"""A cluster of real processes that tests do bad things to.

Processes are found by what their launcher publishes, and ended, frozen and woken by their ids alone.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from dynamo.keys import partition_hash
from tests.integration.launching import Up, is_alive, status_of
from trizone.data_directory import DataDirectory

T = TypeVar("T")
POLL_S = 0.05
DEADLINE_S = 60.0
"""For whatever a test waits for. Generous: a shared machine may be slow, and a verdict must not depend on that."""


async def until(what: Callable[[], Awaitable[T]], wanted: str, seen: object = None) -> T:
    """The first true answer of `what`, asked again and again. Fails the test after `DEADLINE_S`, and shows `seen`."""
    deadline = time.monotonic() + DEADLINE_S
    while not (answer := await what()):
        assert time.monotonic() < deadline, f"after {DEADLINE_S:g} s still not: {wanted}; seen: {seen}"
        await asyncio.sleep(POLL_S)
    return answer


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class PartitionView:
    """One partition as `trizone status` shows it. `low` and `high` are its first and last hash."""

    table: str
    id: int
    low: bytes
    high: bytes
    epoch: int
    leader: str | None
    positions: dict[str, tuple[int, int]]
    """(log position, applied position) by node; without nodes that do not answer."""

    def holds(self, key: str) -> bool:
        """Whether the item with this partition key (a text) is here."""
        return self.low <= partition_hash("S", key) <= self.high

    @property
    def followers(self) -> list[str]:
        """The nodes with a replica that does not lead."""
        return sorted(node for node in self.positions if node != self.leader)


class RealCluster:
    """`trizone up` with its processes. `port` is the endpoint's, shared by all routers.

    `command` is run in the place of `trizone up`, if there is one.
    """

    command: Sequence[str] | None = None

    def __init__(self, data: Path, *options: str, port: int | None = None) -> None:
        self.data = data
        self.port = port or free_port()
        self.up: Up | None = None
        self._options = options
        self._frozen: set[int] = set()

    @property
    def endpoint(self) -> str:
        """Where clients connect."""
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Start everything and wait until it is ready."""
        self.up = Up("--port", str(self.port), "--data", str(self.data), *self._options, command=self.command)
        await asyncio.to_thread(self.up.endpoint)

    async def stop(self) -> None:
        """Stop everything cleanly, and wait until it is gone."""
        if self.up is not None and self.up.process.poll() is None:
            self.wake(self._frozen)
            try:
                await asyncio.to_thread(self.up.stop, signal.SIGTERM)
            except subprocess.TimeoutExpired:
                self.up.process.kill()
                await asyncio.to_thread(self.up.process.wait)

    # --- looking ---

    def pids(self) -> dict[str, int]:
        """Process ids by name, as `trizone status` would show them; without processes that are down."""
        run = DataDirectory(self.data).run_file()
        return {} if run is None else {process.name: process.pid for process in run.processes if process.pid}

    async def partitions(self) -> list[PartitionView]:
        """The partitions of all tables, in order of tables and ranges."""
        status: dict[str, Any] = await asyncio.to_thread(status_of, self.data)
        return [_view(partition) for partition in status["partitions"]]

    async def whole(self) -> list[PartitionView]:
        """Wait until every partition has a leader and three replicas that have applied what the leader's log held."""
        wanted: dict[int, int] = {}
        views: list[PartitionView] = []

        async def caught_up() -> list[PartitionView]:
            views[:] = await self.partitions()
            for view in views:
                if view.leader is not None:
                    wanted.setdefault(view.id, view.positions[view.leader][0])
            return views if all(_is_whole(view, wanted) for view in views) else []

        return list(await until(caught_up, "every partition has a leader and three replicas that caught up", views))

    async def replaced(self, name: str, pid: int) -> int:
        """Wait until the process runs again under another id; that id."""

        async def another() -> int:
            now = self.pids().get(name, pid)
            return 0 if now == pid else now

        return await until(another, f"{name} runs again")

    # --- doing bad things ---

    def kill(self, name: str) -> tuple[int, float]:
        """SIGKILL one process; its id, and when. The supervisor starts it again."""
        pid = self.pids()[name]
        at = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        return pid, at

    async def kill_all(self) -> None:
        """SIGKILL the launcher, then everything that it had started; wait until all are gone."""
        assert self.up is not None
        pids = self.pids().values()
        self.up.process.kill()
        for pid in pids:
            with suppress(ProcessLookupError):  # children of a killed launcher end by themselves
                os.kill(pid, signal.SIGKILL)
        await asyncio.to_thread(self.up.process.wait)

        async def gone() -> bool:
            return not any(is_alive(pid) for pid in pids)

        await until(gone, "all processes are gone")

    def freeze(self, pids: Iterable[int]) -> None:
        """SIGSTOP these processes."""
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
            self._frozen.add(pid)

    def wake(self, pids: Iterable[int]) -> None:
        """SIGCONT these processes."""
        for pid in set(pids):
            self._frozen.discard(pid)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@asynccontextmanager
async def running_cluster(data: Path, *options: str, port: int | None = None) -> AsyncIterator[RealCluster]:
    """A cluster for as long as the block runs."""
    cluster = RealCluster(data, *options, port=port)
    try:
        await cluster.start()
        yield cluster
    finally:
        await cluster.stop()


def _view(partition: dict[str, Any]) -> PartitionView:
    low, high = (bytes.fromhex(text) for text in partition["range"])
    positions = {
        replica["node"]: (replica["position"], replica["applied"])
        for replica in partition["replicas"]
        if replica["position"] is not None
    }
    return PartitionView(
        partition["table"], partition["partition"], low, high, partition["epoch"], partition["leader"], positions
    )


def _is_whole(view: PartitionView, wanted: dict[int, int]) -> bool:
    applied = [applied for _, applied in view.positions.values()]
    return view.leader is not None and len(applied) == 3 and min(applied) >= wanted[view.id]
