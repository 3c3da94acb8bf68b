"""Mutual TLS between processes: every pair of roles, wrong certificates, plain text, and new files while it runs."""

from __future__ import annotations

import ast
import asyncio
import re
import socket
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from cluster import grpc_transport
from cluster.access import CALLERS, ROLES, SERVERS, internal_name, may_call, server_role
from cluster.grpc_security import Security
from cluster.grpc_transport import GrpcTransport
from cluster.tls import TlsError, TlsFiles
from cluster.transport import Handlers, Server, Stream, TransportError
from tests.tidy.sources import python_files, tree
from tests.unit.certificates import Authority, bundle, replace
from trizone.certificates import now

METHOD = re.compile(r"^[A-Z][A-Za-z]+/[A-Z][A-Za-z]+$")
UNARY = ("Node/Status", "Peer/Snapshot", "Admin/CreateTable")
STREAMS = ("Storage/Requests", "Peer/Replicate", "Node/Session", "Admin/Watch")


async def _reverse(message: bytes) -> bytes:
    return message[::-1]


async def _echo(stream: Stream) -> None:
    while (message := await stream.receive()) is not None:
        await stream.send(message)


HANDLERS = Handlers(unary=dict.fromkeys(UNARY, _reverse), streams=dict.fromkeys(STREAMS, _echo))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """The cluster's authority."""
    return Authority(tmp_path / "ca")


@pytest.fixture
async def transports() -> AsyncIterator[list[GrpcTransport]]:
    """What is put in here is closed at the end."""
    opened: list[GrpcTransport] = []
    yield opened
    for transport in opened:
        await transport.close()


async def _gets_in(caller: GrpcTransport, server: Server, method: str) -> bool:
    """Whether a call or stream of the method is answered."""
    try:
        if method in UNARY:
            return await caller.call(server.address, method, b"ab", 5) == b"ba"
        stream = await caller.open_stream(server.address, method)
        await stream.send(b"ab")
        answer = await stream.receive()
        stream.close()
    except TransportError:
        return False
    return answer == b"ab"


def test_every_method_of_the_services_has_a_rule() -> None:
    methods = {
        node.value
        for path in python_files("cluster", "router", "storagenode", "autoadmin", "replicator", "trizone")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and METHOD.match(node.value)
    }
    assert len(methods) > 10
    assert not [method for method in methods if server_role(method) is None]
    assert not [method for method in methods if not any(may_call(role, method) for role in ROLES)]
    assert {role for roles in CALLERS.values() for role in roles} | set(SERVERS.values()) <= set(ROLES)


@pytest.mark.parametrize("serving", ROLES)
async def test_every_pair_of_roles(authority: Authority, transports: list[GrpcTransport], serving: str) -> None:
    transports += [authority.transport(role) for role in (serving, *ROLES)]
    server = await transports[0].serve("127.0.0.1:0", HANDLERS)
    for role, caller in zip(ROLES, transports[1:], strict=True):
        for method in UNARY + STREAMS:
            expected = may_call(role, method) and server_role(method) == serving
            assert await _gets_in(caller, server, method) is expected, (role, method)


