"""UpdateItem: expressions, legacy actions, and what it returns."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.support import VALIDATION, Client, Item, n, refused, s


def put(client: Client, table: str, **attributes: Item) -> Item:
    """Store an item under a new key. Returns the key."""
    key = {"p": s()}
    client.put_item(TableName=table, Item={**key, **attributes})
    return key


def get(client: Client, table: str, key: Item) -> Item | None:
    """The item's attributes besides its key; None where there is no item."""
    item = client.get_item(TableName=table, Key=key, ConsistentRead=True).get("Item")
    return None if item is None else {name: value for name, value in item.items() if name not in key}


def update(client: Client, table: str, key: Item, expression: str, values: Item | None = None, **members: Any) -> Any:
    """An UpdateItem."""
    if values:
        members["ExpressionAttributeValues"] = values
    return client.update_item(TableName=table, Key=key, UpdateExpression=expression, **members)


# --- case 46: updates of missing items ---


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("REMOVE a", {}),
        ("REMOVE a, b, c", {}),
        ("DELETE a :v", {":v": {"SS": ["x"]}}),
        ("REMOVE a DELETE b :v", {":v": {"NS": ["1"]}}),
    ],
)
def test_removals_create_nothing(client: Client, simple: str, expression: str, values: Item) -> None:  # case 46
    key = {"p": s()}
    update(client, simple, key, expression, values)
    assert get(client, simple, key) is None


@pytest.mark.parametrize("action", [{"Action": "DELETE"}, {"Action": "DELETE", "Value": {"SS": ["x"]}}])
def test_legacy_removals_create_nothing(client: Client, simple: str, action: Item) -> None:  # case 46
    key = {"p": s()}
    client.update_item(TableName=simple, Key=key, AttributeUpdates={"a": action})
    assert get(client, simple, key) is None


@pytest.mark.parametrize("members", [{}, {"AttributeUpdates": {}}])
def test_an_update_without_actions_creates_an_empty_item(client: Client, simple: str, members: Any) -> None:  # case 46
    key = {"p": s()}
    client.update_item(TableName=simple, Key=key, **members)
    assert get(client, simple, key) == {}


@pytest.mark.parametrize(
    ("expression", "value", "result"),
    [("SET a = :v", s("x"), s("x")), ("ADD a :v", n(3), n(3)), ("ADD a :v", {"SS": ["x"]}, {"SS": ["x"]})],
)
def test_other_actions_create(client: Client, simple: str, expression: str, value: Item, result: Item) -> None:
    key = {"p": s()}
    update(client, simple, key, expression, {":v": value})
    assert get(client, simple, key) == {"a": result}


# --- cases 60, 61: paths that overlap ---


@pytest.mark.parametrize(
    "expression",
    [
        "SET a.b.c = :v REMOVE a",
        "SET a = :v, a.b = :v",
        "SET a = :v, a = :v",
        "SET a[1] = :v, a[1].b = :v",
        "SET a.b = :v REMOVE a.b",
        "REMOVE a, a[0]",
        "ADD a.b :v SET a = :v",
        "DELETE a :v REMOVE a.b.c",
    ],
)
def test_paths_that_overlap(client: Client, simple: str, expression: str) -> None:  # case 60
    value = {"SS": ["x"]} if "DELETE" in expression else n(1)
    values = {":v": value} if ":v" in expression else None
    key = put(client, simple, a={"M": {"b": {"M": {"c": n(1)}}}})
    with refused(VALIDATION, "Two document paths overlap with each other; must remove or rewrite one of these paths"):
        update(client, simple, key, expression, values)


@pytest.mark.parametrize("expression", ["SET a.b = :v, a[0] = :v", "SET a[0] = :v REMOVE a.b"])
def test_paths_that_conflict(client: Client, simple: str, expression: str) -> None:
    key = put(client, simple)
    with refused(VALIDATION, "Two document paths conflict with each other; must remove or rewrite one of these paths"):
        update(client, simple, key, expression, {":v": n(1)})


def test_siblings_do_not_overlap(client: Client, simple: str) -> None:  # case 61
    key = put(client, simple, m={"M": {"c": s("old"), "l": {"L": [n(1), n(2), n(3)]}}})
    update(client, simple, key, "SET m.a = :x, m.b = :y, m.l[0] = :x REMOVE m.c, m.l[2]", {":x": s("x"), ":y": s("y")})
    assert get(client, simple, key) == {"m": {"M": {"a": s("x"), "b": s("y"), "l": {"L": [s("x"), n(2)]}}}}


# --- case 64: actions see the item as it was ---


def test_actions_see_the_item_as_it_was(client: Client, simple: str) -> None:  # case 64
    key = put(client, simple, a=n(1), b=n(10), l={"L": [s("x")]})
    update(
        client,
        simple,
        key,
        "SET a = b + :n, b = a, c = if_not_exists(nothing, :d), d = if_not_exists(a, :d), l = list_append(l, :l) "
        "REMOVE e ADD f :n",
        {":n": n(2), ":d": s("default"), ":l": {"L": [s("y")]}},
    )
    expected = {"a": n(12), "b": n(1), "c": s("default"), "d": n(1), "f": n(2), "l": {"L": [s("x"), s("y")]}}
    assert get(client, simple, key) == expected


