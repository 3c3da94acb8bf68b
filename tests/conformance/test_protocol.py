"""HTTP and JSON, as SDKs meet them. "case N" is the number of the public report that a test stands for."""

from __future__ import annotations

import gzip
import json
import socket
import zlib
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.support import SERIALIZATION, VALIDATION, Client, Http, key, n, random_name, refused, s

WRITES = {
    "PutItem": {"Item": key(p="x")},
    "UpdateItem": {"Key": key(p="x")},
    "DeleteItem": {"Key": key(p="x")},
}


# --- case 1: an empty answer is an object ---


@pytest.mark.parametrize("operation", [*WRITES, "GetItem"])
def test_an_empty_answer_is_an_object(http: Http, simple: str, operation: str) -> None:  # case 1
    members = WRITES.get(operation, {"Key": {"p": s()}})
    answer = http.send(operation, {"TableName": simple, **members})
    assert (answer.status, answer.body) == (200, b"{}")


# --- case 2: texts of errors are JSON, whatever they quote ---


@pytest.mark.parametrize(
    "members",
    [
        {"UpdateExpression": "ADD x :v", "ExpressionAttributeValues": {":v": {"S": "no number"}}},
        {"UpdateExpression": 'SET "x" = :v', "ExpressionAttributeValues": {":v": {"S": "x"}}},
        {"UpdateExpression": "SET x = \\\u2028\x07", "ExpressionAttributeValues": {":v": {"S": "x"}}},
        {"UpdateExpression": "SET x = :v", "ExpressionAttributeValues": {':"v\\': {"S": "x"}}},
        {"UpdateExpression": "SET x = :v", "ExpressionAttributeValues": {":v": {"N": '"1"'}}},
        {"ReturnValues": 'A"B\\'},
    ],
)
def test_errors_that_quote_are_json(http: Http, simple: str, members: dict[str, Any]) -> None:  # case 2
    answer = http.send("UpdateItem", {"TableName": simple, "Key": {"p": s()}, **members})
    assert (answer.status, answer.error) == (400, VALIDATION)
    assert answer.message


# --- case 4: headers are bounded ---


def test_headers_of_more_than_16_kb_are_refused(http: Http) -> None:  # case 4
    assert http.send("ListTables", {}, X_Large="x" * (17 << 10)).status == 400


def test_many_small_headers_are_bounded_too(http: Http) -> None:  # case 4
    many = {f"X_Header_{number}": "x" * 100 for number in range(80)}
    assert http.send("ListTables", {}, **many).status == 200
    many = {f"X_Header_{number}": "x" * 100 for number in range(160)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("http.client._MAXHEADERS", 1000)
        assert http.send("ListTables", {}, **many).status == 400


@pytest.mark.parametrize("start", [b"POST / HTTP/1.1\r\nX: ", b"POST /", b"POST / HTTP/1.1\r\n"])
def test_headers_without_an_end_are_cut_off(http: Http, start: bytes) -> None:  # case 4
    """A server that buffers what never ends would take all of this; one that does not closes long before."""
    with socket.create_connection((http.address.hostname or "", http.address.port or 80), timeout=30) as connection:
        connection.sendall(start)
        sent = 0
        try:
            while sent < 8 << 20:
                connection.sendall(b"x" * 65_536)
                sent += 65_536
        except (BrokenPipeError, ConnectionResetError):
            return
        assert connection.recv(1_000).startswith(b"HTTP/1.1 400")


# --- case 5: long bodies ---


def test_a_batch_of_25_items_of_almost_400_kb(client: Client, simple: str) -> None:  # case 5
    items = [{"p": s(), "v": {"S": chr(ord("a") + number) * 408_000}} for number in range(25)]
    answer = client.batch_write_item(RequestItems={simple: [{"PutRequest": {"Item": item}} for item in items]})
    assert not answer["UnprocessedItems"]
    for item in items:
        stored = client.get_item(TableName=simple, Key={"p": item["p"]}, ConsistentRead=True)["Item"]
        assert stored == item


def test_a_body_of_more_than_16_mb_is_refused(http: Http) -> None:
    answer = http.send("PutItem", b"{" + b" " * (16 << 20) + b"}")
    assert answer.status in (400, 413)


# --- case 8: compressed bodies ---

DEFLATED: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress}


