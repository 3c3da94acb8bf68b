"""Legacy parameters: they compile to the trees of expressions, with texts of their own."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo.errors import ApiError
from dynamo.expressions.condition import holds
from dynamo.expressions.key_condition import resolve_key_condition
from dynamo.expressions.legacy import compile_legacy
from dynamo.expressions.projection import project
from dynamo.expressions.update import apply_update
from dynamo.table import KeySchema
from dynamo.values import Item

INVALID = "One or more parameter values were invalid: "

ITEM: Item = {
    "s": {"S": "hello"},
    "n": {"N": "5"},
    "ss": {"SS": ["a", "b"]},
    "l": {"L": [{"S": "x"}]},
    "m.x": {"S": "dotted"},
}


def condition(operator: str, *arguments: dict[str, Any]) -> dict[str, Any]:
    return {"ComparisonOperator": operator, "AttributeValueList": list(arguments)}


def matches(conditions: dict[str, Any], operator: str | None = None, item: Item = ITEM) -> bool:
    compiled = compile_legacy(filter=conditions, conditional_operator=operator)
    assert compiled.filter is not None
    return holds(compiled.filter, item, compiled.values)


def refusal(**parameters: Any) -> str:
    with pytest.raises(ApiError) as caught:
        compile_legacy(**parameters)
    assert caught.value.type == "ValidationException"
    return caught.value.message


@pytest.mark.parametrize(
    ("name", "tested", "expected"),
    [
        ("s", condition("EQ", {"S": "hello"}), True),
        ("s", condition("EQ", {"S": "other"}), False),
        ("ss", condition("EQ", {"SS": ["b", "a"]}), True),
        ("s", condition("NE", {"S": "other"}), True),
        ("missing", condition("NE", {"S": "other"}), True),
        ("missing", condition("EQ", {"S": "other"}), False),
        ("n", condition("LE", {"N": "5.0"}), True),
        ("n", condition("LT", {"N": "5"}), False),
        ("n", condition("GE", {"N": "10"}), False),
        ("n", condition("GT", {"N": "-1"}), True),
        ("n", condition("GT", {"S": "1"}), False),
        ("s", condition("NULL"), False),
        ("missing", condition("NULL"), True),
        ("s", condition("NOT_NULL"), True),
        ("missing", condition("NOT_NULL"), False),
        ("s", condition("CONTAINS", {"S": "ell"}), True),
        ("ss", condition("CONTAINS", {"S": "a"}), True),
        ("l", condition("CONTAINS", {"S": "x"}), True),
        ("s", condition("NOT_CONTAINS", {"S": "ell"}), False),
        ("missing", condition("NOT_CONTAINS", {"S": "x"}), True),
        ("s", condition("BEGINS_WITH", {"S": "he"}), True),
        ("n", condition("IN", {"N": "4"}, {"N": "5"}), True),
        ("n", condition("IN", {"N": "4"}), False),
        ("n", condition("BETWEEN", {"N": "5"}, {"N": "6"}), True),
        ("n", condition("BETWEEN", {"N": "6"}, {"N": "7"}), False),
        ("m.x", condition("EQ", {"S": "dotted"}), True),
    ],
)
def test_comparison_operators(name: str, tested: dict[str, Any], expected: bool) -> None:
    assert matches({name: tested}) is expected


def test_conditional_operator() -> None:
    conditions = {"s": condition("EQ", {"S": "hello"}), "n": condition("EQ", {"N": "0"})}
    assert not matches(conditions)
    assert not matches(conditions, "AND")
    assert matches(conditions, "OR")
    assert refusal(conditional_operator="OR") == "ConditionalOperator cannot be used without Filter or Expected"
    assert refusal(filter={"s": condition("NULL")}, conditional_operator="AND") == (
        "ConditionalOperator can only be used when Filter or Expected has two or more elements"
    )


@pytest.mark.parametrize(
    ("tested", "text"),
    [
        (condition("EQ"), "Invalid number of argument(s) for the EQ ComparisonOperator"),
        (condition("NULL", {"S": "x"}), "Invalid number of argument(s) for the NULL ComparisonOperator"),
        (condition("BETWEEN", {"S": "x"}), "Invalid number of argument(s) for the BETWEEN ComparisonOperator"),
        ({"ComparisonOperator": "IN"}, "Invalid number of argument(s) for the IN ComparisonOperator"),
        (condition("IN", {"S": "x"}, {"N": "1"}), "AttributeValues inside AttributeValueList must be of same type"),
        (condition("LT", {"BOOL": True}), "ComparisonOperator LT is not valid for BOOL AttributeValue type"),
        (condition("BEGINS_WITH", {"N": "1"}), "ComparisonOperator BEGINS_WITH is not valid for N AttributeValue type"),
        (condition("CONTAINS", {"SS": ["x"]}), "ComparisonOperator CONTAINS is not valid for SS AttributeValue type"),
    ],
)
def test_arguments(tested: dict[str, Any], text: str) -> None:
    assert refusal(filter={"a": tested}) == INVALID + text
    assert refusal(key_conditions={"a": tested}) in (
        INVALID + text,
        "Attempted conditional constraint is not an indexable operation",
    )


def test_bounds_of_between() -> None:
    assert refusal(filter={"a": condition("BETWEEN", {"N": "10"}, {"N": "9"})}) == (
        "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound"
    )


@pytest.mark.parametrize(
    ("tested", "expected"),
    [
        ({"s": {"Exists": False}}, False),
        ({"missing": {"Exists": False}}, True),
        ({"s": {"Exists": True, "Value": {"S": "hello"}}}, True),
        ({"s": {"Value": {"S": "other"}}}, False),
        ({"s": {"ComparisonOperator": "BEGINS_WITH", "Value": {"S": "h"}}}, True),
        ({"s": condition("EQ", {"S": "hello"}), "n": {"Value": {"N": "5"}}}, True),
        ({"s": condition("EQ", {"S": "hello"}), "n": {"Value": {"N": "6"}}}, False),
    ],
)
def test_expected(tested: dict[str, Any], expected: bool) -> None:
    compiled = compile_legacy(expected=tested)
    assert compiled.condition is not None
    assert holds(compiled.condition, ITEM, compiled.values) is expected


X = {"S": "x"}


@pytest.mark.parametrize(
    ("tested", "text"),
    [
        (
            {"AttributeValueList": [X], "Value": X, "ComparisonOperator": "EQ"},
            "Value and AttributeValueList cannot be used together for Attribute: a",
        ),
        (
            {"Exists": True, "Value": X, "ComparisonOperator": "EQ"},
            "Exists and ComparisonOperator cannot be used together for Attribute: a",
        ),
        (
            {"ComparisonOperator": "EQ"},
            "Value or AttributeValueList must be used with ComparisonOperator: EQ for Attribute: a",
        ),
        ({"AttributeValueList": [X]}, "AttributeValueList can only be used with a ComparisonOperator for Attribute: a"),
        ({}, "Value must be provided when Exists is null for Attribute: a"),
        ({"Exists": True}, "Value must be provided when Exists is true for Attribute: a"),
        ({"Exists": False, "Value": X}, "Value cannot be used when Exists is false for Attribute: a"),
    ],
)
def test_expected_that_makes_no_sense(tested: dict[str, Any], text: str) -> None:
    assert refusal(expected={"a": tested}) == INVALID + text


def test_nothing_expected_is_no_condition() -> None:
    assert compile_legacy(expected={}).condition is None
    assert compile_legacy(expected={}).encoded_condition == b""


# --- AttributeUpdates ---


def updated(updates: dict[str, Any], item: Item) -> Item:
    compiled = compile_legacy(attribute_updates=updates)
    assert compiled.update is not None
    return apply_update(compiled.update, item, compiled.values).item


@pytest.mark.parametrize(
    ("update", "before", "after"),
    [
        ({"Value": X}, {}, {"a": X}),
        ({"Action": "PUT", "Value": {"N": "1.0"}}, {"a": X}, {"a": {"N": "1"}}),
        ({"Action": "DELETE"}, {"a": X, "b": X}, {"b": X}),
        ({"Action": "DELETE"}, {"b": X}, {"b": X}),
        ({"Action": "DELETE", "Value": {"SS": ["y"]}}, {"a": {"SS": ["x", "y"]}}, {"a": {"SS": ["x"]}}),
        ({"Action": "ADD", "Value": {"N": "5"}}, {"a": {"N": "10"}}, {"a": {"N": "15"}}),
        ({"Action": "ADD", "Value": {"N": "5"}}, {}, {"a": {"N": "5"}}),
        ({"Action": "ADD", "Value": {"SS": ["y"]}}, {"a": {"SS": ["x"]}}, {"a": {"SS": ["x", "y"]}}),
        ({"Action": "ADD", "Value": {"L": [X]}}, {"a": {"L": [X]}}, {"a": {"L": [X, X]}}),
        ({"Action": "ADD", "Value": {"L": [X]}}, {}, {"a": {"L": [X]}}),
    ],
)
def test_attribute_updates(update: dict[str, Any], before: Item, after: Item) -> None:
    assert updated({"a": update}, before) == after


@pytest.mark.parametrize(
    ("update", "text"),
    [
        ({"Action": "PUT"}, "Only DELETE action is allowed when no attribute value is specified"),
        ({"Action": "ADD"}, "Only DELETE action is allowed when no attribute value is specified"),
        ({"Action": "DELETE", "Value": X}, "DELETE action with value is not supported for the type S"),
        ({"Action": "ADD", "Value": X}, "ADD action is not supported for the type S"),
    ],
)
def test_attribute_updates_that_make_no_sense(update: dict[str, Any], text: str) -> None:
    assert refusal(attribute_updates={"a": update}) == INVALID + text


@pytest.mark.parametrize("action", ["ADD", "DELETE"])
def test_attribute_update_of_another_type(action: str) -> None:
    with pytest.raises(ApiError) as caught:
        updated({"a": {"Action": action, "Value": {"SS": ["x"]}}}, {"a": {"N": "1"}})
    assert caught.value.message == "Type mismatch for attribute to update"


# --- AttributesToGet and KeyConditions ---


def test_attributes_to_get() -> None:
    compiled = compile_legacy(attributes_to_get=["m.x", "n", "missing"])
    assert compiled.projection is not None
    assert project(compiled.projection, ITEM) == {"m.x": ITEM["m.x"], "n": ITEM["n"]}
    assert refusal(attributes_to_get=["a", "b", "a"]) == f"{INVALID}Duplicate value in attribute name: a"


def test_key_conditions() -> None:
    compiled = compile_legacy(
        key_conditions={"sk": condition("BETWEEN", {"N": "1"}, {"N": "2"}), "pk": condition("EQ", {"S": "x"})}
    )
    assert compiled.key_condition is not None
    keys = resolve_key_condition(
        compiled.key_condition, compiled.values, KeySchema(("pk",), ("sk",)), {"pk": "S", "sk": "N"}
    )
    assert keys.hash == ({"S": "x"},)
    assert [(part.attribute, part.operator, part.values) for part in keys.range] == [
        ("sk", "between", ({"N": "1"}, {"N": "2"}))
    ]


@pytest.mark.parametrize("operator", ["NE", "NULL", "NOT_NULL", "CONTAINS", "NOT_CONTAINS", "IN"])
def test_operators_that_no_key_takes(operator: str) -> None:
    assert refusal(key_conditions={"pk": condition(operator)}) == (
        "Attempted conditional constraint is not an indexable operation"
    )


@pytest.mark.parametrize("name", ["", "n" * 65_536, "é" * 32_768])
@pytest.mark.parametrize("parameter", ["expected", "filter", "attribute_updates", "attributes_to_get"])
def test_names_that_no_attribute_can_have(parameter: str, name: str) -> None:  # case 68
    condition, update = {"ComparisonOperator": "NOT_NULL"}, {"Action": "DELETE"}
    given = {"attribute_updates": {name: update}, "attributes_to_get": [name]}.get(parameter, {name: condition})
    with pytest.raises(ApiError, match="Attribute name"):
        compile_legacy(**{parameter: given})  # type: ignore[arg-type]
