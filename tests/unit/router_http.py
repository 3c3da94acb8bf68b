"""One end of a connection for tests of the HTTP front: bytes in, answers out, without a socket."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, cast

import orjson

from router.gateway import Answer, Received, Respond
from router.http import Connection, HttpServer
from tests.unit.router_fakes import ManualClock


@dataclass
class HttpAnswer:
    """An answer as it stands on the wire."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)


class FakeTransport:
    """Keeps what is written, and whether it was closed, at least for writing."""

    def __init__(self) -> None:
        self.written = b""
        self.closed = False
        self.lingers = False
        self.aborted = False
        self.reading = True

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.written += data

    def close(self) -> None:
        self.closed = True

    def write_eof(self) -> None:
        assert not self.closed
        self.closed = self.lingers = True

    def abort(self) -> None:
        self.closed = self.aborted = True

    def is_closing(self) -> bool:
        return self.closed

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 50_000) if name == "peername" else None

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


class Client:
    """A connection to an `HttpServer`, and the requests that came through. `hold`: answers are given by the test."""

    def __init__(self, *, hold: bool = False, handle: Any = None, **bounds: Any) -> None:
        self.clock = ManualClock()
        self.received: list[Received] = []
        self.responds: list[Respond] = []
        self._hold = hold
        self.server = HttpServer(handle or self._handle, self.clock, **bounds)
        self.transport = FakeTransport()
        self.connection = Connection(self.server)
        self.connection.connection_made(cast(Any, self.transport))

    def _handle(self, received: Received, respond: Respond) -> None:
        self.received.append(received)
        if self._hold:
            self.responds.append(respond)
        else:
            respond(Answer(200, received.body or b"{}", "REQUESTID"))

    def send(self, data: bytes) -> None:
        """Bytes of the client, as one read."""
        self.connection.data_received(data)

    def respond(self, number: int, body: bytes) -> None:
        """Answer the request of this number, from 0."""
        self.responds[number](Answer(200, body, f"REQUESTID{number}"))

    def pass_time(self, seconds: float) -> None:
        """Let the server look at its connections a while later."""
        self.clock.now += seconds
        self.server.tick()

    def answers(self) -> list[HttpAnswer]:
        """All answers so far; every one's checksum is right."""
        found, rest = [], self.transport.written
        while rest:
            head, _, rest = rest.partition(b"\r\n\r\n")
            first, *lines = head.decode().split("\r\n")
            status = int(first.split(" ")[1])
            headers = dict(line.split(": ", 1) for line in lines)
            length = int(headers.get("content-length", "0"))
            body, rest = rest[:length], rest[length:]
            assert status == 100 or int(headers["x-amz-crc32"]) == zlib.crc32(body)
            found.append(HttpAnswer(status, headers, body))
        return found

    @property
    def answer(self) -> HttpAnswer:
        """The only answer."""
        (answer,) = self.answers()
        return answer


def post(body: bytes = b"{}", version: str = "1.1", **headers: str) -> bytes:
    """A POST request; headers' names are written with - for _."""
    lines = [f"POST / HTTP/{version}", "Host: h", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