def test_what_does_not_change_is_returned_too(client: Client, simple: str) -> None:  # case 64
    key = put(client, simple, a=n(1), b=n(2))
    for kind in ("UPDATED_NEW", "UPDATED_OLD"):
        answer = update(client, simple, key, "SET a = :v", {":v": n("1.0")}, ReturnValues=kind)
        assert answer["Attributes"] == {"a": n(1)}


# --- cases 65, 66: what is returned ---


def test_legacy_add_returns_the_whole_old_item(client: Client, simple: str) -> None:  # case 65
    attributes = {"a": n(1), "b": {"M": {"x": s("y")}}, "c": {"SS": ["z"]}}
    key = put(client, simple, **attributes)
    action = {"a": {"Action": "ADD", "Value": n(5)}, "c": {"Action": "ADD", "Value": {"SS": ["w"]}}}
    answer = client.update_item(TableName=simple, Key=key, AttributeUpdates=action, ReturnValues="ALL_OLD")
    assert answer["Attributes"] == {**key, **attributes}
    changed = get(client, simple, key)
    assert changed is not None
    assert (changed["a"], sorted(changed["c"]["SS"])) == (n(6), ["w", "z"])


@pytest.mark.parametrize(
    ("expression", "old", "new"),
    [
        ("SET m.a.b = :v", {"m": {"M": {"a": {"M": {"b": n(1)}}}}}, {"m": {"M": {"a": {"M": {"b": n(9)}}}}}),
        ("SET m.e = :v", None, {"m": {"M": {"e": n(9)}}}),
        ("SET l[1] = :v", {"l": {"L": [n(2)]}}, {"l": {"L": [n(9)]}}),
        ("SET l[0] = :v, l[2] = :v", {"l": {"L": [n(1), n(3)]}}, {"l": {"L": [n(9), n(9)]}}),
        ("SET l[7] = :v", None, None),
        ("SET t = :v, m.a.b = :v", {"t": s("top"), "m": {"M": {"a": {"M": {"b": n(1)}}}}}, None),
        ("REMOVE m.a.b", {"m": {"M": {"a": {"M": {"b": n(1)}}}}}, None),
    ],
)
def test_only_the_nested_path_is_returned(
    client: Client, simple: str, expression: str, old: Item | None, new: Item | None
) -> None:  # case 66
    values = {":v": n(9)} if ":v" in expression else None
    document = {"a": {"M": {"b": n(1), "c": n(2)}}, "d": n(3)}
    for kind, expected in (("UPDATED_OLD", old), ("UPDATED_NEW", new)):
        if kind == "UPDATED_NEW" and "t = :v" in expression:
            expected = {"t": n(9), "m": {"M": {"a": {"M": {"b": n(9)}}}}}
        key = put(client, simple, m={"M": document}, l={"L": [n(1), n(2), n(3)]}, t=s("top"))
        answer = update(client, simple, key, expression, values, ReturnValues=kind)
        assert answer.get("Attributes") == expected


@pytest.mark.parametrize("kind", ["NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"])
def test_returned_values_of_a_new_item(client: Client, simple: str, kind: str) -> None:
    key = {"p": s()}
    answer = update(client, simple, key, "SET a = :v", {":v": n(1)}, ReturnValues=kind)
    expected = {"ALL_NEW": {**key, "a": n(1)}, "UPDATED_NEW": {"a": n(1)}}
    assert answer.get("Attributes") == expected.get(kind)


# --- what fails leaves nothing behind ---


@pytest.mark.parametrize(
    ("expression", "values", "text"),
    [
        ("SET b = :v, x.y = :v", {":v": n(1)}, "The document path provided in the update expression is invalid"),
        ("SET b = nothing", {}, "The provided expression refers to an attribute that does not exist in the item"),
        ("SET b = a + :v", {":v": s("x")}, "Incorrect operand type for operator or function"),
        ("SET b = t + :v", {":v": n(1)}, "An operand in the update expression has an incorrect data type"),
        ("SET a = a - nothing", {}, "The provided expression refers to an attribute that does not exist in the item"),
        ("ADD t :v", {":v": n(1)}, "An operand in the update expression has an incorrect data type"),
        ("DELETE a :v", {":v": {"SS": ["x"]}}, "An operand in the update expression has an incorrect data type"),
        ("SET p = :v", {":v": s("x")}, "Cannot update attribute p. This attribute is part of the key"),
        ("REMOVE p", {}, "Cannot update attribute p. This attribute is part of the key"),
        ("SET p.x = :v", {":v": s("x")}, "Key attributes must be scalars"),
        ("SET a = :v SET b = :v", {":v": n(1)}, 'The "SET" section can only be used once in an update expression;'),
        ("", {}, "Invalid UpdateExpression: The expression can not be empty;"),
        ("SET", {}, "Syntax error"),
        ("SET status = :v", {":v": n(1)}, "Attribute name is a reserved keyword; reserved keyword: status"),
    ],
)
def test_updates_that_fail(client: Client, simple: str, expression: str, values: Item, text: str) -> None:
    attributes = {"a": n(1), "t": s("text")}
    key = put(client, simple, **attributes)
    with refused(VALIDATION, text):
        update(client, simple, key, expression, values)
    assert get(client, simple, key) == attributes


def test_an_emptied_set_is_gone(client: Client, simple: str) -> None:
    key = put(client, simple, a={"SS": ["x", "y"]})
    update(client, simple, key, "DELETE a :v", {":v": {"SS": ["x", "y", "z"]}})
    assert get(client, simple, key) == {}
