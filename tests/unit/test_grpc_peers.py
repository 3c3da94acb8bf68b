"""What a process notices when the process at the other end is killed."""

from __future__ import annotations

import asyncio
import signal
import sys

import pytest

from cluster.grpc_transport import GrpcTransport
from cluster.transport import TransportError

ECHO_SERVER = """
import asyncio
from cluster.grpc_transport import GrpcTransport
from cluster.transport import Handlers

async def echo(stream):
    while (message := await stream.receive()) is not None:
        await stream.send(message)

async def main():
    server = await GrpcTransport().serve("127.0.0.1:{port}", Handlers(streams={{"Text/Echo": echo}}))
    print(server.address, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def _start(port: int = 0) -> tuple[asyncio.subprocess.Process, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ECHO_SERVER.format(port=port), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    return process, (await process.stdout.readline()).decode().strip()


async def test_a_killed_peer_ends_its_streams_and_can_be_reached_again_at_once() -> None:
    transport = GrpcTransport()
    process, address = await _start()
    stream = await transport.open_stream(address, "Text/Echo")
    await stream.send(b"x")
    assert await stream.receive() == b"x"

    process.send_signal(signal.SIGKILL)
    async with asyncio.timeout(1):
        assert await stream.receive() is None
        with pytest.raises(TransportError):
            await transport.open_stream(address, "Text/Echo")
    await process.wait()

    process, address = await _start(int(address.rpartition(":")[2]))
    async with asyncio.timeout(2):
        while True:
            try:
                stream = await transport.open_stream(address, "Text/Echo")
                break
            except TransportError:
                await asyncio.sleep(0.02)  # the pause before the next attempt is at most 200 ms
    await stream.send(b"y")
    assert await stream.receive() == b"y"
    process.kill()
    await process.wait()
    await transport.close()
