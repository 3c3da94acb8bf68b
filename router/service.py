"""A router put together from its parts, over whatever clock, chance and network it is given."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import socket
from collections.abc import Iterable
from typing import Any

from cluster.clock import Clock
from cluster.https import HANDSHAKE_SECONDS, HttpsContext
from cluster.random_source import RandomSource
from cluster.requests.executor import Executor
from cluster.sealing import Keyring
from cluster.settings import RouterSettings
from cluster.transport import Transport
from cluster.wire import common_pb2
from router.catalog import Catalog
from router.credentials import Credentials, KnownKey
from router.gateway import Gateway
from router.guard import Guard
from router.http import HttpServer
from router.limits import Limits
from router.metrics import RequestMetrics
from router.model import targets
from router.operations import REGISTRY

BACKLOG = 1_024
REFRESH_SECONDS = 1.0
"""How often it is looked whether there is a new certificate."""
FINISH_SECONDS = 4.0
"""How long requests under way may take once the router is told to stop."""


class ListenError(Exception):
    """An address that the router must not listen on; the text is one plain sentence."""


class Router:
    """Serves DynamoDB's API from the time that it has a catalog. Holds nothing: any number may run, and die."""

    def __init__(
        self,
        settings: RouterSettings,
        transport: Transport,
        clock: Clock,
        random: RandomSource,
        metrics_address: str = "",
        keyring: Keyring | None = None,
        known_keys: Iterable[KnownKey] = (),
    ) -> None:
        """`keyring` opens the secrets of the catalog's users, `known_keys` are those of the operator's file."""
        self._settings = settings
        self.requests = RequestMetrics()
        self._record = common_pb2.RouterRecord(name=settings.name, metrics=metrics_address, pid=os.getpid())
        self.catalog = Catalog(transport, settings.cluster_id, settings.auto_admins, settings.seeds, self._record)
        self.catalog.regions = settings.regions
        self.executor = Executor(
            transport,
            self.catalog,
            clock,
            settings.cluster_id,
            request_time=settings.retry_seconds,
            silence=settings.silent_node_seconds,
        )
        self.guard = self._make_guard(keyring, known_keys, clock)
        self._gateway = Gateway(
            targets=targets(),
            registry=REGISTRY,
            catalog=self.catalog,
            executor=self.executor,
            clock=clock,
            random=random,
            region=settings.region,
            guard=self.guard,
            observer=self.requests,
            slow_seconds=settings.slow_request_seconds,
        )
        self.limits = Limits(
            connections=settings.connections_max,
            connections_per_address=settings.connections_per_address_max,
            requests_per_second=settings.requests_per_address_per_second,
        )
        self._http = HttpServer(
            self._gateway.handle,
            clock,
            headers_max=settings.max_headers,
            body_max=settings.max_body,
            request_seconds=settings.request_seconds,
            idle_seconds=settings.idle_seconds,
            bodies_max=settings.bodies_max,
            limits=self.limits,
        )
        self._https = (
            HttpsContext(settings.https_certificate, settings.https_key) if settings.https_certificate else None
        )
        self._refreshing: asyncio.Task[None] | None = None
        self._listeners: list[asyncio.Server] = []
        self.address = ""

    def _make_guard(self, keyring: Keyring | None, known_keys: Iterable[KnownKey], clock: Clock) -> Guard | None:
        mode = self._settings.auth
        if mode == "off":
            return None
        credentials = Credentials(lambda: self.catalog.topology.users, keyring, known_keys, clock.wall)
        return Guard(mode, credentials, self._settings.region, clock.wall, lambda: self.catalog.topology)

    @property
    def ready(self) -> bool:
        """Whether it serves."""
        return bool(self._listeners)

    @property
    def connections(self) -> int:
        """Open connections of clients."""
        return self._http.connections

    async def start(self, *, shared: bool = True) -> None:
        """Get the catalog, then listen: on this router's own address and, unless `shared` is False, on the one that all
        routers of the machine share. Raises ListenError, and OSError when a port is taken."""
        if self.guard is None:
            _check_loopback(self._settings.own_listen)
            if shared:
                _check_loopback(self._settings.listen)
        with contextlib.ExitStack() as sockets:
            # Bound first, so that a taken port is told at once and the watch can name the own one; nobody gets in yet.
            bound = [sockets.enter_context(await _bind(self._settings.own_listen, shared=False))]
            if shared:
                bound.append(sockets.enter_context(await _bind(self._settings.listen, shared=True)))
            host = self._settings.own_listen.rpartition(":")[0]
            self.address = self._record.address = f"{host}:{bound[0].getsockname()[1]}"
            self.catalog.start()
            await self.catalog.ready()
            loop = asyncio.get_running_loop()
            security: dict[str, Any] = {}
            if self._https is not None:
                security = {"ssl": self._https.context, "ssl_handshake_timeout": HANDSHAKE_SECONDS}
                self._refreshing = asyncio.create_task(_refresh(self._https))
            self._listeners = [
                await loop.create_server(self._http, sock=each, backlog=BACKLOG, **security) for each in bound
            ]
            sockets.pop_all()

    async def stop(self) -> None:
        """Take no more requests, finish those under way, and end."""
        if self._refreshing is not None:
            self._refreshing.cancel()
        for listener in self._listeners:
            listener.close()
        self._listeners = []
        await self._http.close(FINISH_SECONDS)
        await self._gateway.close()
        await self.executor.close()
        await self.catalog.close()


async def _refresh(https: HttpsContext) -> None:
    """Look at the certificate's files now and then."""
    while True:
        await asyncio.sleep(REFRESH_SECONDS)
        https.refresh()


async def _bind(address: str, *, shared: bool) -> socket.socket:
    """A socket bound to "host:port". Raises OSError when the port is taken."""
    host, _, port = address.rpartition(":")
    loop = asyncio.get_running_loop()
    family, kind, protocol, _, place = (await loop.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM))[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind(place)
    except OSError:
        bound.close()
        raise
    bound.setblocking(False)
    return bound


def _check_loopback(address: str) -> None:
    """With auth = "off" nobody but this machine's own users may come in (design §13)."""
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise ListenError(
            f'With auth = "off" a router serves loopback addresses only, and {address} is none; set auth to "enforce".'
        )
