"""HTTPS at the router: the thin front over TLS, and certificates that change while it serves."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cluster.clock import SystemClock
from cluster.https import HttpsContext, TlsError
from cluster.tls import TlsFiles
from router.gateway import Answer, Received, Respond
from router.http import HttpServer
from tests.unit.certificates import Authority, replace

HEADERS_MAX = 1_024


def _echo(received: Received, respond: Respond) -> None:
    assert received.secure
    respond(Answer(200, received.body or b"nothing", "TRIZONE"))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Who signs the certificate that clients see."""
    return Authority(tmp_path / "ca")


class _Front:
    """A listening front."""

    def __init__(self, https: HttpsContext, server: asyncio.Server, authorities: str) -> None:
        self.https = https
        self.port = int(server.sockets[0].getsockname()[1])
        self._authorities = authorities

    async def open(self, name: str = "localhost") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A client that believes the authority and expects the name."""
        context = ssl.create_default_context(cafile=self._authorities)
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=context, server_hostname=name)


@pytest.fixture
def files(authority: Authority) -> TlsFiles:
    """The certificate's files."""
    return authority.files("https", hosts=["localhost"])


@pytest.fixture
async def front(files: TlsFiles) -> AsyncIterator[_Front]:
    """A front that shows the certificate."""
    https = HttpsContext(files.certificate, files.key)
    http = HttpServer(_echo, SystemClock(), headers_max=HEADERS_MAX)
    server = await asyncio.get_running_loop().create_server(http, "127.0.0.1", 0, ssl=https.context)
    yield _Front(https, server, files.authorities)
    server.close()
    await http.close(1)


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length"))
    return int(head.split()[1]), await reader.readexactly(int(length.split(b":")[1]))


async def test_requests_are_answered_in_order(front: _Front) -> None:
    reader, writer = await front.open()
    large = b"x" * 3_000_000
    writer.write(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\none")
    writer.write(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%b" % (len(large), large))
    assert await _answer(reader) == (200, b"one")
    assert await _answer(reader) == (200, large)
    writer.write(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    assert await _answer(reader) == (200, b"nothing")
    assert await reader.read() == b""
    writer.close()


async def test_a_refusal_reaches_a_client_that_goes_on_sending(front: _Front) -> None:
    reader, writer = await front.open()
    writer.write(b"POST / HTTP/1.1\r\nHost: h\r\nOdd: " + b"y" * HEADERS_MAX)
    status, body = await _answer(reader)
    assert status == 400
    assert b"The headers are too long." in body
    writer.write(b"y" * 100_000)
    await writer.drain()
    writer.close()


async def test_plain_http_is_not_answered(front: _Front) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", front.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    try:
        answer = await reader.read()
    except ConnectionError:
        answer = b""
    assert b"HTTP/1.1" not in answer
    writer.close()
    reader, writer = await front.open()
    writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    assert (await _answer(reader))[0] == 200
    writer.close()


async def test_a_new_certificate_is_shown_to_new_connections(
    front: _Front, authority: Authority, files: TlsFiles, caplog: pytest.LogCaptureFixture
) -> None:
    reader, writer = await front.open()
    with pytest.raises(ssl.SSLCertVerificationError):
        await front.open("db.example.com")
    replace(files, authority.files("https", name="renamed", hosts=["db.example.com"]))
    front.https.refresh()
    _, second = await front.open("db.example.com")
    second.close()
    writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")  # the old connection goes on
    assert (await _answer(reader))[0] == 200
    writer.close()

    caplog.set_level(logging.ERROR)
    await asyncio.to_thread(Path(files.key).write_text, "half a")
    front.https.refresh()
    front.https.refresh()
    assert len([record for record in caplog.records if record.name in ("cluster.https", "cluster.tls")]) == 1
    _, third = await front.open("db.example.com")
    third.close()


def test_files_that_cannot_be_used_are_one_sentence(files: TlsFiles, tmp_path: Path) -> None:
    with pytest.raises(TlsError) as caught:
        HttpsContext(files.certificate, f"{tmp_path}/none.pem")
    assert str(caught.value) == f"Cannot read {tmp_path}/none.pem: No such file or directory."
    with pytest.raises(TlsError) as caught:
        HttpsContext(files.certificate, files.authorities)
    assert str(caught.value) == f"{files.certificate} and {files.authorities} are no certificate with its private key."
