"""What is fuzzed. Each target takes bytes and raises if anything happens that must not: a crash, a 500, a wrong
order."""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from typing import Any, cast

import orjson

from cluster.random_source import SeededRandom
from dynamo import keys, number
from dynamo.errors import ApiError
from dynamo.expressions.compile import compile_expressions
from dynamo.expressions.condition import holds
from dynamo.expressions.projection import project
from dynamo.expressions.update import apply_update
from dynamo.values import canonical_item, dump, load
from router.gateway import Answer, Gateway, Received
from router.model import targets
from router.operations import REGISTRY
from tests.property.test_router_input import HTTP_WORDS, gateway
from tests.property.test_router_requests import NoNodes, Unchangeable
from tests.unit.router_fakes import ManualClock
from tests.unit.router_http import Client

OPERATIONS = sorted(REGISTRY)
ANSWER_SECONDS_MAX = 5

_loop = asyncio.new_event_loop()


def _check_refusal(error: ApiError, *types: str) -> None:
    if error.type not in types:
        raise error


# --- the HTTP front ---


def http_front(data: bytes) -> None:
    """Bytes of a connection, in pieces. The first byte says how large these are."""
    piece, stream = 1 + (data[0] if data else 0), data[1:]
    client = Client(handle=gateway().handle, headers_max=300, body_max=100)
    for start in range(0, len(stream), piece):
        if client.transport.closed:
            break
        client.send(stream[start : start + piece])
    answered = {answer.status for answer in client.answers()}
    if b"encoding" in stream.lower():
        answered.discard(500)  # a body that is not in its coding: DynamoDB's answer
    assert answered <= {100, 200, 400, 404, 413}, answered


# --- JSON, up to the plans ---


def json_request(data: bytes) -> None:
    """A body for an operation. The first byte says for which, and whether nodes answer."""
    if not data:
        return
    operation, empty, body = OPERATIONS[data[0] % len(OPERATIONS)], data[0] >= 128, data[1:]
    answer = _loop.run_until_complete(_answered(operation, body, empty))
    assert answer.status in (200, 400, 503), (operation, body, answer.body)
    assert isinstance(orjson.loads(answer.body), dict)


async def _answered(operation: str, body: bytes, empty: bool) -> Answer:
    tested = Gateway(
        targets=targets(),
        registry=REGISTRY,
        catalog=cast(Any, Unchangeable()),
        executor=cast(Any, NoNodes(empty)),
        clock=ManualClock(),
        random=SeededRandom(1),
    )
    answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    headers = {b"x-amz-target": b"DynamoDB_20120810." + operation.encode()}
    tested.handle(Received(b"POST", b"/", headers, body), answer.set_result)
    return await asyncio.wait_for(answer, ANSWER_SECONDS_MAX)


def item_json(data: bytes) -> None:
    """An item's JSON: what is accepted is the same when it is written and read again."""
    try:
        raw = orjson.loads(data)
    except orjson.JSONDecodeError:
        return
    if not isinstance(raw, dict) or not all(isinstance(value, dict) for value in raw.values()):
        return
    try:
        item = canonical_item(raw)
    except ApiError as error:
        _check_refusal(error, "ValidationException", "SerializationException")
        return
    assert load(dump(item)) == item
    assert canonical_item(load(dump(item))) == item


# --- expressions ---

KINDS = ("condition", "filter", "update", "projection", "key_condition")
NAMES = {"#a": "a", "#b": "b.c", "#p": "p"}
VALUES: dict[str, dict[str, Any]] = {
    ":n": {"N": "5"},
    ":s": {"S": "text"},
    ":l": {"L": [{"N": "1"}]},
    ":t": {"SS": ["x", "y"]},
    ":m": {"M": {"a": {"N": "1"}}},
}
ITEMS: list[dict[str, Any]] = [
    {},
    {"a": {"N": "1"}, "b.c": {"S": "text"}, "l": {"L": [{"M": {"a": {"N": "2"}}}, {"N": "3"}]}},
    {"a": {"SS": ["x"]}, "m": {"M": {"a": {"L": [{"N": "1"}]}, "b": {"NULL": True}}}},
]


def expressions(data: bytes) -> None:
    """A text as each kind of expression. The first byte says which."""
    if not data:
        return
    kind, text = KINDS[data[0] % len(KINDS)], data[1:].decode("utf-8", "ignore")
    names = {name: NAMES[name] for name in re.findall(r"#\w+", text) if name in NAMES}
    values = {name: VALUES[name] for name in re.findall(r":\w+", text) if name in VALUES}
    texts: dict[str, Any] = {kind: text}
    try:
        compiled = compile_expressions(**texts, names=names or None, values=values or None)
    except ApiError as error:
        _check_refusal(error, "ValidationException")
        return
    for item in ITEMS:
        before = dump(item)
        for condition in (compiled.condition, compiled.filter):
            if condition is not None:
                assert holds(condition, item, compiled.values) in (True, False)
        if compiled.projection is not None:
            project(compiled.projection, item)
        if compiled.update is not None:
            with suppress(ApiError):
                apply_update(compiled.update, item, compiled.values)
        assert dump(item) == before


