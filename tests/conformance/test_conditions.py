"""Conditions: what is true of what, by value. Each is judged as ConditionExpression, FilterExpression and Expected."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.support import VALIDATION, Client, Item, n, refused, s


def holds(
    client: Client, table: str, item: Item | None, condition: str, values: Item, names: Item | None = None
) -> bool:
    """Whether a condition holds, of the item or of a missing one, by a conditional delete of nothing else."""
    stored = {"p": s(), **(item or {})}
    if item is not None:
        client.put_item(TableName=table, Item=stored)
    members: dict[str, Any] = {"ExpressionAttributeValues": values} if values else {}
    if names:
        members["ExpressionAttributeNames"] = names
    try:
        client.delete_item(TableName=table, Key={"p": stored["p"]}, ConditionExpression=condition, **members)
    except client.exceptions.ConditionalCheckFailedException:
        return False
    return True


def found(client: Client, table: str, item: Item, condition: str, values: Item) -> bool:
    """Whether a Query's filter lets the item through."""
    stored = {"p": s(), **item}
    client.put_item(TableName=table, Item=stored)
    answer = client.query(
        TableName=table,
        KeyConditionExpression="p = :p",
        FilterExpression=condition,
        ExpressionAttributeValues={":p": stored["p"], **values},
        ConsistentRead=True,
    )
    assert answer["ScannedCount"] == 1
    return bool(answer["Count"])


# --- cases 48, 49: attributes that are missing ---


@pytest.mark.parametrize("item", [None, {}], ids=["no item", "no attribute"])
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a <> :v", True),
        ("NOT a = :v", True),
        ("attribute_not_exists(a)", True),
        ("a = :v", False),
        ("a < :v", False),
        ("a <= :v", False),
        ("a > :v", False),
        ("a >= :v", False),
        ("a BETWEEN :v AND :v", False),
        ("a IN (:v)", False),
        ("contains(a, :v)", False),
        ("begins_with(a, :v)", False),
        ("attribute_exists(a)", False),
        ("size(a) < :v", False),
        ("a.b[3].c <> :v", True),
        ("a.b[3].c = :v", False),
    ],
)
def test_missing_attributes(client: Client, simple: str, item: Any, condition: str, expected: bool) -> None:  # case 48
    values = {":v": s("x")} if ":v" in condition else {}
    assert holds(client, simple, item, condition, values) is expected


@pytest.mark.parametrize("operator", ["=", "<", "<=", ">", ">="])
def test_two_missing_attributes_are_not_equal(client: Client, simple: str, operator: str) -> None:  # case 49
    assert not holds(client, simple, {}, f"a {operator} b", {})


# --- case 50: equality by value ---

BIG = "1234567890123456789012345678901234567"
EQUAL: list[tuple[Item, Item]] = [
    ({"SS": ["a", "b", "c"]}, {"SS": ["c", "a", "b"]}),
    ({"NS": ["1", "2", "3"]}, {"NS": ["3.0", "1", "2e0"]}),
    ({"BS": [b"a", b"b"]}, {"BS": [b"b", b"a"]}),
    ({"M": {"x": {"N": "1"}, "y": {"S": "s"}}}, {"M": {"y": {"S": "s"}, "x": {"N": "1.00"}}}),
    ({"M": {"x": {"SS": ["a", "b"]}}}, {"M": {"x": {"SS": ["b", "a"]}}}),
    ({"L": [{"M": {"x": {"NS": ["1", "20"]}}}]}, {"L": [{"M": {"x": {"NS": ["2e1", "1"]}}}]}),
    ({"N": "100"}, {"N": "1e2"}),
    ({"N": "-0"}, {"N": "0"}),
    ({"N": f"{BIG}1"}, {"N": f"{BIG}1.0"}),
    ({"BOOL": True}, {"BOOL": True}),
    ({"NULL": True}, {"NULL": True}),
    ({"L": []}, {"L": []}),
    ({"M": {}}, {"M": {}}),
]
UNEQUAL: list[tuple[Item, Item]] = [
    ({"NS": [f"{BIG}1", "1"]}, {"NS": [f"{BIG}2", "1"]}),
    ({"N": f"{BIG}1"}, {"N": f"{BIG}2"}),
    ({"L": [{"N": "1"}, {"N": "2"}]}, {"L": [{"N": "2"}, {"N": "1"}]}),
    ({"SS": ["a"]}, {"SS": ["a", "b"]}),
    ({"SS": ["1"]}, {"NS": ["1"]}),
    ({"S": "1"}, {"N": "1"}),
    ({"S": "a"}, {"B": b"a"}),
    ({"SS": ["a"]}, {"L": [{"S": "a"}]}),
    ({"M": {"x": {"SS": ["a"]}}}, {"M": {"x": {"SS": ["b"]}}}),
    ({"BOOL": True}, {"BOOL": False}),
    ({"M": {"x": {"NULL": True}}}, {"M": {}}),
]
PAIRS = [(*pair, True) for pair in EQUAL] + [(*pair, False) for pair in UNEQUAL]


