"""`trizone up --tls`: everything is served as without, and nobody gets in who has no certificate of the cluster."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import subprocess
import tomllib
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from cluster.grpc_security import Security
from cluster.grpc_transport import GrpcTransport
from cluster.transport import TransportError
from tests.integration.launching import READY, Up, eventually, finished, running, status_of, trizone_command
from tests.integration.test_launcher import create_table, found, put
from tests.unit.certificates import Authority
from trizone.data_directory import DataDirectory
from trizone.operator_access import security_in

CALLS = ("Node/Status", "Node/Catalog", "Peer/Snapshot", "Admin/CreateTable", "Admin/Status", "No/Such")
STREAMS = ("Storage/Requests", "Peer/Replicate", "Node/Session", "Admin/Watch", "Member/Step")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of the cluster that the tests share."""
    return tmp_path_factory.mktemp("tls") / "data"


@pytest.fixture(scope="module")
def up(data: Path) -> Iterator[Up]:
    """A cluster with certificates."""
    with running("--port", "0", "--data", str(data), "--tls") as up:
        assert up.line_with(READY).startswith(f"{READY}https://127.0.0.1:")
        yield up


@pytest.fixture(scope="module")
def client(up: Up, data: Path) -> Any:
    """A client that believes the cluster's authority, and a table."""
    assert up.process.poll() is None
    client = boto3.client(
        "dynamodb",
        endpoint_url=status_of(data)["endpoint"],
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
        verify=str(data / "certs" / "ca.pem"),
    )
    create_table(client)
    return client


def _internal_addresses(data: Path) -> list[str]:
    return [process["address"] for process in status_of(data)["processes"] if process["role"] != "router"]


def _serves(client: Any, what: str) -> bool:
    put(client, what)
    return found(client, what)


def test_it_serves_and_is_shown(client: Any, data: Path) -> None:
    assert _serves(client, "with certificates")
    partitions = status_of(data)["partitions"]
    assert {replica["role"] for partition in partitions for replica in partition["replicas"]} == {"leader", "follower"}
    listed = finished("user", "list", "--data", str(data))
    assert listed.returncode == 0, listed.stderr


def test_strangers_get_nothing_at_any_internal_port(client: Any, data: Path, tmp_path: Path) -> None:
    cluster = DataDirectory(data).cluster()
    assert cluster is not None
    stranger = Authority(tmp_path / "stranger", cluster.cluster_id)

    async def attack(transport: GrpcTransport) -> None:
        try:
            for address in _internal_addresses(data):
                for method in CALLS:
                    with pytest.raises(TransportError):
                        await transport.call(address, method, b"\xff" * 1_000, 5)
                for method in STREAMS:
                    with pytest.raises(TransportError):
                        await transport.open_stream(address, method)
        finally:
            await transport.close()

    asyncio.run(attack(GrpcTransport()))
    asyncio.run(attack(stranger.transport("storagenode")))
    assert _serves(client, "after strangers")


def test_garbage_at_every_internal_port_breaks_nothing(client: Any, data: Path) -> None:
    for address in _internal_addresses(data):
        host, _, port = address.rpartition(":")
        for garbage in (os.urandom(5_000), b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00" + bytes(512)):
            with socket.create_connection((host, int(port)), timeout=5) as connection:
                connection.sendall(garbage)
        assert _without_certificate(host, int(port)) == b""
    assert _serves(client, "after garbage")


def _without_certificate(host: str, port: int) -> bytes:
    """What a client hears that speaks TLS but shows no certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    heard = b""
    try:
        with socket.create_connection((host, port), timeout=5) as plain, context.wrap_socket(plain) as secure:
            secure.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
            while chunk := secure.recv(1_000):
                heard += chunk
    except OSError:
        pass
    return heard


def test_protobuf_garbage_of_a_member_breaks_nothing(client: Any, data: Path) -> None:
    cluster = DataDirectory(data).cluster()
    assert cluster is not None
    security = security_in(data, cluster.cluster_id, tls=True)
    assert isinstance(security, Security)

    async def send() -> None:
        transport = GrpcTransport(security)
        try:
            for address in _internal_addresses(data):
                for method in CALLS:
                    for garbage in (b"\xff" * 100, os.urandom(300)):
                        try:
                            await transport.call(address, method, garbage, 5)
                        except TransportError:
                            continue
        finally:
            await transport.close()

    asyncio.run(send())
    assert _serves(client, "after garbage of a member")


def test_a_node_without_certificate_of_the_cluster_cannot_join(client: Any, data: Path, tmp_path: Path) -> None:
    cluster = DataDirectory(data).cluster()
    assert cluster is not None
    known = tomllib.loads((data / "config" / "us-east-1a-1.toml").read_text())
    stranger = Authority(tmp_path / "stranger", cluster.cluster_id).files("storagenode")
    settings = tmp_path / "stranger.toml"
    settings.write_text(
        f'cluster_id = "{cluster.cluster_id}"\nname = "stranger"\nzone = "us-east-1a"\ndata = "{tmp_path}/node"\n'
        f'auto_admins = ["{known["auto_admins"][0]}"]\ntls_certificate = "{stranger.certificate}"\n'
        f'tls_key = "{stranger.key}"\ntls_authorities = "{stranger.authorities}"\n'
    )
    with (tmp_path / "log").open("wb") as log:
        node = subprocess.Popen(trizone_command("storagenode", "--config", str(settings)), stderr=log)
    try:
        eventually(lambda: b"cannot be called: no TLS handshake" in (tmp_path / "log").read_bytes())
    finally:
        node.terminate()
        assert node.wait(20) == 0
    (auto_admin,) = (process for process in status_of(data)["processes"] if process["role"] == "autoadmin")
    with urllib.request.urlopen(f"http://{auto_admin['metrics']}/metrics") as metrics:
        assert b"\ntrizone_autoadmin_nodes_live 3" in metrics.read()
    assert _serves(client, "after a stranger wanted to join")