@pytest.mark.parametrize("coding", DEFLATED)
def test_compressed_requests(http: Http, client: Client, simple: str, coding: str) -> None:  # case 8
    item = {"p": s(), "v": {"S": "x" * 10_000}}
    body = DEFLATED[coding](json.dumps({"TableName": simple, "Item": item}).encode())
    assert http.send("PutItem", body, Content_Encoding=coding).status == 200
    assert client.get_item(TableName=simple, Key={"p": item["p"]}, ConsistentRead=True)["Item"] == item


@pytest.mark.parametrize("coding", DEFLATED)
def test_compressed_requests_that_inflate_beyond_the_limit(http: Http, coding: str) -> None:  # case 8
    body = DEFLATED[coding](b'{"TableName": "' + b"x" * (20 << 20) + b'"}')
    answer = http.send("DescribeTable", body, Content_Encoding=coding)
    assert answer.status in (400, 413)


@pytest.mark.parametrize("coding", DEFLATED)
@pytest.mark.parametrize("damage", [lambda body: body[:-8], lambda body: b"no" + body, lambda _: b"{}"])
def test_compressed_requests_that_are_broken(http: Http, coding: str, damage: Any) -> None:  # case 8
    answer = http.send("ListTables", damage(DEFLATED[coding](b'{"Limit": 1}')), Content_Encoding=coding)
    assert answer.status == 500
    assert answer.json["__type"].endswith("InternalServerError")


# --- cases 9, 17: headers of answers ---


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("ListTables", b"{}"),
        ("ListTables", b"{"),
        ("ListTables", b'{"Limit": 0}'),
        ("DescribeTable", b'{"TableName": "missing-table"}'),
        ("NoSuchThing", b"{}"),
    ],
)
def test_headers_of_answers(http: Http, operation: str, body: bytes) -> None:  # cases 9, 17
    answer = http.send(operation, body)
    assert answer.headers["content-type"] == "application/x-amz-json-1.0"
    assert answer.headers["x-amzn-requestid"]
    answer.check_crc()


# --- cases 10, 12: what is no request ---


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b'{"TableName": "a', b'{"TableName" "abc"}', b"{'TableName': 1}", b"\xff", b"nonsense", b'{"a":}'],
)
def test_bodies_that_are_no_json(http: Http, body: bytes) -> None:  # case 10
    answer = http.send("DescribeTable", body)
    assert (answer.status, answer.error) == (400, SERIALIZATION)


@pytest.mark.parametrize("body", [b"[]", b"1", b'"text"', b"null", b"true", b'[{"TableName": "abc"}]'])
def test_bodies_that_are_no_object(http: Http, body: bytes) -> None:  # case 10
    answer = http.send("DescribeTable", body)
    assert (answer.status, answer.error) == (400, SERIALIZATION)


@pytest.mark.parametrize(
    "target", ["DynamoDB_20120810.NoSuchThing", "DynamoDB_20120810.", "Other_20120810.PutItem", "PutItem", ""]
)
def test_operations_that_do_not_exist(http: Http, target: str) -> None:  # case 12
    answer = http.send("ListTables", b"{}", X_Amz_Target=target)
    assert (answer.status, answer.error) == (400, "UnknownOperationException")


# --- cases 13, 14: values that are not what their type says ---

BAD_VALUES = {
    13: [
        {"B": "YWJ"},
        {"B": "@@@@"},
        {"B": "YW\u00ffJj"},
        {"B": "YWJj="},
        {"BS": ["YWJj", "YWJ"]},
        {"L": [{"B": "YWJ"}]},
        {"M": {"m": {"B": "@"}}},
    ],
    14: [
        {"N": 123},
        {"N": 1.5},
        {"N": True},
        {"NS": [1, 2]},
        {"S": 1},
        {"B": 1},
        {"BOOL": "true"},
        {"BOOL": 1},
        {"SS": "a"},
        {"L": {}},
        {"M": []},
        {"L": [{"N": 1}]},
    ],
}
BAD = [(case, value) for case, values in BAD_VALUES.items() for value in values]


