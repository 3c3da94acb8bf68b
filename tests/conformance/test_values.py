"""What values, names and keys may be, wherever they stand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.support import VALIDATION, Client, Http, Item, n, refused, s

# --- case 68: names ---

NAME_MAX = 65_535
KEY_NAME_MAX = 255


def send_name(client: Client, table: str, place: str, name: str) -> None:
    """A request with an attribute of this name in a place of this kind."""
    named: dict[str, Any] = {"ExpressionAttributeNames": {"#n": name}}
    match place:
        case "item":
            client.put_item(TableName=table, Item={"p": s(), name: n(1)})
        case "nested":
            client.put_item(TableName=table, Item={"p": s(), "m": {"M": {name: n(1)}}})
        case "batch":
            put = {"PutRequest": {"Item": {"p": s(), name: n(1)}}}
            client.batch_write_item(RequestItems={table: [put]})
        case "update":
            values = {":v": n(1)}
            client.update_item(
                TableName=table,
                Key={"p": s()},
                UpdateExpression="SET #n = :v",
                ExpressionAttributeValues=values,
                **named,
            )
        case "legacy update":
            client.update_item(TableName=table, Key={"p": s()}, AttributeUpdates={name: {"Value": n(1)}})
        case "condition":
            client.put_item(TableName=table, Item={"p": s()}, ConditionExpression="attribute_not_exists(#n)", **named)
        case "projection":
            client.get_item(TableName=table, Key={"p": s()}, ProjectionExpression="#n", **named)
        case "filter":
            client.scan(TableName=table, FilterExpression="attribute_exists(#n)", Limit=1, **named)
        case "expected":
            client.put_item(TableName=table, Item={"p": s()}, Expected={name: {"Exists": False}})
        case "attributes to get":
            client.get_item(TableName=table, Key={"p": s()}, AttributesToGet=[name])
        case "scan filter":
            client.scan(TableName=table, ScanFilter={name: {"ComparisonOperator": "NOT_NULL"}}, Limit=1)


PLACES = (
    "item",
    "nested",
    "batch",
    "update",
    "legacy update",
    "condition",
    "projection",
    "filter",
    "expected",
    "attributes to get",
    "scan filter",
)


@pytest.mark.parametrize("place", PLACES)
def test_names_of_65535_bytes(client: Client, simple: str, place: str) -> None:  # case 68
    send_name(client, simple, place, "n" * NAME_MAX)
    send_name(client, simple, place, "é" * (NAME_MAX // 2))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ["n" * (NAME_MAX + 1), "é" * (NAME_MAX // 2 + 1)], ids=["characters", "bytes"])
def test_names_of_65536_bytes(client: Client, simple: str, place: str, name: str) -> None:  # case 68
    with refused(VALIDATION):
        send_name(client, simple, place, name)


@pytest.mark.parametrize("place", PLACES)
def test_empty_names(client: Client, simple: str, place: str) -> None:  # case 68
    with refused(VALIDATION):
        send_name(client, simple, place, "")


# --- case 69: sizes of keys ---

P_MAX, C_MAX = 2048, 1024


def reads_and_writes(client: Client, table: str, key: Item) -> None:
    """Every operation on one key."""
    item = {**key, "v": n(1)}
    client.put_item(TableName=table, Item=item)
    client.update_item(TableName=table, Key=key, AttributeUpdates={"w": {"Value": n(2)}})
    assert client.get_item(TableName=table, Key=key, ConsistentRead=True)["Item"] == {**item, "w": n(2)}
    client.batch_get_item(RequestItems={table: {"Keys": [key]}})
    condition = "p = :p AND c = :c"
    values = {":p": key["p"], ":c": key["c"]}
    asked = {"KeyConditionExpression": condition, "ExpressionAttributeValues": values, "ConsistentRead": True}
    assert client.query(TableName=table, **asked)["Count"] == 1
    client.batch_write_item(RequestItems={table: [{"PutRequest": {"Item": item}}]})
    client.delete_item(TableName=table, Key=key)


def operations(client: Client, table: str, key: Item) -> dict[str, Any]:
    """Calls of every operation on one key, by name."""
    put, delete = {"PutRequest": {"Item": key}}, {"DeleteRequest": {"Key": key}}
    values = {":p": key["p"], ":c": key["c"]}
    return {
        "put": lambda: client.put_item(TableName=table, Item=key),
        "get": lambda: client.get_item(TableName=table, Key=key),
        "update": lambda: client.update_item(TableName=table, Key=key),
        "delete": lambda: client.delete_item(TableName=table, Key=key),
        "batch get": lambda: client.batch_get_item(RequestItems={table: {"Keys": [key]}}),
        "batch put": lambda: client.batch_write_item(RequestItems={table: [put]}),
        "batch delete": lambda: client.batch_write_item(RequestItems={table: [delete]}),
        "query": lambda: client.query(
            TableName=table, KeyConditionExpression="p = :p AND c = :c", ExpressionAttributeValues=values
        ),
    }


OPERATIONS = ("put", "get", "update", "delete", "batch get", "batch put", "batch delete", "query")


@pytest.mark.parametrize("p", ["p" * P_MAX, "é" * (P_MAX // 2)])
@pytest.mark.parametrize("c", ["c" * C_MAX, "é" * (C_MAX // 2)])
def test_the_largest_string_keys(client: Client, strings: str, p: str, c: str) -> None:  # case 69
    reads_and_writes(client, strings, {"p": s(p), "c": s(c)})


def test_the_largest_binary_keys(client: Client, binaries: str) -> None:  # case 69
    reads_and_writes(client, binaries, {"p": {"B": b"\xff" * P_MAX}, "c": {"B": b"\x00" * C_MAX}})


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    ("p", "c", "text"),
    [
        ("p" * (P_MAX + 1), "c", "hashkey has exceeded the maximum size limit of2048 bytes"),
        ("é" * (P_MAX // 2) + "x", "c", "hashkey has exceeded the maximum size limit of2048 bytes"),
        ("p", "c" * (C_MAX + 1), "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"),
    ],
)
def test_larger_string_keys(client: Client, strings: str, operation: str, p: str, c: str, text: str) -> None:  # case 69
    with refused(VALIDATION, text):
        operations(client, strings, {"p": s(p), "c": s(c)})[operation]()


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(("p", "c"), [(b"p" * (P_MAX + 1), b"c"), (b"p", b"c" * (C_MAX + 1))])
def test_larger_binary_keys(client: Client, binaries: str, operation: str, p: bytes, c: bytes) -> None:  # case 69
    with refused(VALIDATION, "exceeded the"):
        operations(client, binaries, {"p": {"B": p}, "c": {"B": c}})[operation]()


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("empty", ["p", "c"])
def test_empty_keys(client: Client, strings: str, binaries: str, operation: str, empty: str) -> None:
    text = "cannot contain an empty"
    if operation == "query":
        text = "One or more parameter values"
    with refused(VALIDATION, text):
        operations(client, strings, {"p": s(), "c": s(), empty: s("")})[operation]()
    with refused(VALIDATION, text):
        operations(client, binaries, {"p": {"B": b"x"}, "c": {"B": b"x"}, empty: {"B": b""}})[operation]()


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    "wrong", [n(1), {"B": b"x"}, {"BOOL": True}, {"L": []}, {"M": {}}, {"SS": ["x"]}, {"NULL": True}]
)
def test_keys_of_another_type(client: Client, strings: str, operation: str, wrong: Item) -> None:
    for name in ("p", "c"):
        with refused(VALIDATION):
            operations(client, strings, {"p": s(), "c": s(), name: wrong})[operation]()


# --- case 70: numbers ---

GOOD_NUMBERS = [
    ("0", "0"),
    ("-0", "0"),
    ("+5", "5"),
    ("5.", "5"),
    (".5", "0.5"),
    ("00012.500", "12.5"),
    ("1e2", "100"),
    ("1E+2", "100"),
    ("-1.5e-3", "-0.0015"),
    ("9" * 38, "9" * 38),
    ("0." + "1" * 38, "0." + "1" * 38),
    ("1" + "0" * 100, None),
    ("1E-130", None),
    ("-1E-130", None),
    ("9.9999999999999999999999999999999999999E+125", None),
    ("0.0e126", "0"),
]
BAD_NUMBERS = [
    "9" * 39,
    "1." + "1" * 38,
    "1E-131",
    "1E126",
    "-1E126",
    "9.99999999999999999999999999999999999999E+125",
    " 5",
    "5 ",
    "1+2",
    "NaN",
    "Infinity",
    "-Infinity",
    "",
    "abc",
    "0x10",
    "1_000",
    "1,5",
    "--1",
    "1e",
    "e5",
    ".",
    "٣",
    "1e1.5",
]


def numbered(client: Client, table: str, place: str, number: str) -> Item:
    """The number as it is stored in a place of this kind."""
    key = {"p": s()}
    match place:
        case "item":
            client.put_item(TableName=table, Item={**key, "v": {"N": number}})
        case "set":
            client.put_item(TableName=table, Item={**key, "v": {"NS": [number]}})
        case "nested":
            client.put_item(TableName=table, Item={**key, "v": {"M": {"m": {"L": [{"N": number}]}}}})
        case "update":
            values = {":v": {"N": number}}
            client.update_item(
                TableName=table, Key=key, UpdateExpression="SET v = :v", ExpressionAttributeValues=values
            )
        case "legacy update":
            client.update_item(TableName=table, Key=key, AttributeUpdates={"v": {"Value": {"N": number}}})
        case "batch":
            client.batch_write_item(RequestItems={table: [{"PutRequest": {"Item": {**key, "v": {"N": number}}}}]})
    value: Item = client.get_item(TableName=table, Key=key, ConsistentRead=True)["Item"]["v"]
    if place == "nested":
        value = value["M"]["m"]["L"][0]
    return {"N": value["NS"][0]} if place == "set" else value


NUMBER_PLACES = ["item", "set", "nested", "update", "legacy update", "batch"]


@pytest.mark.parametrize("place", NUMBER_PLACES)
@pytest.mark.parametrize(("number", "stored"), GOOD_NUMBERS)
def test_numbers_that_are_stored(client: Client, simple: str, place: str, number: str, stored: str | None) -> None:
    """Case 70."""
    value = numbered(client, simple, place, number)
    if stored is not None:
        assert value == {"N": stored}
    else:
        assert float(value["N"]) == float(number)


@pytest.mark.parametrize("place", NUMBER_PLACES)
@pytest.mark.parametrize("number", BAD_NUMBERS)
def test_numbers_that_are_refused(client: Client, simple: str, place: str, number: str) -> None:  # case 70
    with refused(VALIDATION):
        numbered(client, simple, place, number)


@pytest.mark.parametrize("number", BAD_NUMBERS)
def test_numbers_that_are_refused_as_keys(client: Client, numbers: str, number: str) -> None:  # case 70
    for operation, call in operations(client, numbers, {"p": s(), "c": {"N": number}}).items():
        with refused(VALIDATION):
            assert call() is None, operation


@pytest.mark.parametrize(
    ("first", "operator", "second"),
    [
        ("1e50", "+", "1"),
        ("1e50", "-", "1"),
        ("9e125", "+", "9e125"),
        ("-9e125", "-", "9e125"),
        ("1e-130", "+", "1"),
        ("9" * 38, "+", "0.1"),
    ],
)
def test_arithmetic_that_would_lose_digits(client: Client, simple: str, first: str, operator: str, second: str) -> None:
    """Case 70."""
    key = {"p": s()}
    client.put_item(TableName=simple, Item={**key, "v": {"N": first}})
    values = {":n": {"N": second}}
    call = {"TableName": simple, "Key": key, "ExpressionAttributeValues": values}
    with refused(VALIDATION):
        client.update_item(**call, UpdateExpression=f"SET v = v {operator} :n")
    if operator == "+":
        with refused(VALIDATION):
            client.update_item(**call, UpdateExpression="ADD v :n")


def test_exact_arithmetic(client: Client, simple: str) -> None:  # case 70
    key = {"p": s()}
    client.put_item(TableName=simple, Item={**key, "v": {"N": "1" + "0" * 37}})
    values = {":n": n(1)}
    client.update_item(TableName=simple, Key=key, UpdateExpression="SET v = v - :n", ExpressionAttributeValues=values)
    assert client.get_item(TableName=simple, Key=key, ConsistentRead=True)["Item"]["v"] == {"N": "9" * 37}


def test_numbers_are_keys_by_value(client: Client, numbers: str) -> None:  # cases 70, 72
    p = s()
    for written in ("1000", "1e3", "+1000.0"):
        client.put_item(TableName=numbers, Item={"p": p, "c": {"N": written}, "v": s(written)})
    values = {":p": p}
    answer = client.query(TableName=numbers, KeyConditionExpression="p = :p", ExpressionAttributeValues=values)
    assert answer["Items"] == [{"p": p, "c": n(1000), "v": s("+1000.0")}]


# --- cases 73, 77, 78: NULL and sets ---


def values_everywhere(client: Client, http: Http, table: str, value: Any) -> dict[str, Any]:
    """The answers to requests with this value in every place."""
    values = {"ExpressionAttributeValues": {":v": value}}
    key = {"p": s()}
    put = {"PutRequest": {"Item": {**key, "v": value}}}
    requests: dict[str, tuple[str, dict[str, Any]]] = {
        "item": ("PutItem", {"Item": {**key, "v": value}}),
        "list": ("PutItem", {"Item": {**key, "v": {"L": [value]}}}),
        "map": ("PutItem", {"Item": {**key, "v": {"M": {"m": value}}}}),
        "update": ("UpdateItem", {"Key": key, "UpdateExpression": "SET v = :v", **values}),
        "legacy update": ("UpdateItem", {"Key": key, "AttributeUpdates": {"v": {"Value": value}}}),
        "condition": ("DeleteItem", {"Key": key, "ConditionExpression": "v <> :v", **values}),
        "expected": ("DeleteItem", {"Key": key, "Expected": {"v": {"Value": value}}}),
        "filter": ("Scan", {"FilterExpression": "v = :v", "Limit": 1, **values}),
    }
    answers = {place: http.send(name, {"TableName": table, **body}) for place, (name, body) in requests.items()}
    answers["batch"] = http.send("BatchWriteItem", {"RequestItems": {table: [put]}})
    assert "Item" not in client.get_item(TableName=table, Key=key, ConsistentRead=True)
    return answers


@pytest.mark.parametrize(
    ("case", "value", "text"),
    [
        (73, {"NULL": False}, "Null attribute value types must have the value of true"),
        (77, {"SS": []}, "An string set  may not be empty"),
        (77, {"NS": []}, "An number set  may not be empty"),
        (77, {"BS": []}, "Binary sets should not be empty"),
        (78, {"SS": ["a", "a"]}, "Input collection [a, a] contains duplicates."),
        (78, {"NS": ["1", "1.0"]}, "Input collection contains duplicates"),
        (78, {"BS": ["YQ==", "YQ=="]}, "contains duplicates."),
        (77, {}, "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"),
        (77, {"S": "a", "N": "1"}, "Supplied AttributeValue has more than one datatypes set"),
    ],
)
def test_values_that_are_refused(client: Client, http: Http, simple: str, case: int, value: Any, text: str) -> None:
    for place, answer in values_everywhere(client, http, simple, value).items():
        assert (answer.status, answer.error) == (400, VALIDATION), (case, place)
        assert text in answer.message, place


def test_the_envelope_of_put_and_update(http: Http, simple: str) -> None:  # case 77
    envelope = "1 validation error detected: One or more parameter values were invalid: "
    item = {"p": s(), "v": {"SS": []}}
    assert http.send("PutItem", {"TableName": simple, "Item": item}).message.startswith(envelope)
    wrong_key = http.send("PutItem", {"TableName": simple, "Item": {"p": n(1)}})
    text = "One or more parameter values were invalid: Type mismatch for key p expected: S actual: N"
    assert wrong_key.message == text


@pytest.mark.parametrize(
    "value", [{"S": ""}, {"B": b""}, {"SS": [""]}, {"L": []}, {"M": {}}, {"M": {"m": {"S": ""}}}, {"NULL": True}]
)
def test_empty_values_that_are_stored(client: Client, simple: str, value: Item) -> None:
    item = {"p": s(), "v": value}
    client.put_item(TableName=simple, Item=item)
    assert client.get_item(TableName=simple, Key={"p": item["p"]}, ConsistentRead=True)["Item"] == item


def nested(levels: int) -> Item:
    """A value of this depth; a scalar has 0."""
    value: Item = n(1)
    for level in range(levels):
        value = {"L": [value]} if level % 2 else {"M": {"m": value}}
    return value


def test_32_levels(client: Client, simple: str) -> None:
    values = {":v": nested(31)}
    client.put_item(TableName=simple, Item={"p": s(), "v": nested(31)})
    client.scan(TableName=simple, FilterExpression="v = :v", Limit=1, ExpressionAttributeValues=values)
    with refused(VALIDATION, "Nesting Levels have exceeded supported limits"):
        client.put_item(TableName=simple, Item={"p": s(), "v": nested(33)})
    with refused(VALIDATION, "Nesting Levels have exceeded supported limits"):
        values = {":v": nested(33)}
        client.scan(TableName=simple, FilterExpression="v = :v", Limit=1, ExpressionAttributeValues=values)


# --- case 76: the order of checks ---


def test_a_wrong_table_name_stands_alone(client: Client) -> None:  # case 76
    with refused(VALIDATION, "1 validation error detected: Value '' at 'tableName' failed to satisfy constraint"):
        client.put_item(TableName="", Item={"p": s()}, ReturnValues="BAD")


def test_wrong_enums_are_gathered(client: Client, simple: str) -> None:  # case 76
    bad = {"ReturnValues": "BAD", "ReturnConsumedCapacity": "BAD", "ReturnItemCollectionMetrics": "BAD"}
    places = ("at 'returnValues'", "at 'returnConsumedCapacity'", "at 'returnItemCollectionMetrics'")
    with refused(VALIDATION, "3 validation errors detected: ", *places):
        client.put_item(TableName=simple, Item={"p": s()}, **bad)


def test_an_update_names_only_the_first_wrong_enum(client: Client, simple: str) -> None:  # case 76
    bad = {"ReturnValues": "BAD", "ReturnConsumedCapacity": "BAD", "ReturnItemCollectionMetrics": "BAD"}
    with refused(VALIDATION, "1 validation error detected: Value 'BAD' at 'returnValues' failed to satisfy constraint"):
        client.update_item(TableName=simple, Key={"p": s()}, **bad)


def test_the_size_of_an_item(client: Client, simple: str) -> None:
    p = "k" * 10
    item = {"p": s(p), "v": s("x" * (409_600 - len("pv") - len(p)))}
    client.put_item(TableName=simple, Item=item)
    with refused(VALIDATION, "Item size has exceeded the maximum allowed size"):
        client.put_item(TableName=simple, Item={**item, "v": s(item["v"]["S"] + "x")})
