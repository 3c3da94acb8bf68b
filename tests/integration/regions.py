"""Two or three regions, each a whole cluster, in one process and over one network; on an event loop of their own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import boto3
import msgspec
from botocore.config import Config

from cluster.clock import SystemClock
from cluster.memory_transport import MemoryNetwork, MemoryTransport
from cluster.random_source import SystemRandom
from replicator.service import Replicator
from trizone.services import Services

START_S = 30.0
WAIT_S = 20.0
PAUSE_S = 0.05
FIRST_PORT = 900
R = TypeVar("R")


class Regions:
    """Clusters of these regions that know each other. `replicator` are settings of all replicators."""

    def __init__(self, folder: Path, *names: str, replicator: dict[str, Any] | None = None, **node: Any) -> None:
        self.names = names
        self.clusters: dict[str, Services] = {}
        self._folder = folder
        self._settings = {"exchange_interval": 0.1, **(replicator or {})}
        self._node = node
        self._network: MemoryNetwork | None = None
        self._more: list[Replicator] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._started: Future[None] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), daemon=True)

    def __enter__(self) -> Self:
        """Start all."""
        self._thread.start()
        self._started.result(START_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop all."""
        assert self._loop is not None
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(START_S)

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        network = MemoryNetwork()
        addresses = {name: f"127.0.0.1:{FIRST_PORT + number}" for number, name in enumerate(self.names)}
        try:
            async with AsyncExitStack() as stack:
                for name in self.names:
                    peers = tuple(f"{other}={addresses[other]}" for other in self.names if other != name)
                    settings = {**self._settings, "listen": addresses[name], "peers": peers}
                    services = Services(name, self._folder / name, network, settings, **self._node)
                    self.clusters[name] = await stack.enter_async_context(services)
                self._network = network
                self._started.set_result(None)
                await self._stop.wait()
                for replicator in self._more:
                    await replicator.stop()
        except BaseException as error:
            if not self._started.done():
                self._started.set_exception(error)
            raise

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run `work` where the clusters run."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WAIT_S)

    def stop_replicator(self, region: str) -> None:
        """End a region's replicator, as a killed process: nothing goes out or comes in any more."""
        self.run(self.replicator(region).stop())

    def start_replicator(self, region: str, **changes: Any) -> Replicator:
        """Start a replicator of a region, at the address that it has or at another."""
        return self.run(self._start_replicator(region, changes))

    async def _start_replicator(self, region: str, changes: dict[str, Any]) -> Replicator:
        assert self._network is not None
        settings = msgspec.structs.replace(self.replicator(region).settings, **changes)
        made = Replicator(settings, MemoryTransport(self._network), SystemClock(), SystemRandom())
        self._more.append(made)
        await made.start()
        if not changes:
            self.clusters[region].replicator = made
        return made

    def replicator(self, region: str) -> Replicator:
        """The region's replicator."""
        found = self.clusters[region].replicator
        assert found is not None
        return found

    def client(self, region: str, service: str = "dynamodb") -> Any:
        """A boto3 client of one region."""
        return boto3.client(
            service,
            endpoint_url=f"http://{self.clusters[region].router.address}",
            region_name=region,
            aws_access_key_id="any",
            aws_secret_access_key="any",
            config=Config(retries={"max_attempts": 3}),
        )


def until(what: str, holds: Callable[[], Any], seconds: float = WAIT_S) -> Any:
    """Wait until `holds` gives something true, and return that."""
    deadline = time.monotonic() + seconds
    while True:
        found = holds()
        if found:
            return found
        assert time.monotonic() < deadline, f"it never came to be that {what}"
        time.sleep(PAUSE_S)