@pytest.mark.parametrize(("case", "value"), BAD)
@pytest.mark.parametrize("place", ["item", "update", "filter", "condition", "key", "start"])
def test_values_that_are_not_of_their_type(http: Http, simple: str, case: int, value: Any, place: str) -> None:
    stored = s()
    values = {"ExpressionAttributeValues": {":v": value}}
    places: dict[str, tuple[str, dict[str, Any]]] = {
        "item": ("PutItem", {"Item": {"p": stored, "v": value}}),
        "update": ("UpdateItem", {"Key": {"p": stored}, "UpdateExpression": "SET v = :v", **values}),
        "filter": ("Scan", {"FilterExpression": "v = :v", **values}),
        "condition": ("DeleteItem", {"Key": {"p": stored}, "ConditionExpression": "v = :v", **values}),
        "key": ("GetItem", {"Key": {"p": value}}),
        "start": ("Scan", {"ExclusiveStartKey": {"p": value}}),
    }
    operation, members = places[place]
    answer = http.send(operation, {"TableName": simple, **members})
    assert answer.status == 400
    assert answer.error in (SERIALIZATION, VALIDATION)
    if case == 14:
        assert answer.error == SERIALIZATION
    assert http.send("GetItem", {"TableName": simple, "Key": {"p": stored}}).body == b"{}"


def test_raw_bytes_in_base64(http: Http, simple: str) -> None:  # case 13: byte 0xFF, which is not even UTF-8
    body = b'{"TableName": "%b", "Item": {"p": {"S": "x"}, "v": {"B": "YW\xffJj"}}}' % simple.encode()
    answer = http.send("PutItem", body)
    assert (answer.status, answer.error) == (400, SERIALIZATION)


def test_binary_values_come_back_as_they_went(client: Client, simple: str) -> None:  # case 13, the other half
    item = {"p": s(), "v": {"B": bytes(range(256))}, "w": {"BS": [b"", b"\xff\xfe"]}, "z": {"B": b""}}
    client.put_item(TableName=simple, Item=item)
    found = client.get_item(TableName=simple, Key={"p": item["p"]})["Item"]
    assert {**found, "w": sorted(found["w"]["BS"])} == {**item, "w": [b"", b"\xff\xfe"]}


# --- case 16 and the rest of HTTP ---


def test_health(http: Http) -> None:  # case 16
    answer = http.request("GET", "/", None, {})
    assert answer.status == 200
    assert answer.body.startswith(b"healthy: ")


def test_one_connection_serves_many_requests(http: Http) -> None:
    connection = http.connection()
    for _ in range(3):
        connection.request("POST", "/", b"{}", {"X-Amz-Target": "DynamoDB_20120810.ListTables", "Authorization": "any"})
        response = connection.getresponse()
        assert (response.status, json.loads(response.read()).keys()) == (200, {"TableNames"})
    connection.close()


def test_a_failed_condition_is_no_success_to_an_sdk(client: Client, simple: str) -> None:
    item = {"p": s(random_name()), "v": n(1)}
    client.put_item(TableName=simple, Item=item)
    with refused("ConditionalCheckFailedException", "The conditional request failed"):
        client.put_item(TableName=simple, Item=item, ConditionExpression="attribute_not_exists(p)")


def test_unpadded_base64_in_a_batch_stores_nothing(http: Http, simple: str) -> None:  # case 13
    good, bad = {"p": s(), "v": {"B": b64encode(b"abc").decode()}}, {"p": s(), "v": {"B": "YWJ"}}
    puts = [{"PutRequest": {"Item": item}} for item in (good, bad)]
    answer = http.send("BatchWriteItem", {"RequestItems": {simple: puts}})
    assert answer.status == 400
    for item in (good, bad):
        assert http.send("GetItem", {"TableName": simple, "Key": {"p": item["p"]}}).body == b"{}"
