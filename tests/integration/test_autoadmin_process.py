"""Auto-admin as a process of its own."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cluster.convert import node_to_wire
from cluster.grpc_transport import GrpcTransport
from cluster.settings import AutoAdminSettings, format_settings
from cluster.transport import Stream, TransportError
from cluster.wire import admin_pb2, common_pb2, node_pb2
from tests.unit.autoadmin_samples import CLUSTER, nodes

READY_SECONDS = 20.0


def _free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@dataclass
class Process:
    """Starts auto-admin on one folder and pair of ports, as often as asked."""

    folder: Path
    settings: AutoAdminSettings
    started: list[asyncio.subprocess.Process] = field(default_factory=list)

    async def start(self) -> asyncio.subprocess.Process:
        config = self.folder / "auto-admin.toml"
        config.write_bytes(format_settings(self.settings))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "autoadmin", "--config", str(config), stderr=asyncio.subprocess.PIPE
        )
        self.started.append(process)
        return process

    async def ready(self) -> None:
        """Return once GET /readyz is answered with 200."""
        async with asyncio.timeout(READY_SECONDS):
            while not (await self.get("/readyz")).startswith(b"HTTP/1.1 200 "):  # noqa: ASYNC110
                await asyncio.sleep(0.02)  # there is nothing to wait on before the process listens

    async def get(self, path: str) -> bytes:
        host, _, port = self.settings.metrics_listen.rpartition(":")
        try:
            reader, writer = await asyncio.open_connection(host, int(port))
        except ConnectionError:
            return b""
        writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        return answer


@pytest.fixture
async def process(tmp_path: Path) -> AsyncIterator[Process]:
    settings = AutoAdminSettings(
        cluster_id=CLUSTER, data=str(tmp_path / "data"), listen=_free_address(), metrics_listen=_free_address()
    )
    made = Process(tmp_path, settings)
    yield made
    for started in made.started:
        if started.returncode is None:
            started.kill()
            await started.wait()


@pytest.fixture
async def transport() -> AsyncIterator[GrpcTransport]:
    made = GrpcTransport()
    yield made
    await made.close()


async def _registered(stream: Stream) -> common_pb2.CatalogUpdate:
    """Register the first of the sample nodes; the update that names it."""
    report = node_pb2.Report(cluster_id=CLUSTER, node=node_to_wire(nodes()[0]))
    await stream.send(report.SerializeToString())
    while True:
        message = await stream.receive()
        assert message is not None
        update = common_pb2.CatalogUpdate.FromString(message)
        if update.nodes:
            return update


async def test_what_it_told_survives_sigkill(process: Process, transport: GrpcTransport) -> None:
    running = await process.start()
    await process.ready()
    stream = await transport.open_stream(process.settings.listen, "Node/Session")
    told = await _registered(stream)
    assert b"trizone_autoadmin_nodes_live 1.0\n" in await process.get("/metrics")

    running.send_signal(signal.SIGKILL)
    assert await stream.receive() is None
    await running.wait()
    await process.start()
    await process.ready()
    request = admin_pb2.StatusRequest(cluster_id=CLUSTER).SerializeToString()
    async with asyncio.timeout(READY_SECONDS):
        while True:
            try:
                answer = await transport.call(process.settings.listen, "Admin/Status", request, 5)
                break
            except TransportError:
                await asyncio.sleep(0.02)  # the pause before the next attempt to connect
    catalog = admin_pb2.StatusReply.FromString(answer).catalog
    assert (catalog.epoch, catalog.version) == (told.epoch, told.version)
    assert catalog.nodes == told.nodes


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_cleanly(process: Process, transport: GrpcTransport, number: signal.Signals) -> None:
    running = await process.start()
    await process.ready()
    stream = await transport.open_stream(process.settings.listen, "Node/Session")
    await _registered(stream)
    running.send_signal(number)
    async with asyncio.timeout(5):
        assert await stream.receive() is None
        assert await running.wait() == 0


async def test_a_data_directory_in_use_is_one_sentence_and_exit_code_2(process: Process) -> None:
    await process.start()
    await process.ready()
    _, errors = await (second := await process.start()).communicate()
    assert second.returncode == 2
    assert errors.decode() == f"The data directory {process.settings.data} is in use by another auto-admin.\n"


async def test_a_taken_port_is_one_sentence_and_exit_code_2(process: Process) -> None:
    with socket.create_server(("127.0.0.1", int(process.settings.listen.rpartition(":")[2]))):
        _, errors = await (running := await process.start()).communicate()
    assert running.returncode == 2
    assert errors.decode() == f"cannot listen on {process.settings.listen}: the port is in use.\n"