async def test_the_server_itself_looks_at_roles(
    authority: Authority, transports: list[GrpcTransport], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the caller does not care whom it calls."""
    transports += [authority.transport("autoadmin"), authority.transport("storagenode"), authority.transport("router")]
    server = await transports[0].serve("127.0.0.1:0", HANDLERS)
    monkeypatch.setattr("cluster.grpc_security.server_name", lambda _, cluster: internal_name("autoadmin", cluster))
    assert await _gets_in(transports[2], server, "Admin/CreateTable")
    assert not await _gets_in(transports[1], server, "Admin/CreateTable")
    assert not await _gets_in(transports[2], server, "Peer/Snapshot")


async def test_certificates_of_others_do_not_get_in(
    authority: Authority, transports: list[GrpcTransport], tmp_path: Path
) -> None:
    server = await _serving(authority.transport("storagenode"), transports)
    stranger = Authority(tmp_path / "other")
    half = authority.files("router", name="half")
    of_stranger = stranger.files("router")
    # One that trusts our authority but shows a certificate of its own, and one of another cluster's authority.
    both = bundle(tmp_path / "both.pem", half.authorities, of_stranger.authorities)
    mixed = TlsFiles(of_stranger.certificate, of_stranger.key, both)
    for caller in (
        stranger.transport("router"),
        GrpcTransport(Security("", stranger.credentials(mixed, "router"))),
        Authority(tmp_path / "third", "another-cluster").transport("router"),
    ):
        transports.append(caller)
        assert not await _gets_in(caller, server, "Node/Status")
    transports.append(authority.transport("router"))
    assert await _gets_in(transports[-1], server, "Node/Status")


async def test_another_cluster_of_the_same_authority_does_not_get_in(
    authority: Authority, transports: list[GrpcTransport]
) -> None:
    server = await _serving(authority.transport("storagenode"), transports)
    authority.cluster_id = "another-cluster"
    files = authority.files("router")
    caller = GrpcTransport(Security("", authority.credentials(files, "router")))
    transports.append(caller)
    # It would not take our server for one of its own, so make it believe in ours.
    caller._security.credentials.cluster_id = "a-cluster"  # type: ignore[union-attr]
    assert not await _gets_in(caller, server, "Node/Status")


async def test_replicators_of_two_clusters_know_each_other(
    authority: Authority, transports: list[GrpcTransport], tmp_path: Path
) -> None:
    """Regions are clusters of their own; of each other they serve nothing but what replicators ask."""
    other = Authority(tmp_path / "other", "another-cluster")
    both = bundle(tmp_path / "both.pem", authority.folder / "ca.pem", other.folder / "ca.pem")

    def transport(of: Authority, role: str) -> GrpcTransport:
        files = of.files(role)
        transports.append(
            GrpcTransport(Security("", of.credentials(TlsFiles(files.certificate, files.key, both), role)))
        )
        return transports[-1]

    handlers = Handlers(unary={"Regions/Exchange": _reverse, "Node/Status": _reverse})
    server = await transport(authority, "replicator").serve("127.0.0.1:0", handlers)
    node = await transport(authority, "storagenode").serve("127.0.0.1:0", handlers)
    replicator, router = transport(other, "replicator"), transport(other, "router")
    assert await replicator.call(server.address, "Regions/Exchange", b"ab", 5) == b"ba"
    for caller, called, method in (
        (replicator, node, "Node/Status"),
        (replicator, node, "Regions/Exchange"),
        (router, server, "Regions/Exchange"),
    ):
        with pytest.raises(TransportError):
            await caller.call(called.address, method, b"ab", 5)


async def test_an_expired_certificate_does_not_get_in(authority: Authority, transports: list[GrpcTransport]) -> None:
    server = await _serving(authority.transport("storagenode"), transports)
    files = authority.expired("router")
    with pytest.raises(TlsError, match=r"^The certificate in .* expired at .* UTC\.$"):
        authority.credentials(files, "router")
    # A process whose certificate expires while it runs.
    caller = GrpcTransport(Security("", authority.credentials(files, "router", at=now() - timedelta(hours=2))))
    transports.append(caller)
    assert not await _gets_in(caller, server, "Node/Status")
    # And a server whose certificate has expired.
    files = authority.expired("storagenode")
    expired = authority.credentials(files, "storagenode", at=now() - timedelta(hours=2))
    stale = await _serving(GrpcTransport(Security("", expired)), transports)
    transports.append(authority.transport("router"))
    assert not await _gets_in(transports[-1], stale, "Node/Status")
    assert await _gets_in(transports[-1], server, "Node/Status")


async def test_a_caller_without_certificate_does_not_get_in(
    authority: Authority, transports: list[GrpcTransport]
) -> None:
    server = await _serving(authority.transport("storagenode"), transports)
    transports.append(GrpcTransport())
    for method in UNARY + STREAMS:
        assert not await _gets_in(transports[-1], server, method)


async def test_a_server_without_certificate_is_not_called(
    authority: Authority, transports: list[GrpcTransport]
) -> None:
    server = await _serving(GrpcTransport(), transports)
    transports.append(authority.transport("router"))
    assert not await _gets_in(transports[-1], server, "Node/Status")


async def test_garbage_leaves_the_server_well(authority: Authority, transports: list[GrpcTransport]) -> None:
    server = await _serving(authority.transport("storagenode"), transports)
    host, _, port = server.address.rpartition(":")
    for garbage in (
        b"GET / HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(64),
        b"\x16\x03\x01\xff\xff",
        b"",
    ):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(garbage)
        writer.write_eof()
        assert b"200" not in await reader.read()
        writer.close()
    idle = socket.create_connection((host, int(port)))
    transports.append(authority.transport("router"))
    assert await _gets_in(transports[-1], server, "Node/Status")
    idle.close()


async def _serving(transport: GrpcTransport, transports: list[GrpcTransport]) -> Server:
    transports.append(transport)
    return await transport.serve("127.0.0.1:0", HANDLERS)


async def test_new_files_are_used_without_a_restart(
    authority: Authority, transports: list[GrpcTransport], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The authority is changed as docs/security.md tells: trust both, show the new, trust the new alone."""
    monkeypatch.setattr(grpc_transport, "RELOAD_SECONDS", 0.02)
    monkeypatch.setattr(grpc_transport, "RETIRE_SECONDS", 0.02)
    nodes, routers = authority.files("storagenode"), authority.files("router")
    shared = Path(nodes.authorities)
    node = GrpcTransport(Security("", authority.credentials(nodes, "storagenode")))
    router = GrpcTransport(Security("", authority.credentials(routers, "router")))
    transports += [node, router]
    server = await node.serve("127.0.0.1:0", HANDLERS)
    stream = await router.open_stream(server.address, "Storage/Requests")
    await stream.send(b"before")
    assert await stream.receive() == b"before"

    new = Authority(tmp_path / "new")
    both = bundle(tmp_path / "both.pem", shared, new.folder / "ca.pem")
    late = authority.files("router", name="late")
    straggler = authority.credentials(TlsFiles(late.certificate, late.key, both), "router")
    bundle(shared, both)
    assert await _in_the_end(router, server)
    fresh = (new.files("storagenode"), new.files("router"))
    for old_files, new_files in zip((nodes, routers), fresh, strict=True):
        replace(old_files, TlsFiles(new_files.certificate, new_files.key, old_files.authorities))
    assert await _in_the_end(router, server)
    replace(nodes, TlsFiles(nodes.certificate, nodes.key, str(new.folder / "ca.pem")))
    assert await _in_the_end(router, server)
    assert await stream.receive() is None  # begun with a certificate that counts no more
    transports.append(GrpcTransport(Security("", straggler)))
    assert not await _gets_in(transports[-1], server, "Node/Status")


async def _in_the_end(caller: GrpcTransport, server: Server) -> bool:
    """Both sides look at their files when they please, so a call may fail in between."""
    for _ in range(200):
        if await _gets_in(caller, server, "Node/Status"):
            return True
        await asyncio.sleep(0.02)
    return False


def test_broken_files_are_told_in_one_sentence(authority: Authority, tmp_path: Path) -> None:
    files = authority.files("router")
    broken = tmp_path / "broken.pem"
    broken.write_text("nothing of use")
    other = Authority(tmp_path / "other")
    cases = {
        f"Cannot read {tmp_path}/none.pem: No such file or directory.": TlsFiles(
            f"{tmp_path}/none.pem", files.key, files.authorities
        ),
        f"{broken} holds no certificate in PEM form.": TlsFiles(str(broken), files.key, files.authorities),
        f"{broken} holds no private key in PEM form without a password.": TlsFiles(
            files.certificate, str(broken), files.authorities
        ),
        f"{authority.folder}/ca-key.pem is not the private key of {files.certificate}.": TlsFiles(
            files.certificate, f"{authority.folder}/ca-key.pem", files.authorities
        ),
        f"The certificate in {files.certificate} is not signed by an authority in {other.folder}/ca.pem.": TlsFiles(
            files.certificate, files.key, f"{other.folder}/ca.pem"
        ),
    }
    for sentence, wrong in cases.items():
        with pytest.raises(TlsError) as caught:
            authority.credentials(wrong, "router")
        assert str(caught.value) == sentence
    with pytest.raises(TlsError, match=r"is not the certificate of storagenode\.a-cluster\.trizone\.internal\.$"):
        authority.credentials(files, "storagenode")
    assert internal_name("router", "c") == "router.c.trizone.internal"


def test_broken_files_do_not_replace_good_ones(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    files = authority.files("router")
    credentials = authority.credentials(files, "router")
    before = credentials.material
    Path(files.key).write_text("half a")
    assert credentials.refresh() is before
    assert credentials.refresh() is before
    assert [record.message for record in caplog.records if record.name == "cluster.tls"] == [
        f"the old certificate stays in use: {files.key} holds no private key in PEM form without a password."
    ]
    fresh = authority.files("router")
    assert fresh == files
    assert credentials.refresh().serial == before.serial + 1
