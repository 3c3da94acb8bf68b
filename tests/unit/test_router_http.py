"""The HTTP front: framing, order, bounds, and the ends of connections."""

from __future__ import annotations

import asyncio
import gzip
import zlib

import pytest

from router.http import PIPELINED_MAX
from tests.unit.router_http import Client, post

MIB = 1 << 20


def test_a_request_and_its_answer() -> None:
    client = Client()
    client.send(post(b'{"a":1}', X_Amz_Target="T"))
    (received,) = client.received
    assert (received.method, received.target, received.body) == (b"POST", b"/", b'{"a":1}')
    assert received.headers[b"x-amz-target"] == b"T"
    answer = client.answer
    assert (answer.status, answer.body) == (200, b'{"a":1}')
    assert answer.headers["content-type"] == "application/x-amz-json-1.0"
    assert answer.headers["x-amzn-requestid"] == "REQUESTID"
    assert "connection" not in answer.headers
    assert not client.transport.closed


@pytest.mark.parametrize("size", [1, 7, 64])
def test_a_request_in_pieces(size: int) -> None:
    client = Client()
    data = post(b"x" * 300) + post(b"y")
    for start in range(0, len(data), size):
        client.send(data[start : start + size])
    assert [received.body for received in client.received] == [b"x" * 300, b"y"]


