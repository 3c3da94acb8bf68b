"""Bounds on what clients may take: connections, requests per second, bytes of bodies that are arriving."""

from __future__ import annotations

import gzip
from typing import Any, cast

import pytest

from router.http import Connection
from router.limits import Limits, client_of
from tests.unit.router_http import Client, FakeTransport, post


def test_connections_per_address_and_of_all() -> None:
    limits = Limits(connections=3, connections_per_address=2)
    assert [limits.opened(each) for each in ("a", "a", "a", "b", "c")] == [True, True, False, True, False]
    limits.closed("a")
    assert limits.opened("c")
    assert not limits.opened("b")
    assert limits.refused == {"connection": 3, "request": 0}


def test_without_limits_nothing_is_refused() -> None:
    limits = Limits()
    assert all(limits.opened("a") for _ in range(1_000))
    assert not limits.by_rate


def test_requests_per_second_are_a_bucket() -> None:
    limits = Limits(requests_per_second=2)
    assert [limits.take("a", 10.0) for _ in range(3)] == [True, True, False]
    assert limits.take("b", 10.0)
    assert [limits.take("a", 10.5) for _ in range(2)] == [True, False]
    assert [limits.take("a", 99.0) for _ in range(3)] == [True, True, False]


@pytest.mark.parametrize(
    ("peer", "expected"),
    [
        (("10.0.0.1", 1), ("10.0.0.1", "10.0.0.1")),
        (("2001:db8:1:2:3:4:5:6", 1, 0, 0), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64")),
        (("::ffff:10.0.0.1", 1, 0, 0), ("10.0.0.1", "10.0.0.1")),
        (("fe80::1%eth0", 1, 0, 2), ("fe80::1", "fe80::/64")),
        ("", ("", "")),
        (None, ("", "")),
        (("no address", 1), ("", "")),
    ],
)
def test_the_address_of_a_client(peer: Any, expected: tuple[str, str]) -> None:
    assert client_of(peer) == expected


def another(client: Client) -> FakeTransport:
    """One more connection to the client's server."""
    transport = FakeTransport()
    Connection(client.server).connection_made(cast(Any, transport))
    return transport


def test_a_connection_too_many_is_closed_at_once() -> None:
    client = Client(limits=Limits(connections_per_address=2))
    assert not another(client).aborted
    assert another(client).aborted
    client.connection.connection_lost(None)
    assert not another(client).aborted


def test_requests_too_many_are_throttled_and_the_connection_stays() -> None:
    client = Client(limits=Limits(requests_per_second=2))
    client.send(post() * 3)
    assert [answer.status for answer in client.answers()] == [200, 200, 400]
    assert client.answers()[2].json["__type"].endswith("#ThrottlingException")
    client.clock.now += 1.0
    client.send(post())
    assert client.answers()[3].status == 200


def test_bodies_that_arrive_are_bounded_together() -> None:
    client = Client(bodies_max=100)
    head = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 90\r\n\r\n"
    client.send(head + b"x" * 80)
    other = Connection(client.server)
    transport = FakeTransport()
    other.connection_made(cast(Any, transport))
    other.data_received(head + b"x" * 80)
    assert transport.written.startswith(b"HTTP/1.1 503 ")
    assert client.server.arriving == 80
    client.send(b"x" * 10)
    assert client.answer.status == 200
    assert client.server.arriving == 0
    client.send(head + b"x" * 80)
    client.connection.connection_lost(None)
    assert client.server.arriving == 0


def test_the_body_as_it_came_is_there_to_be_verified() -> None:
    client = Client()
    packed = gzip.compress(b"{}")
    client.send(post(packed, "1.1", Content_Encoding="gzip"))
    (received,) = client.received
    assert (received.body, received.sent) == (b"{}", packed)
    assert (received.address, received.secure) == ("127.0.0.1", False)


def test_repeated_headers_are_one_list_without_blanks_around_its_members() -> None:
    client = Client()
    client.send(b"POST / HTTP/1.1\r\nHost: h\r\nX-A:  one \r\nX-A:\ttwo  \r\nContent-Length: 0\r\n\r\n")
    assert client.received[0].headers[b"x-a"] == b"one,two"
