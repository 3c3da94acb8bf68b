"""HTTP/1.1 in and out: connections, framing and bounds. What a request means is the gateway's business.

One `Connection` per client. Requests may be pipelined; answers leave in the order in which the requests came. Every
wait has an end: one timer per listener looks at all connections once a second, so that a request costs no timer.
"""

from __future__ import annotations

import asyncio
import zlib
from collections import deque
from collections.abc import Callable
from email.utils import formatdate
from typing import cast

import httptools

from cluster.clock import Clock
from router.gateway import Answer, Received, Respond
from router.limits import Limits, client_of

HEADERS_MAX = 16 << 10
BODY_MAX = 16 << 20
PIPELINED_MAX = 32
BODIES_MAX = 128 << 20
"""Bytes of bodies that are still arriving, of all connections."""
LINGER_BODIES = 2
"""How many bodies' bytes are read and thrown away after a refusal, so that a client that is still sending gets to read
the answer: closing at once would reset the connection under it."""
"""Requests of one connection under way at once; beyond that nothing more is read from it."""

REQUEST_SECONDS = 30
"""For a request to arrive whole, and for an answer to be taken."""
IDLE_SECONDS = 300
TICK = 1.0

REASONS = {
    200: b"OK",
    400: b"Bad Request",
    404: b"Not Found",
    413: b"Payload Too Large",
    500: b"Internal Server Error",
    503: b"Service Unavailable",
}

Handle = Callable[[Received, Respond], None]