def test_a_chunked_body() -> None:
    client = Client()
    client.send(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
    assert client.received[0].body == b"abcde"


def test_answers_leave_in_the_order_of_requests() -> None:
    client = Client(hold=True)
    client.send(post(b"1") + post(b"2") + post(b"3"))
    client.respond(2, b"third")
    client.respond(1, b"second")
    assert client.answers() == []
    client.respond(0, b"first")
    assert [answer.body for answer in client.answers()] == [b"first", b"second", b"third"]


def test_a_client_with_many_requests_under_way_is_not_read_from() -> None:
    client = Client(hold=True)
    client.send(post() * PIPELINED_MAX)
    assert not client.transport.reading
    client.respond(0, b"{}")
    assert client.transport.reading


def test_a_client_that_takes_no_answers_is_not_read_from() -> None:
    client = Client()
    client.connection.pause_writing()
    assert not client.transport.reading
    client.connection.resume_writing()
    assert client.transport.reading


def test_one_who_waits_for_leave_to_send_its_body_gets_it() -> None:
    client = Client()
    client.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
    assert client.transport.written == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.send(b"{}")
    assert [answer.status for answer in client.answers()] == [100, 200]


def test_one_whose_body_is_too_large_does_not_get_leave() -> None:
    client = Client(body_max=10)
    client.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\n")
    assert client.answer.status == 413
    assert client.transport.closed


# --- persistence ---


@pytest.mark.parametrize(
    ("version", "connection", "stays", "shown"),
    [
        ("1.1", None, True, None),
        ("1.1", "close", False, "close"),
        ("1.0", None, False, "close"),
        ("1.0", "keep-alive", True, "keep-alive"),
    ],
)
def test_persistence(version: str, connection: str | None, stays: bool, shown: str | None) -> None:
    client = Client()
    headers = {"Connection": connection} if connection else {}
    client.send(post(b"{}", version, **headers))
    assert client.answer.headers.get("connection") == shown
    assert client.transport.closed is not stays


def test_nothing_is_read_after_the_last_request() -> None:
    client = Client(hold=True)
    client.send(post(b"1", Connection="close") + post(b"2"))
    client.send(post(b"3"))
    assert len(client.received) == 1
    client.respond(0, b"{}")
    assert client.transport.closed


def test_a_half_closed_connection_gets_its_answers() -> None:
    client = Client(hold=True)
    client.send(post())
    assert client.connection.eof_received()
    client.respond(0, b"done")
    assert client.answer.body == b"done"
    assert client.transport.closed


def test_an_idle_connection_ends_at_its_end_of_input() -> None:
    assert not Client().connection.eof_received()


def test_an_answer_after_the_client_has_gone_goes_nowhere() -> None:
    client = Client(hold=True)
    client.send(post())
    client.connection.connection_lost(None)
    client.respond(0, b"late")
    assert client.transport.written == b""


def test_an_offer_of_another_protocol_is_not_taken_up() -> None:
    client = Client()
    offer = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2_Settings": "AAMAAABk"}
    client.send(post(b"1", "1.1", **offer) + post(b"2", "1.1", **offer) + post(b"3"))
    assert [received.body for received in client.received] == [b"1", b"2", b"3"]
    assert [answer.status for answer in client.answers()] == [200, 200, 200]


def test_it_is_no_proxy() -> None:
    client = Client()
    client.send(b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n")
    assert client.answer.status == 400
    assert client.transport.closed


# --- bounds ---


@pytest.mark.parametrize(
    "data",
    [
        b"GARBAGE\r\n\r\n",
        b"POST / HTTP/9.9\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS
    ],
)
def test_what_is_no_http_is_refused(data: bytes) -> None:
    client = Client()
    client.send(data)
    assert client.answer.status == 400
    assert client.answer.json["__type"].endswith("#SerializationException")
    assert client.transport.closed
    assert client.received == []


def test_answers_that_are_owed_come_before_a_refusal() -> None:
    client = Client(hold=True)
    client.send(post(b"1") + b"GARBAGE\r\n\r\n")
    client.respond(0, b"first")
    assert [answer.status for answer in client.answers()] == [200, 400]
    assert client.transport.closed


@pytest.mark.parametrize("piece", [1 << 20, 1000])
def test_headers_of_more_than_16_kib(piece: int) -> None:
    client = Client()
    data = post(X_Long="v" * (16 << 10))
    for start in range(0, len(data), piece):
        client.send(data[start : start + piece])
        if client.transport.closed:
            break
    assert client.answer.status == 400
    assert client.received == []


def test_headers_of_almost_16_kib_with_a_large_body() -> None:
    client = Client()
    client.send(post(b"b" * 100_000, X_Long="v" * 16_200))
    assert client.answer.status == 200


@pytest.mark.parametrize("start", [b"POST /" + b"a" * 1000, b"POST / HTTP/1.1\r\nX-A: " + b"a" * 1000])
def test_a_head_without_end_is_not_kept(start: bytes) -> None:
    client = Client()
    client.send(start)
    for _ in range(16):
        client.send(b"a" * 1000)
    assert client.answer.status == 400


def test_trailers_without_end_are_not_kept() -> None:
    client = Client()
    client.send(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Trailer: ")
    for _ in range(17):
        client.send(b"a" * 1000)
    assert client.answer.status == 400
    assert client.transport.closed


def test_a_body_of_16_mib_and_one_byte_more() -> None:
    client = Client()
    client.send(post(b"b" * (16 * MIB)))
    assert client.answer.status == 200
    client = Client()
    client.send(post(b"b" * (16 * MIB + 1)))
    assert client.answer.status == 413
    assert client.received == []


def test_a_chunked_body_that_grows_too_large() -> None:
    client = Client(body_max=10)
    client.send(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
    client.send(b"a\r\n0123456789\r\n")
    assert not client.transport.closed
    client.send(b"1\r\nx\r\n")
    assert client.answer.status == 413
    assert client.transport.closed


# --- content codings ---


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(b"payload", mtime=0)),
        ("deflate", zlib.compress(b"payload")),
        ("deflate, gzip", gzip.compress(zlib.compress(b"payload"), mtime=0)),
        ("identity", b"payload"),
    ],
)
def test_coded_bodies(coding: str, body: bytes) -> None:
    client = Client()
    client.send(post(body, Content_Encoding=coding))
    assert client.received[0].body == b"payload"


def test_a_body_that_inflates_to_too_much() -> None:
    client = Client()
    bomb = gzip.compress(b"\0" * (20 * MIB))
    client.send(post(bomb, Content_Encoding="gzip"))
    assert client.answer.status == 413
    assert not client.transport.closed  # the framing is intact: the next request is welcome
    assert client.received == []


@pytest.mark.parametrize("body", [b"no gzip at all", gzip.compress(b"payload", mtime=0)[:-9]])
def test_a_body_that_does_not_inflate(body: bytes) -> None:
    client = Client()
    client.send(post(body, Content_Encoding="gzip"))
    assert client.answer.status == 500
    assert client.answer.json["__type"].endswith("#InternalServerError")


# --- time ---


def test_a_request_that_does_not_come_whole_in_time() -> None:
    client = Client(request_seconds=30, idle_seconds=300)
    client.pass_time(200)
    client.send(post(b"whole")[:-1])
    client.pass_time(30)
    assert not client.transport.closed
    client.pass_time(1)
    assert client.transport.aborted


def test_a_head_that_does_not_come_whole_in_time() -> None:
    client = Client(request_seconds=30, idle_seconds=300)
    for byte in b"POST / HTTP/1.1":
        client.send(bytes([byte]))
        client.pass_time(3)
    assert client.transport.aborted


def test_an_idle_connection_is_closed_later() -> None:
    client = Client(request_seconds=30, idle_seconds=300)
    client.send(post())
    client.pass_time(300)
    assert not client.transport.closed
    client.pass_time(1)
    assert client.transport.closed


def test_a_client_that_takes_no_answers_is_dropped() -> None:
    client = Client(request_seconds=30, idle_seconds=300)
    client.connection.pause_writing()
    client.pass_time(31)
    assert client.transport.aborted


def test_a_request_under_way_keeps_its_connection() -> None:
    client = Client(hold=True, request_seconds=30, idle_seconds=300)
    client.send(post())
    client.pass_time(1_000)
    client.respond(0, b"{}")
    assert client.answer.status == 200
    client.pass_time(299)
    assert not client.transport.closed


# --- the end ---


async def test_close_waits_for_requests_under_way() -> None:
    client = Client(hold=True)
    client.send(post())
    closing = asyncio.create_task(client.server.close(5.0))
    await asyncio.sleep(0)
    assert not client.transport.closed
    client.respond(0, b"last")
    assert client.transport.closed
    assert client.answer.headers["connection"] == "close"
    client.connection.connection_lost(None)
    await closing


async def test_close_does_not_wait_for_ever() -> None:
    client = Client(hold=True)
    client.send(post())
    await client.server.close(0.01)
    assert client.transport.aborted


async def test_close_ends_idle_connections_at_once() -> None:
    client = Client()
    closing = asyncio.create_task(client.server.close(5.0))
    await asyncio.sleep(0)
    assert client.transport.closed
    client.connection.connection_lost(None)
    await closing


# --- lingering ---


def test_a_client_that_is_still_sending_gets_to_read_its_refusal() -> None:
    client = Client(body_max=100)
    client.send(post(b"x" * 101)[:-50])
    assert (client.answer.status, client.transport.lingers, client.transport.aborted) == (413, True, False)
    client.send(b"x" * 50)
    assert not client.transport.aborted
    client.send(b"x" * 200)
    assert client.transport.aborted


def test_a_client_that_lingers_too_long_is_cut_off() -> None:
    client = Client(body_max=100)
    client.send(b"POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n")
    client.pass_time(3_600)
    assert client.transport.aborted


def test_a_client_that_has_sent_all_is_not_lingered_for() -> None:
    client = Client(hold=True, body_max=100)
    client.send(post() + b"POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n")
    client.connection.eof_received()
    client.respond(0, b"{}")
    assert [answer.status for answer in client.answers()] == [200, 413]
    assert not client.transport.lingers