@pytest.mark.parametrize(("stored", "asked", "equal"), PAIRS)
@pytest.mark.parametrize("judge", [holds, found])
def test_equality_by_value(client: Client, simple: str, judge: Any, stored: Any, asked: Any, equal: bool) -> None:
    """Case 50."""
    for condition, expected in (("a = :v", equal), ("a <> :v", not equal), ("a IN (:v)", equal)):
        assert judge(client, simple, {"a": stored}, condition, {":v": asked}) is expected


@pytest.mark.parametrize(("stored", "asked", "equal"), PAIRS)
def test_equality_of_two_attributes(client: Client, simple: str, stored: Any, asked: Any, equal: bool) -> None:
    """Case 50."""
    assert holds(client, simple, {"a": stored, "b": asked}, "a = b", {}) is equal


@pytest.mark.parametrize(("stored", "asked", "equal"), PAIRS)
def test_equality_in_expected(client: Client, simple: str, stored: Any, asked: Any, equal: bool) -> None:  # case 50
    item = {"p": s(), "a": stored}
    client.put_item(TableName=simple, Item=item)
    call: dict[str, Any] = {"TableName": simple, "Key": {"p": item["p"]}}
    if equal:
        client.delete_item(**call, Expected={"a": {"Value": asked}})
    else:
        with refused("ConditionalCheckFailedException"):
            client.delete_item(**call, Expected={"a": {"Value": asked}})


@pytest.mark.parametrize(
    ("container", "element", "expected"),
    [
        ({"NS": [f"{BIG}1"]}, {"N": f"{BIG}1"}, True),
        ({"NS": [f"{BIG}1"]}, {"N": f"{BIG}2"}, False),
        ({"L": [{"SS": ["a", "b"]}]}, {"SS": ["b", "a"]}, True),
        ({"L": [{"N": "1"}]}, {"N": "1.0"}, True),
        ({"SS": ["ab"]}, {"S": "a"}, False),
        ({"S": "abc"}, {"S": "bc"}, True),
        ({"B": b"abc"}, {"B": b"bc"}, True),
        ({"M": {"x": {"S": "x"}}}, {"S": "x"}, False),
    ],
)
def test_contains_by_value(client: Client, simple: str, container: Item, element: Item, expected: bool) -> None:
    assert holds(client, simple, {"a": container}, "contains(a, :v)", {":v": element}) is expected


# --- case 52: what has no order ---

UNORDERED: list[Item] = [
    {"L": [{"N": "1"}]},
    {"M": {"x": {"N": "1"}}},
    {"SS": ["a"]},
    {"NS": ["1"]},
    {"BS": [b"a"]},
    {"BOOL": True},
    {"NULL": True},
]


@pytest.mark.parametrize("stored", UNORDERED)
@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
def test_items_without_an_order_are_passed_over(client: Client, simple: str, stored: Item, operator: str) -> None:
    """Case 52: whatever is asked, a list is neither above nor below it."""
    for asked in ({"S": "a"}, {"N": "1"}, {"B": b"a"}):
        assert not found(client, simple, {"a": stored}, f"a {operator} :v", {":v": asked})


@pytest.mark.parametrize("asked", UNORDERED)
@pytest.mark.parametrize("condition", ["a < :v", "a <= :v", "a > :v", "a >= :v", "a BETWEEN :v AND :v"])
def test_asking_for_an_order_that_does_not_exist(client: Client, simple: str, asked: Item, condition: str) -> None:
    """Case 52: in the request it is an error, though no item is read."""
    values = {":p": s(), ":v": asked}
    with refused(VALIDATION, "Incorrect operand type for operator or function"):
        client.query(
            TableName=simple,
            KeyConditionExpression="p = :p",
            FilterExpression=condition,
            ExpressionAttributeValues=values,
        )


