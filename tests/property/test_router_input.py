"""Nothing that a client sends brings a router down or makes it answer 500."""

from __future__ import annotations

from typing import Any, cast

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.random_source import SeededRandom
from router.context import RequestContext
from router.gateway import Answer, Gateway, Received
from router.model import model, targets
from router.plan import Immediate, Plan
from tests.unit.router_fakes import ManualClock
from tests.unit.router_http import Client, post

OPERATIONS = sorted(shape.operation for shape in targets().values())
KNOWN = sorted(
    {
        name
        for service in model()["services"].values()
        for shape in service["shapes"].values()
        for name in shape.get("members", ())
    }
)
HTTP_WORDS = [
    b"POST / HTTP/1.1\r\n",
    b"GET / HTTP/1.0\r\n",
    b"Host: h\r\n",
    b"Content-Length: 3\r\n",
    b"Content-Length: -1\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip, chunked\r\n",
    b"Expect: 100-continue\r\n",
    b"Connection: close\r\n",
    b"Connection: Upgrade\r\nUpgrade: h2c\r\n",
    b"X-Amz-Target: DynamoDB_20120810.Scan\r\n",
    b"\r\n",
    b"3\r\nabc\r\n",
    b"0\r\n\r\n",
    b"{}",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
]

json_scalars = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=5)
)
json_values = st.recursive(
    json_scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KNOWN) | st.text(max_size=3), inner),
    max_leaves=20,
)
json_objects = st.dictionaries(st.sampled_from(KNOWN), json_values, max_size=8)


def gateway() -> Gateway:
    """One for which every operation is built and does nothing."""

    def nothing(_body: dict[str, Any], _context: RequestContext) -> Plan:
        return Immediate(b"{}")

    return Gateway(
        targets=targets(),
        registry=dict.fromkeys(OPERATIONS, nothing),
        catalog=cast(Any, None),
        executor=cast(Any, None),
        clock=ManualClock(),
        random=SeededRandom(1),
    )


@given(st.lists(st.sampled_from(HTTP_WORDS) | st.binary(max_size=20), max_size=12), st.integers(1, 50))
@settings(max_examples=400, deadline=None)
def test_any_bytes(words: list[bytes], piece: int) -> None:
    client = Client(handle=gateway().handle, headers_max=200, body_max=50)
    data = b"".join(words)
    for start in range(0, len(data), piece):
        if client.transport.closed:
            break
        client.send(data[start : start + piece])
    assert {answer.status for answer in client.answers()} <= {100, 200, 400, 404, 413}


@given(st.lists(st.binary(max_size=30), min_size=1, max_size=5), st.integers(1, 40))
@settings(max_examples=200, deadline=None)
def test_requests_are_the_same_however_they_are_cut(bodies: list[bytes], piece: int) -> None:
    client = Client()
    data = b"".join(post(body) for body in bodies)
    for start in range(0, len(data), piece):
        client.send(data[start : start + piece])
    assert [received.body for received in client.received] == bodies
    assert len(client.answers()) == len(bodies)


def answered(target: bytes, body: bytes) -> Answer:
    """The answer to a request with this body."""
    answers: list[Answer] = []
    gateway().handle(Received(b"POST", b"/", {b"x-amz-target": target}, body), answers.append)
    (answer,) = answers
    return answer


@given(st.sampled_from(sorted(targets())), json_values)
@settings(max_examples=400, deadline=None)
def test_any_json(target: bytes, body: Any) -> None:
    answer = answered(target, orjson.dumps(body, option=orjson.OPT_NON_STR_KEYS) if _fits(body) else b"{")
    assert answer.status in (200, 400)
    assert isinstance(orjson.loads(answer.body), dict)


@given(st.sampled_from(sorted(targets())), json_objects)
@settings(max_examples=800, deadline=None)
def test_any_members(target: bytes, body: dict[str, Any]) -> None:
    answer = answered(target, orjson.dumps(body) if _fits(body) else b"{")
    assert answer.status in (200, 400)
    if answer.status == 400:
        error = orjson.loads(answer.body)
        assert error["__type"].endswith(("#ValidationException", "#SerializationException"))


@given(st.sampled_from(sorted(targets())), st.binary(max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_body(target: bytes, body: bytes) -> None:
    assert answered(target, body).status in (200, 400)


def _fits(value: Any) -> bool:
    """Whether orjson can write the value: its whole numbers have 64 bits, and its texts no lone surrogates."""
    try:
        orjson.dumps(value)
    except TypeError:
        return False
    return True