class HttpServer:
    """The connections of one router, whatever listener they came in by.

    `handle` gets each request and a function to answer it with, to be called once, at once or later.
    """

    def __init__(
        self,
        handle: Handle,
        clock: Clock,
        *,
        headers_max: int = HEADERS_MAX,
        body_max: int = BODY_MAX,
        request_seconds: int = REQUEST_SECONDS,
        idle_seconds: int = IDLE_SECONDS,
        bodies_max: int = BODIES_MAX,
        limits: Limits | None = None,
    ) -> None:
        self.handle = handle
        self.limits = limits or Limits()
        self.bodies_max = bodies_max
        self.arriving = 0  # bytes of bodies held by connections
        self.headers_max = headers_max
        self.body_max = body_max
        self.now = 0
        self.preamble = b""
        self._clock = clock
        self._request_seconds = request_seconds
        self._idle_seconds = idle_seconds
        self._connections: set[Connection] = set()
        self._closing = False
        self._gone = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self.tick()

    def __call__(self) -> Connection:
        """A protocol for a new connection: what `loop.create_server` asks for."""
        if self._timer is None:
            self._arm()
        return Connection(self)

    @property
    def connections(self) -> int:
        """Open connections."""
        return len(self._connections)

    def may_ask(self, address: str) -> bool:
        """Whether the client at this address may make one more request now."""
        return self.limits.take(address, self._clock.boottime())

    def tick(self) -> None:
        """One look at all connections; also brings the Date header up to date."""
        self.now = int(self._clock.boottime())
        date = formatdate(self._clock.wall(), usegmt=True).encode()
        self.preamble = b"server: Trizone\r\ndate: " + date + b"\r\n"
        for connection in list(self._connections):
            connection.look(self.now, self._request_seconds, self._idle_seconds)

    async def close(self, seconds: float) -> None:
        """Let requests under way finish, for `seconds` at the most, and end all connections."""
        self._closing = True
        for connection in list(self._connections):
            connection.finish()
        if self._connections:
            try:
                await asyncio.wait_for(self._gone.wait(), seconds)
            except TimeoutError:
                for connection in list(self._connections):
                    connection.abort()
        if self._timer is not None:
            self._timer.cancel()

    def opened(self, connection: Connection) -> None:
        """A connection is there."""
        self._connections.add(connection)
        if self._closing:
            connection.finish()

    def closed(self, connection: Connection) -> None:
        """A connection is gone."""
        self._connections.discard(connection)
        if self._closing and not self._connections:
            self._gone.set()

    def _arm(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(TICK, self._ring)

    def _ring(self) -> None:
        self.tick()
        self._arm()


class _Exchange:
    """A request under way and the place of its answer among those of its connection."""

    __slots__ = ("_connection", "answer", "keep_alive", "old", "unread")

    def __init__(self, connection: Connection, keep_alive: bool, old: bool) -> None:
        self._connection = connection
        self.keep_alive = keep_alive
        self.old = old  # HTTP/1.0, which must be told that the connection stays
        self.unread = False  # refused before all of it had come
        self.answer: Answer | None = None

    def respond(self, answer: Answer) -> None:
        self.answer = answer
        self._connection.answered()


class Connection(asyncio.Protocol):
    """One client's connection."""

    __slots__ = (
        "_address",
        "_body",
        "_body_size",
        "_client",
        "_discarded",
        "_ended",
        "_headers",
        "_in_head",
        "_parser",
        "_pending",
        "_reading",
        "_refused",
        "_secure",
        "_server",
        "_since",
        "_stopping",
        "_target",
        "_transport",
        "_unused",
        "_writable",
    )

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._address = ""  # of the client, as policies see it
        self._client: str | None = None  # as limits count it; None: not counted
        self._secure = False
        self._parser = httptools.HttpRequestParser(self)
        self._pending: deque[_Exchange] = deque()
        self._headers: dict[bytes, bytes] = {}
        self._target = b""
        self._body: list[bytes] = []
        self._body_size = 0
        self._unused = 0  # bytes that have come since the last whole request or part of a body
        self._in_head = True
        self._discarded = 0
        self._ended = False  # the client sends no more
        self._refused = False  # nothing more is read: the rest cannot be understood, or must not
        self._stopping = False  # the connection ends after the answers that are owed
        self._reading = True
        self._writable = True
        self._since = server.now  # of what `look` waits for

    # --- asyncio ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        self._transport = cast(
            asyncio.Transport, transport
        )  # uvloop's is none by class, but all of it by what it can do
        self._address, client = client_of(transport.get_extra_info("peername"))
        self._secure = transport.get_extra_info("sslcontext") is not None
        self._server.opened(self)
        if self._server.limits.opened(client):
            self._client = client
        else:
            self._refused = True
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """The connection is gone; answers still to come go nowhere."""
        self._transport = None
        self._pending.clear()
        self._release_body()
        if self._client is not None:
            self._server.limits.closed(self._client)
            self._client = None
        self._server.closed(self)

    def eof_received(self) -> bool:
        """The client sends no more: answer what it asked, then close."""
        self._ended = True
        self._stopping = True
        return bool(self._pending) and not self._secure  # with TLS there is no half of a connection

    def pause_writing(self) -> None:
        """The client does not take its answers: read no more from it."""
        self._writable = False
        self._since = self._server.now
        self._regulate()

    def resume_writing(self) -> None:
        """The client takes answers again."""
        self._writable = True
        self._since = self._server.now
        self._regulate()

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        if self._refused:
            self._discard(len(data))
            return
        if self._in_head and not self._unused:
            self._since = self._server.now
        self._unused += len(data)
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self._stop_after(_refusal(400, "The request is not HTTP/1.1."))
        if self._unused > self._server.headers_max:
            self._stop_after(_refusal(400, "The headers are too long."))

    # --- httptools ---

    def on_message_begin(self) -> None:
        """A request begins."""
        self._headers = {}
        self._target = b""
        self._release_body()

    def on_url(self, url: bytes) -> None:
        """A part of the request's target."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, whole. Several of one name are one list. What follows the body is of no use."""
        if not self._in_head:
            return
        name = name.lower()
        headers = self._headers
        if name in headers:
            value = headers[name].strip() + b"," + value.strip()
        headers[name] = value

    def on_headers_complete(self) -> None:
        """The head is there: look at its size, and at what it says of the body."""
        self._in_head = False
        if self._refused:
            return
        headers_max = self._server.headers_max
        # Counted exactly only where the bytes that came would allow too much: they may hold a body, too.
        if not 0 < self._unused <= headers_max and self._size_of_head() > headers_max:
            self._stop_after(_refusal(400, "The headers are too long."))
        elif self._announced() > self._server.body_max:
            self._stop_after(_too_large())
        elif b"expect" in self._headers:
            self._continue()

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        if self._refused:
            return
        self._unused = 0
        self._body_size += len(body)
        self._server.arriving += len(body)
        if self._body_size > self._server.body_max:
            self._stop_after(_too_large())
        elif self._server.arriving > self._server.bodies_max:
            self._stop_after(_refusal(503, "Too many large requests arrive at once.", "ServiceUnavailable"))
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """A request is there."""
        self._in_head = True
        self._unused = 0
        self._since = self._server.now
        if self._refused or self._stopping:
            return
        parser = self._parser
        if parser.should_upgrade():
            return  # without its body yet: see _feed
        exchange = _Exchange(self, parser.should_keep_alive(), parser.get_http_version() == "1.0")
        self._pending.append(exchange)
        if not exchange.keep_alive:
            self._refused = True
        if len(self._pending) >= PIPELINED_MAX:
            self._regulate()
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._release_body()
        if self._server.limits.by_rate and not self._server.may_ask(self._client or ""):
            text = "Rate of requests exceeds the allowed throughput."
            exchange.respond(_refusal(400, text, "ThrottlingException"))
            return
        sent = body
        coding = self._headers.get(b"content-encoding")
        if coding is not None:
            inflated = inflate(body, coding, self._server.body_max)
            if isinstance(inflated, Answer):
                exchange.respond(inflated)
                return
            body = inflated
        received = Received(parser.get_method(), self._target, self._headers, body, sent, self._address, self._secure)
        self._server.handle(received, exchange.respond)

    # --- answers ---

    def answered(self) -> None:
        """Write every answer whose turn has come."""
        pending = self._pending
        transport = self._transport
        while pending and (answer := pending[0].answer) is not None:
            exchange = pending.popleft()
            if transport is None:
                continue
            last = not exchange.keep_alive or (self._stopping and not pending)
            transport.write(self._message(answer, last, exchange.old))
            self._since = self._server.now
            if last:
                self._close_after(exchange)
                return
        if not self._reading:
            self._regulate()

    def _message(self, answer: Answer, last: bool, old: bool) -> bytes:
        persistence = b"connection: close\r\n" if last else b"connection: keep-alive\r\n" if old else b""
        body = answer.body
        return b"".join(
            (
                b"HTTP/1.1 %d %b\r\n" % (answer.status, REASONS.get(answer.status, b"Error")),
                self._server.preamble,
                b"content-type: %b\r\nx-amzn-requestid: %b\r\nx-amz-crc32: %d\r\ncontent-length: %d\r\n"
                % (answer.content_type, answer.request_id.encode(), zlib.crc32(body), len(body)),
                persistence,
                b"\r\n",
                body,
            )
        )

    # --- ends and bounds ---

    def finish(self) -> None:
        """Close after the answers that are owed."""
        self._stopping = True
        if not self._pending and self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def look(self, now: int, request_seconds: int, idle_seconds: int) -> None:
        """Close if the client has kept us waiting too long. `now` is in seconds."""
        waited = now - self._since
        if not self._writable:
            if waited > request_seconds:
                self.abort()
        elif self._pending:
            return  # we are the slow ones
        elif waited > (idle_seconds if self._in_head and not self._unused else request_seconds):
            self.abort()

    def _stop_after(self, answer: Answer) -> None:
        """Read no more; close after the answers owed and this one."""
        if self._refused:
            return
        self._refused = True
        self._stopping = True
        self._release_body()
        exchange = _Exchange(self, keep_alive=False, old=False)
        exchange.unread = True
        self._pending.append(exchange)
        exchange.respond(answer)

    def _release_body(self) -> None:
        self._server.arriving -= self._body_size
        self._body_size = 0
        self._body = []

    def _close_after(self, exchange: _Exchange) -> None:
        """The last answer is written."""
        assert self._transport is not None
        if exchange.unread and not self._ended:
            # TLS has no half-closed connections: there the client closes once it has read the answer, or `look` does.
            if not self._secure:
                self._transport.write_eof()
        else:
            self._transport.close()

    def _discard(self, size: int) -> None:
        """Throw away what comes after a refusal, within bounds; `look` bounds the time."""
        self._discarded += size
        if self._discarded > LINGER_BODIES * self._server.body_max and self._transport is not None:
            self._transport.abort()

    def _feed(self, data: bytes) -> None:
        """Parse. Offers of another protocol (h2c, by Java's client) are not taken up: the parser would stop there, so
        it is given the same request without the offer."""
        while True:
            try:
                self._parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as upgrade:
                if self._parser.get_method() == b"CONNECT":
                    raise httptools.HttpParserError("no proxy") from None
                data = self._head_without_offer() + data[upgrade.args[0] :]
                self._parser = httptools.HttpRequestParser(self)

    def _head_without_offer(self) -> bytes:
        parser = self._parser
        lines = [b"%b %b HTTP/%b" % (parser.get_method(), self._target, parser.get_http_version().encode())]
        offer = (b"connection", b"upgrade", b"http2-settings")
        lines += [b"%b: %b" % header for header in self._headers.items() if header[0] not in offer]
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def _regulate(self) -> None:
        """Read only while the client takes its answers and has not too many requests under way."""
        if self._transport is None or self._transport.is_closing():
            return
        reading = self._writable and len(self._pending) < PIPELINED_MAX
        if reading != self._reading:
            self._reading = reading
            if reading:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def _continue(self) -> None:
        """Tell a client that waits with its body that the body is welcome."""
        expected = self._headers[b"expect"].lower() == b"100-continue"
        if expected and not self._pending and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _size_of_head(self) -> int:
        return len(self._target) + sum(len(name) + len(value) + 4 for name, value in self._headers.items())

    def _announced(self) -> int:
        length = self._headers.get(b"content-length", b"")
        return int(length) if length.isdigit() else 0