def test_values_of_other_types_are_not_compared(client: Client, simple: str) -> None:
    for stored, asked in (("S", "N"), ("N", "S"), ("B", "S")):
        item, value = {"a": {stored: "1" if stored != "B" else b"1"}}, {":v": {asked: "1"}}
        for operator in ("<", "<=", ">", ">="):
            assert not holds(client, simple, item, f"a {operator} :v", value)
        assert holds(client, simple, item, "a <> :v", value)


# --- case 53: placeholders count as used where they stand ---


@pytest.mark.parametrize("condition", ["a = :x OR b = :y", "NOT (a <> :x AND b = :y)", "a = :x OR (#n = :y)"])
def test_an_arm_that_is_not_needed_uses_its_placeholders(
    client: Client, simple: str, condition: str
) -> None:  # case 53
    names = {"#n": "b"} if "#n" in condition else None
    assert holds(client, simple, {"a": n(1)}, condition, {":x": n(1), ":y": n(2)}, names)


@pytest.mark.parametrize("unused", ["value", "name"])
def test_placeholders_that_are_not_used(client: Client, simple: str, unused: str) -> None:  # case 53
    values = {":x": n(1), **({":unused": n(2)} if unused == "value" else {})}
    names = {"#a": "a", **({"#unused": "b"} if unused == "name" else {})}
    parameter = "ExpressionAttributeValues" if unused == "value" else "ExpressionAttributeNames"
    with refused(VALIDATION, f"Value provided in {parameter} unused in expressions: keys: {{"):
        client.put_item(
            TableName=simple,
            Item={"p": s()},
            ConditionExpression="#a = :x",
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=values,
        )


@pytest.mark.parametrize(("condition", "text"), [("a = :no", ":no"), ("#no = :x", "#no")])
def test_placeholders_that_are_not_defined(client: Client, simple: str, condition: str, text: str) -> None:
    with refused(VALIDATION, text, "not defined"):
        client.put_item(
            TableName=simple,
            Item={"p": s()},
            ConditionExpression=condition,
            ExpressionAttributeNames={"#a": "a"},
            ExpressionAttributeValues={":x": n(1)},
        )


# --- case 54: expressions are checked before anything is read ---

INVALID_FILTERS = [
    ("a = ", {}),
    ("a = :v AND", {":v": n(1)}),
    ("a = :missing", {}),
    ("nosuchfunction(a)", {}),
    ("size(a)", {}),
    ("a BETWEEN :v AND :w", {":v": n(2), ":w": n(1)}),
    ("begins_with(a, :v)", {":v": n(1)}),
    ("attribute_type(a, :v)", {":v": s("X")}),
    ("attribute_type(a, :v)", {":v": n(1)}),
    ("name = :v", {":v": s()}),
    ("p = :v", {":v": s()}),
]


@pytest.mark.parametrize(("condition", "values"), INVALID_FILTERS)
@pytest.mark.parametrize("operation", ["query", "scan"])
def test_a_filter_that_is_wrong_and_meets_nothing(
    client: Client, simple: str, operation: str, condition: str, values: Item
) -> None:  # case 54
    if operation == "scan" and condition == "p = :v":
        pytest.skip("a Scan's filter may name keys")
    call = {"TableName": simple, "FilterExpression": condition, "ExpressionAttributeValues": {**values}}
    if operation == "query":
        call |= {"KeyConditionExpression": "p = :p", "ExpressionAttributeValues": {**values, ":p": s()}}
    if not call["ExpressionAttributeValues"]:
        del call["ExpressionAttributeValues"]
    with refused(VALIDATION):
        getattr(client, operation)(**call)


# --- cases 56, 57: what is refused though it could be understood ---

KINDS = ("condition", "filter", "scan", "key condition")


def send_expression(client: Client, table: str, kind: str, expression: str, values: Item) -> None:
    """Send an expression over attributes a and b (p and c for key conditions) in a request of this kind."""
    key_values = {":p": s()} if kind == "filter" else {}
    call: dict[str, Any] = {"TableName": table, "ExpressionAttributeValues": {**values, **key_values}}
    match kind:
        case "condition":
            client.put_item(**call, Item={"p": s(), "c": s()}, ConditionExpression=expression)
        case "filter":
            client.query(**call, KeyConditionExpression="p = :p", FilterExpression=expression)
        case "scan":
            client.scan(**call, FilterExpression=expression, Limit=1)
        case "key condition":
            client.query(**call, KeyConditionExpression=expression)


