"""A router over real sockets and an in-memory cluster: when it serves, where, what it counts, and how it ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from cluster.clock import SystemClock
from cluster.convert import update_to_wire
from cluster.memory_transport import MemoryNetwork, MemoryTransport
from cluster.random_source import SeededRandom
from cluster.settings import RouterSettings
from cluster.topology import CatalogUpdate
from cluster.transport import Handlers, Stream
from cluster.wire import admin_pb2
from router.metrics import RouterMetrics
from router.service import ListenError, Router
from tests.unit.router_fakes import CLUSTER

LIST = b"POST / HTTP/1.1\r\nHost: h\r\nX-Amz-Target: DynamoDB_20120810.ListTables\r\nContent-Length: 2\r\n\r\n{}"


class AutoAdmin:
    """Tells watchers of an empty catalog once `open` is set."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.watchers: list[str] = []
        self.network = MemoryNetwork()
        self.address = self.network.listen("auto-admin:1", Handlers(streams={"Admin/Watch": self._watch})).address

    async def _watch(self, stream: Stream) -> None:
        while (message := await stream.receive()) is not None:
            self.watchers.append(admin_pb2.WatchRequest.FromString(message).router.address)
            await self.open.wait()
            await stream.send(update_to_wire(CatalogUpdate(CLUSTER, 1, 0, 1)).SerializeToString())


@pytest.fixture
async def auto_admin() -> AutoAdmin:
    return AutoAdmin()


def router_of(auto_admin: AutoAdmin, **settings: Any) -> Router:
    """A router that has not started."""
    own = RouterSettings(
        **{"cluster_id": CLUSTER, "listen": "127.0.0.1:0", "auto_admins": (auto_admin.address,), **settings}
    )
    return Router(own, MemoryTransport(auto_admin.network), SystemClock(), SeededRandom(1))


async def connect(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = address.rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def ask(address: str, request: bytes = LIST) -> bytes:
    """The whole answer to a request on a connection of its own."""
    reader, writer = await connect(address)
    writer.write(request.replace(b"Host: h", b"Host: h\r\nConnection: close"))
    answer = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    return answer


async def until(true: Callable[[], bool]) -> None:
    """Let the loop turn until something is so."""
    async with asyncio.timeout(5):
        while not true():  # noqa: ASYNC110 (sockets are real here: there is no event to wait for)
            await asyncio.sleep(0)


async def test_it_serves_once_it_has_a_catalog(auto_admin: AutoAdmin) -> None:
    router = router_of(auto_admin)
    starting = asyncio.create_task(router.start(shared=False))
    await until(lambda: bool(auto_admin.watchers))
    assert auto_admin.watchers == [router.address]
    with pytest.raises(ConnectionRefusedError):
        await connect(router.address)
    assert not router.ready
    auto_admin.open.set()
    await starting
    assert router.ready
    answer = await ask(router.address)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert json.loads(answer.partition(b"\r\n\r\n")[2]) == {"TableNames": []}
    await router.stop()


async def test_two_routers_share_a_port_and_have_one_each(auto_admin: AutoAdmin) -> None:
    auto_admin.open.set()
    first = router_of(auto_admin)
    await first.start()
    shared = f"127.0.0.1:{first._listeners[1].sockets[0].getsockname()[1]}"
    second = router_of(auto_admin, listen=shared)
    await second.start()
    for address in (first.address, second.address, shared):
        assert b"TableNames" in await ask(address)
    await first.stop()
    for _ in range(10):  # whoever is left has the port
        assert b"TableNames" in await ask(shared)
    await second.stop()


async def test_a_taken_port_is_told_before_there_is_a_catalog(auto_admin: AutoAdmin) -> None:
    auto_admin.open.set()
    first = router_of(auto_admin)
    await first.start(shared=False)
    auto_admin.open.clear()
    second = router_of(auto_admin, own_listen=first.address)
    with pytest.raises(OSError, match="in use"):
        await second.start(shared=False)
    await first.stop()


@pytest.mark.parametrize("listen", ["0.0.0.0:1", "192.0.2.1:1", "example.com:1"])
async def test_only_loopback_is_served(auto_admin: AutoAdmin, listen: str) -> None:
    with pytest.raises(ListenError, match="loopback"):
        await router_of(auto_admin, listen=listen).start()


async def test_stop_finishes_what_is_under_way(auto_admin: AutoAdmin) -> None:
    auto_admin.open.set()
    router = router_of(auto_admin)
    await router.start(shared=False)
    describe = LIST.replace(b"ListTables", b"DescribeTable").replace(b"Content-Length: 2", b"Content-Length: 19")
    reader, writer = await connect(router.address)
    writer.write(describe[:-2] + b'{"TableName":"abc"}')  # which has to ask auto-admin, who knows no such call
    idle_reader, idle_writer = await connect(router.address)
    await until(lambda: router.connections == 2 and bool(router._gateway._tasks))
    await router.stop()
    answer = await reader.read()
    assert b"Table: abc not found" in answer
    assert b"connection: close\r\n" in answer
    assert await idle_reader.read() == b""
    with pytest.raises(ConnectionRefusedError):
        await connect(router.address)
    for each in (writer, idle_writer):
        each.close()


async def test_what_it_counts(auto_admin: AutoAdmin) -> None:
    auto_admin.open.set()
    router = router_of(auto_admin)
    registry = CollectorRegistry()
    registry.register(RouterMetrics(router))
    await router.start(shared=False)
    await ask(router.address)
    await ask(router.address, LIST.replace(b"{}", b"[]"))
    page = generate_latest(registry).decode()
    assert 'trizone_router_requests_total{error="",operation="ListTables",status="200"} 1.0' in page
    assert 'error="SerializationException",operation="ListTables",status="400"} 1.0' in page
    assert 'trizone_router_request_seconds_count{operation="ListTables"} 2.0' in page
    assert "trizone_router_catalog_version 1.0" in page
    await router.stop()
