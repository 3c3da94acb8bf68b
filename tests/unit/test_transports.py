"""Every transport keeps the promises of `cluster.transport`."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from cluster.grpc_transport import GrpcTransport
from cluster.memory_transport import MESSAGES_WAITING_MAX, MemoryNetwork, MemoryServer, MemoryTransport
from cluster.transport import Handlers, Stream, Transport, TransportError


@pytest.fixture(params=["grpc", "memory"])
async def pair(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Transport, Transport]]:
    """A transport that serves and one that calls."""
    network = MemoryNetwork()
    transports: list[Transport] = [
        GrpcTransport() if request.param == "grpc" else MemoryTransport(network) for _ in range(2)
    ]
    yield transports[0], transports[1]
    for transport in transports:
        await transport.close()


def _free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


async def _echo(stream: Stream) -> None:
    while (message := await stream.receive()) is not None:
        await stream.send(message)


async def _reverse(message: bytes) -> bytes:
    return message[::-1]


async def test_a_call_is_answered(pair: tuple[Transport, Transport]) -> None:
    server = await pair[0].serve("127.0.0.1:0", Handlers(unary={"Text/Reverse": _reverse}))
    assert not server.address.endswith(":0")
    assert await pair[1].call(server.address, "Text/Reverse", b"abc", 5) == b"cba"
    assert await pair[1].call(server.address, "Text/Reverse", b"", 5) == b""
    await server.stop()


async def test_a_stream_carries_messages_in_order(pair: tuple[Transport, Transport]) -> None:
    server = await pair[0].serve("127.0.0.1:0", Handlers(streams={"Text/Echo": _echo}))
    stream = await pair[1].open_stream(server.address, "Text/Echo")
    for n in range(50):
        await stream.send(b"%d" % n)
        assert await stream.receive() == b"%d" % n
    await stream.send(b"x" * 5_000_000)
    assert await stream.receive() == b"x" * 5_000_000
    stream.close()
    assert await stream.receive() is None
    with pytest.raises(TransportError):
        await stream.send(b"late")
    await server.stop()


async def test_several_senders_share_a_stream(pair: tuple[Transport, Transport]) -> None:
    server = await pair[0].serve("127.0.0.1:0", Handlers(streams={"Text/Echo": _echo}))
    stream = await pair[1].open_stream(server.address, "Text/Echo")
    senders = asyncio.gather(*(stream.send(b"%d" % n) for n in range(100)))
    assert {await stream.receive() for _ in range(100)} == {b"%d" % n for n in range(100)}
    await senders
    await server.stop()


async def test_the_server_may_speak_first_and_end_the_stream(pair: tuple[Transport, Transport]) -> None:
    async def greet(stream: Stream) -> None:
        await stream.send(b"hello")

    server = await pair[0].serve("127.0.0.1:0", Handlers(streams={"Text/Greet": greet}))
    stream = await pair[1].open_stream(server.address, "Text/Greet")
    assert await stream.receive() == b"hello"
    assert await stream.receive() is None
    await server.stop()


async def test_a_closing_caller_ends_the_handlers_wait_without_cutting_it_off(
    pair: tuple[Transport, Transport],
) -> None:
    finished: asyncio.Future[object] = asyncio.get_running_loop().create_future()

    async def serve(stream: Stream) -> None:
        await stream.send(b"ready")
        last = await stream.receive()
        await asyncio.sleep(0)  # a cancelled handler would not come past this
        finished.set_result(last)

    server = await pair[0].serve("127.0.0.1:0", Handlers(streams={"Text/Wait": serve}))
    stream = await pair[1].open_stream(server.address, "Text/Wait")
    assert await stream.receive() == b"ready"
    stream.close()
    assert await finished is None
    await server.stop()


async def test_a_stopping_server_ends_its_streams(pair: tuple[Transport, Transport]) -> None:
    server = await pair[0].serve("127.0.0.1:0", Handlers(streams={"Text/Echo": _echo}))
    stream = await pair[1].open_stream(server.address, "Text/Echo")
    waiting = asyncio.ensure_future(stream.receive())
    await server.stop()
    assert await waiting is None
    with pytest.raises(TransportError):
        await pair[1].open_stream(server.address, "Text/Echo")


async def test_nobody_there_is_an_error(pair: tuple[Transport, Transport]) -> None:
    address = _free_address()
    with pytest.raises(TransportError):
        await pair[1].call(address, "Text/Reverse", b"", 5)
    with pytest.raises(TransportError):
        await pair[1].open_stream(address, "Text/Echo")


async def test_an_unknown_method_and_a_failing_handler_are_errors(pair: tuple[Transport, Transport]) -> None:
    async def fail(_: bytes) -> bytes:
        raise ValueError("on purpose")

    server = await pair[0].serve("127.0.0.1:0", Handlers(unary={"Text/Fail": fail}))
    for method in ("Text/Fail", "Text/Missing"):
        with pytest.raises(TransportError):
            await pair[1].call(server.address, method, b"", 5)
    with pytest.raises(TransportError):
        await pair[1].open_stream(server.address, "Text/Missing")
    await server.stop()


async def test_a_timeout_leaves_the_handler_running(pair: tuple[Transport, Transport]) -> None:
    go_on, finished = asyncio.Event(), asyncio.Event()

    async def slow(_: bytes) -> bytes:
        await go_on.wait()
        finished.set()
        return b""

    server = await pair[0].serve("127.0.0.1:0", Handlers(unary={"Text/Slow": slow}))
    with pytest.raises(TransportError):
        await pair[1].call(server.address, "Text/Slow", b"", 0.05)
    go_on.set()
    await finished.wait()
    await server.stop()


async def test_a_taken_port_is_an_os_error(pair: tuple[Transport, Transport]) -> None:
    server = await pair[0].serve("127.0.0.1:0", Handlers())
    with pytest.raises(OSError, match="port is in use"):
        await pair[1].serve(server.address, Handlers())
    await server.stop()
    again = await pair[1].serve(server.address, Handlers())
    await again.stop()


async def test_closing_ends_servers_that_a_failure_left_running() -> None:
    transport, caller = GrpcTransport(), GrpcTransport()
    server = await transport.serve("127.0.0.1:0", Handlers(unary={"Text/Reverse": _reverse}))
    assert await caller.call(server.address, "Text/Reverse", b"abc", 5) == b"cba"
    await transport.close()
    with pytest.raises(TransportError):
        await caller.call(server.address, "Text/Reverse", b"abc", 1)
    await caller.close()


async def test_a_slow_reader_holds_its_sender_back() -> None:
    async def never_read(stream: Stream) -> None:
        await reading.wait()
        while await stream.receive() is not None:
            pass

    reading = asyncio.Event()
    network = MemoryNetwork()
    server = await MemoryTransport(network).serve("127.0.0.1:0", Handlers(streams={"Text/Slow": never_read}))
    stream = await MemoryTransport(network).open_stream(server.address, "Text/Slow")
    for _ in range(MESSAGES_WAITING_MAX):
        await stream.send(b"")
    one_more = asyncio.ensure_future(stream.send(b""))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not one_more.done()
    reading.set()
    await one_more
    await server.stop()


async def test_a_crash_cuts_handlers_and_streams() -> None:
    network = MemoryNetwork()
    server = await MemoryTransport(network).serve("127.0.0.1:0", Handlers(streams={"Text/Echo": _echo}))
    assert isinstance(server, MemoryServer)
    stream = await MemoryTransport(network).open_stream(server.address, "Text/Echo")
    await server.crash()
    assert await stream.receive() is None
    with pytest.raises(TransportError):
        await stream.send(b"")
