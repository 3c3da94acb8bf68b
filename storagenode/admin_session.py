"""A node's stream to auto-admin: reports go up, the catalog comes down. Without auto-admin a node serves on all the
same."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Protocol

from cluster.transport import Stream, Transport, TransportError
from cluster.wire import common_pb2, node_pb2

METHOD = "Node/Session"
RECONNECT_SECONDS = 0.2

_log = logging.getLogger(__name__)


class SessionHost(Protocol):
    """What the session needs of its node."""

    def report(self) -> node_pb2.Report:
        """The node's state as it is now."""
        ...

    def take_catalog(self, update: common_pb2.CatalogUpdate) -> None:
        """A change of catalog and topology."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        ...


class AdminSession:
    """Keeps one stream to the member of auto-admin that leads; the others say who that is, and end the stream."""

    def __init__(self, host: SessionHost, transport: Transport, addresses: Sequence[str], interval: float) -> None:
        self._host = host
        self._transport = transport
        self._addresses = addresses
        self._interval = interval
        self._leader = ""  # the member that led last, as far as is known
        self._changed = asyncio.Event()

    def changed(self) -> None:
        """Something worth reporting changed: report now rather than at the next interval."""
        self._changed.set()

    async def run(self) -> None:
        """Report until cancelled."""
        while True:
            for address in list(dict.fromkeys(filter(None, (self._leader, *self._addresses)))):
                try:
                    stream = await self._transport.open_stream(address, METHOD)
                except TransportError as error:
                    _log.debug("no session with auto-admin at %s: %s", address, error)
                else:
                    await self._serve(address, stream)
            await self._host.sleep(RECONNECT_SECONDS)

    async def _serve(self, address: str, stream: Stream) -> None:
        reporter = asyncio.ensure_future(self._report(stream))
        ticker = asyncio.ensure_future(self._tick())
        try:
            while (message := await stream.receive()) is not None:
                update = common_pb2.CatalogUpdate.FromString(message)
                if update.not_leader:
                    self._leader = update.leader
                    break
                self._leader = address
                self._host.take_catalog(update)
        finally:
            reporter.cancel()
            ticker.cancel()
            stream.close()

    async def _tick(self) -> None:
        while True:
            self._changed.set()
            await self._host.sleep(self._interval)

    async def _report(self, stream: Stream) -> None:
        try:
            while True:
                await self._changed.wait()
                self._changed.clear()
                await stream.send(self._host.report().SerializeToString())
        except TransportError:
            stream.close()