def parenthesised(kind: str, shape: str) -> str:
    """An expression of this shape over attributes that this kind may name."""
    first, second = ("p = :b", "c = :d") if kind == "key condition" else ("a <> :b", "b <> :d")
    return shape.format(first, second)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", ["({0})", "({0}) AND ({1})", "({0} AND {1})", "(({0}) AND ({1}))", "({0}) AND {1}"])
def test_parentheses_that_are_accepted(client: Client, strings: str, kind: str, shape: str) -> None:  # cases 56, 81
    values = {":b": s(), **({":d": s()} if "{1}" in shape else {})}
    send_expression(client, strings, kind, parenthesised(kind, shape), values)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", ["(({0}))", "(({0})) AND {1}", "((({0})))", "(({0} AND {1}))", "{0} AND (({1}))"])
def test_parentheses_that_are_redundant(client: Client, strings: str, kind: str, shape: str) -> None:  # cases 56, 81
    values = {":b": s(), **({":d": s()} if "{1}" in shape else {})}
    with refused(VALIDATION, "redundant parentheses"):
        send_expression(client, strings, kind, parenthesised(kind, shape), values)


@pytest.mark.parametrize("kind", ["condition", "filter", "scan"])
@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("contains(a, a)", {":v": s()}),
        ("a = a", {":v": s()}),
        ("begins_with(a, :v)", {":v": n(1)}),
        ("begins_with(a, :v)", {":v": {"L": []}}),
        ("size(:v) = :v", {":v": n(1)}),
        ("attribute_exists(:v)", {":v": s()}),
    ],
)
def test_operands_that_make_no_sense(client: Client, strings: str, kind: str, expression: str, values: Item) -> None:
    """Case 57: refused before anything is read."""
    if ":v" not in expression:
        expression += " OR b = :v"
    with refused(VALIDATION):
        send_expression(client, strings, kind, expression, values)


# --- case 58: how long, how many, how deep ---


def of_length(size: int) -> str:
    """A condition of exactly so many bytes."""
    start = "a <> :v OR "
    return start + "x" * (size - len(start) - len(" <> :v")) + " <> :v"


@pytest.mark.parametrize("kind", ["condition", "filter", "scan"])
def test_expressions_of_4096_bytes(client: Client, strings: str, kind: str) -> None:  # case 58
    send_expression(client, strings, kind, of_length(4096), {":v": s()})
    with refused(VALIDATION, "Expression size has exceeded the maximum allowed size"):
        send_expression(client, strings, kind, of_length(4097), {":v": s()})


@pytest.mark.parametrize("kind", KINDS)
def test_size_is_checked_before_syntax(client: Client, strings: str, kind: str) -> None:  # case 58
    with refused(VALIDATION, "Expression size has exceeded the maximum allowed size"):
        send_expression(client, strings, kind, "(" * 4097, {":v": s()})


@pytest.mark.parametrize("kind", ["condition", "filter", "scan"])
def test_300_operators(client: Client, strings: str, kind: str) -> None:  # case 58
    joined = " OR ".join(["a<:v"] * 150)
    assert joined.count("<") + joined.count("OR") == 299
    send_expression(client, strings, kind, f"NOT ({joined})", {":v": s()})
    with refused(VALIDATION, "too many operators; operator count: 301"):
        send_expression(client, strings, kind, f"{joined} OR b<>:v", {":v": s()})


@pytest.mark.parametrize("expression", ["(" * 4000, "(" * 1300 + "a=:v" + ")" * 1300, "NOT " * 1000 + "a=:v"])
@pytest.mark.parametrize("kind", KINDS)
def test_deep_expressions_do_not_crash(client: Client, strings: str, kind: str, expression: str) -> None:  # case 58
    with refused(VALIDATION):
        send_expression(client, strings, kind, expression, {":v": s()})


@pytest.mark.parametrize("kind", ["condition", "filter", "scan"])
def test_100_operands_of_in(client: Client, strings: str, kind: str) -> None:
    values = {f":v{number}": n(number) for number in range(101)}
    hundred = {name: values[name] for name in list(values)[:100]}
    negated = f"NOT a IN ({', '.join(hundred)})"
    send_expression(client, strings, kind, negated, hundred)
    with refused(VALIDATION):
        send_expression(client, strings, kind, f"NOT a IN ({', '.join(values)})", values)