# --- key encodings ---


def key_encodings(data: bytes) -> None:
    """Two values of a type: the order of their encodings is their own. The first byte says which type."""
    if not data:
        return
    middle = (len(data) + 1) // 2
    left, right = data[1:middle], data[middle:]
    match data[0] % 3:
        case 0:
            _in_order("B", b64encode(left).decode(), b64encode(right).decode(), left, right)
        case 1:
            a, b = left.decode("utf-8", "ignore"), right.decode("utf-8", "ignore")
            _in_order("S", a, b, a.encode(), b.encode())
        case _:
            try:
                a, b = (number.normalise(part.decode("latin-1")) for part in (left, right))
            except ApiError as error:
                _check_refusal(error, "ValidationException")
                return
            _in_order("N", a, b, Fraction(a), Fraction(b))
            assert number.decode_ordered(number.encode_ordered(a)) == a
            with suppress(ApiError):
                assert Fraction(number.add(a, b)) == Fraction(a) + Fraction(b)


def _in_order(kind: str, left: str, right: str, smaller: Any, larger: Any) -> None:
    """Both encodings sort as the values, and one in front of others ends by itself."""
    for encode in (keys.encode_sort, keys.encode_range):
        a, b = encode(kind, left), encode(kind, right)
        assert (a < b) == (smaller < larger), (kind, left, right)
        assert (a == b) == (smaller == larger), (kind, left, right)
    joined = keys.encode_range(kind, left) + keys.encode_range(kind, right)
    value, at = keys.decode_range(joined)
    assert value == keys.encode_sort(kind, left)
    assert keys.decode_range(joined, at) == (keys.encode_sort(kind, right), len(joined))


TARGETS: dict[str, Callable[[bytes], None]] = {
    "http": http_front,
    "json": json_request,
    "item": item_json,
    "expressions": expressions,
    "keys": key_encodings,
}

# --- where fuzzing begins ---

_TEXTS = (
    "a = :n AND NOT (#a < :s OR begins_with(#b, :s))",
    "a BETWEEN :n AND :n OR a IN (:n, :s) OR size(l[0].a) > :n OR contains(a, :s) OR attribute_type(a, :s)",
    "SET a = if_not_exists(a, :n) + :n, l[1] = list_append(l, :l) REMOVE m.a[0] ADD #p :n DELETE t :t",
    "a, #b, l[0].a, m.b",
    "p = :s AND c BETWEEN :n AND :n",
)
_BODIES: tuple[dict[str, Any], ...] = (
    {
        "TableName": "hash",
        "Item": {"pk": {"S": "x"}, "a": {"N": "1"}},
        "ConditionExpression": "attribute_not_exists(pk)",
    },
    {
        "TableName": "composite",
        "Key": {"pk": {"S": "x"}, "sk": {"S": "y"}},
        "AttributeUpdates": {"a": {"Value": {"N": "1"}}},
    },
    {"TableName": "composite", "KeyConditionExpression": "pk = :v", "ExpressionAttributeValues": {":v": {"S": "x"}}},
    {"RequestItems": {"hash": [{"PutRequest": {"Item": {"pk": {"S": "x"}}}}]}},
    {"RequestItems": {"hash": {"Keys": [{"pk": {"S": "x"}}]}}},
    {"Statement": 'SELECT * FROM "hash" WHERE pk = ?', "Parameters": [{"S": "x"}]},
)


def seeds(target: str) -> list[bytes]:
    """Inputs that reach far into a target."""
    match target:
        case "http":
            body = orjson.dumps({"TableName": "hash"})
            head = b"POST / HTTP/1.1\r\nX-Amz-Target: DynamoDB_20120810.Scan\r\nContent-Length: %d\r\n\r\n" % len(body)
            return [b"\x30" + head + body, *(b"\x05" + word for word in HTTP_WORDS)]
        case "json":
            return [bytes([n]) + orjson.dumps(body) for n in range(len(OPERATIONS)) for body in _BODIES]
        case "item":
            return [dump(item) for item in ITEMS] + [b'{"a":{"BS":["YQ=="]},"b":{"NS":["1e2","-0.5"]}}']
        case "expressions":
            return [bytes([n]) + text.encode() for n in range(len(KINDS)) for text in _TEXTS]
    return [b"\x00\x00\xff", b"\x01abcd", b"\x02" + b"-1.5e3" + b"123.75", b"\x02" + b"9" * 38 + b"1E-130"]