# --- bodies ---


def inflate(body: bytes, coding: bytes, size_max: int) -> bytes | Answer:
    """The body without its content codings, or the answer to one that does not inflate or is too large inflated.

    DynamoDB takes gzip and deflate, and answers InternalServerError to what is neither. Codings that it does not know
    are left alone.
    """
    for name in reversed(coding.lower().split(b",")):
        window = {b"gzip": 31, b"x-gzip": 31, b"deflate": 15}.get(name.strip())
        if window is None:
            continue
        inflater = zlib.decompressobj(window)
        try:
            body = inflater.decompress(body, size_max + 1)
        except zlib.error:
            return _refusal(500, "The body is not in its content coding.", "InternalServerError")
        if len(body) > size_max:
            return _too_large()
        if not inflater.eof:
            return _refusal(500, "The body is not in its content coding.", "InternalServerError")
    return body


def _too_large() -> Answer:
    return _refusal(413, "The request is larger than 16 MB.", "RequestEntityTooLargeException")


def _refusal(status: int, message: str, type_: str = "SerializationException") -> Answer:
    """An answer to what never became a request."""
    name = "Message" if type_ == "SerializationException" else "message"
    body = b'{"__type":"com.amazon.coral.service#%b","%b":"%b"}' % (type_.encode(), name.encode(), message.encode())
    return Answer(status, body, "TRIZONE" + "A" * 19)
