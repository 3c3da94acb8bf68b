"""Attribute values: what a request may hold, in DynamoDB's words."""

from typing import Any

import pytest

from dynamo import values
from dynamo.errors import ApiError, in_envelope

SERIALIZATION = "SerializationException"
VALIDATION = "ValidationException"
INVALID = "One or more parameter values were invalid: "
EMPTY = "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
SEVERAL = "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"
TOO_DEEP = (
    "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit"
)


def refusal(raw: Any) -> tuple[str, str]:
    with pytest.raises(ApiError) as caught:
        values.canonical_item({"a": raw})
    return caught.value.type, caught.value.message


@pytest.mark.parametrize(
    "value",
    [
        {"S": "x"},
        {"S": ""},
        {"N": "1"},
        {"B": ""},
        {"B": "YWJj"},
        {"BOOL": False},
        {"NULL": True},
        {"SS": ["", "a"]},
        {"NS": ["1", "2"]},
        {"BS": ["", "YQ=="]},
        {"L": []},
        {"L": [{"S": "x"}, {"L": [{"M": {}}]}]},
        {"M": {}},
        {"M": {"b": {"N": "1"}}},
    ],
)
def test_canonical_values_stay_as_they_are(value: dict[str, Any]) -> None:
    assert values.canonical_item({"a": value}) == {"a": value}


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ({"N": "1.50"}, {"N": "1.5"}),
        ({"SS": ["b", "a", "é", "\U0001f600", "\uffff"]}, {"SS": ["a", "b", "é", "\uffff", "\U0001f600"]}),
        ({"NS": ["10", "9.0", "-1"]}, {"NS": ["-1", "9", "10"]}),
        ({"BS": ["/w==", "AA=="]}, {"BS": ["AA==", "/w=="]}),
        ({"L": [{"S": "x"}, {"N": "+5"}]}, {"L": [{"S": "x"}, {"N": "5"}]}),
        ({"M": {"x": {"N": "007"}, "y": {"S": "z"}}}, {"M": {"x": {"N": "7"}, "y": {"S": "z"}}}),
        ({"S": "x", "Unknown": 1}, {"S": "x"}),
        ({"S": "x", "N": None}, {"S": "x"}),
    ],
)
def test_other_ways_to_write_a_value_become_canonical(written: dict[str, Any], canonical: dict[str, Any]) -> None:
    assert values.canonical_item({"a": written}) == {"a": canonical}


def test_the_request_itself_is_not_changed() -> None:
    raw: dict[str, Any] = {"a": {"M": {"n": {"N": "1.0"}, "l": {"L": [{"NS": ["2", "1"]}]}}}}
    values.canonical_item(raw)
    assert raw == {"a": {"M": {"n": {"N": "1.0"}, "l": {"L": [{"NS": ["2", "1"]}]}}}}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"S": 5}, "NUMBER_VALUE cannot be converted to String"),
        ({"S": 5.5}, "DECIMAL_VALUE cannot be converted to String"),
        ({"S": True}, "TRUE_VALUE cannot be converted to String"),
        ({"S": []}, "Unrecognized collection type class java.lang.String"),
        ({"S": {}}, "Start of structure or map found where not expected"),
        ({"N": 123}, "NUMBER_VALUE cannot be converted to String"),
        ({"N": False}, "FALSE_VALUE cannot be converted to String"),
        ({"SS": [1]}, "NUMBER_VALUE cannot be converted to String"),
        ({"NS": [1]}, "NUMBER_VALUE cannot be converted to String"),
        ({"SS": "x"}, "Unexpected field type"),
        ({"NS": {}}, "Start of structure or map found where not expected"),
        ({"BOOL": "true"}, "Unexpected token received from parser"),
        ({"BOOL": 1}, "NUMBER_VALUE cannot be converted to Boolean"),
        ({"NULL": 1}, "NUMBER_VALUE cannot be converted to Boolean"),
        ({"L": "x"}, "Unexpected field type"),
        ({"L": {}}, "Start of structure or map found where not expected"),
        ({"M": "x"}, "Unexpected field type"),
        ("x", "Unexpected value type in payload"),
        ({"L": ["x"]}, "Unexpected value type in payload"),
        ([], "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.AttributeValue"),
        ({"B": "YWJ"}, "Base64 encoded length is expected a multiple of 4 bytes but found: 3"),
        ({"B": "@@@@"}, "Invalid Base64 character: '@'"),
        ({"B": "YW\xffj"}, "Invalid Base64 character: '\xff'"),
        ({"B": "Y==="}, "Invalid last non-pad Base64 character dectected"),
        ({"B": "YWJ="}, "Invalid last non-pad Base64 character dectected"),
        ({"BS": ["YQ==", "YR=="]}, "Invalid last non-pad Base64 character dectected"),
    ],
)
def test_json_of_the_wrong_shape(raw: Any, message: str) -> None:
    assert refusal(raw) == (SERIALIZATION, message)


@pytest.mark.parametrize("raw", [None, [], "x", 1])
def test_an_item_must_be_a_map(raw: object) -> None:
    with pytest.raises(ApiError) as caught:
        values.canonical_item(raw)
    assert caught.value.type == SERIALIZATION


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({}, EMPTY),
        ({"S": None}, EMPTY),
        ({"Unknown": "x"}, EMPTY),
        ({"L": [{}]}, EMPTY),
        ({"M": {"x": {}}}, EMPTY),
        ({"S": "x", "N": "1"}, SEVERAL),
        ({"S": "x", "N": "one"}, "The parameter cannot be converted to a numeric value: one"),
        ({"N": ""}, "The parameter cannot be converted to a numeric value"),
        ({"N": " 5"}, "The parameter cannot be converted to a numeric value:  5"),
        ({"N": "1" * 39}, "Attempting to store more than 38 significant digits in a Number"),
        ({"NS": ["1", "x"]}, "The parameter cannot be converted to a numeric value: x"),
        ({"NULL": False}, INVALID + "Null attribute value types must have the value of true"),
        ({"SS": []}, INVALID + "An string set  may not be empty"),
        ({"NS": []}, INVALID + "An number set  may not be empty"),
        ({"BS": []}, INVALID + "Binary sets should not be empty"),
        ({"M": {"x": {"L": [{"SS": []}]}}}, INVALID + "An string set  may not be empty"),
        ({"SS": ["a", "a"]}, INVALID + "Input collection [a, a] contains duplicates."),
        ({"NS": ["1", "1.0"]}, "Input collection contains duplicates"),
        ({"BS": ["YQ==", "YQ=="]}, INVALID + "Input collection [YQ==, YQ==]of type BS contains duplicates."),
    ],
)
def test_values_that_no_item_may_hold(raw: Any, message: str) -> None:
    assert refusal(raw) == (VALIDATION, message)


@pytest.mark.parametrize(
    ("raw", "wrapped"),
    [
        ({"SS": []}, True),
        ({"NULL": False}, True),
        ({"SS": ["a", "a"]}, True),
        ({"N": "x"}, False),
        ({}, False),
        ({"S": "x", "N": "1"}, False),
    ],
)
def test_put_and_update_put_some_texts_into_an_envelope(raw: Any, wrapped: bool) -> None:
    with pytest.raises(ApiError) as caught:
        values.canonical_value(raw)
    bare = caught.value.message
    assert in_envelope(caught.value).message == ("1 validation error detected: " if wrapped else "") + bare


def nested(levels: int, kind: str) -> dict[str, Any]:
    value: dict[str, Any] = {"S": "x"}
    for _ in range(levels - 1):
        value = {"L": [value]} if kind == "L" else {"M": {"m": value}}
    return value


@pytest.mark.parametrize("kind", ["L", "M"])
def test_values_nest_to_32_levels(kind: str) -> None:
    assert values.canonical_value(nested(32, kind)) == nested(32, kind)
    assert refusal(nested(33, kind)) == (VALIDATION, TOO_DEEP)
    assert refusal(nested(900, kind)) == (VALIDATION, TOO_DEEP)


@pytest.mark.parametrize("place", ["item", "map"])
def test_attribute_names_reach_65535_bytes_and_are_not_empty(place: str) -> None:
    def named(name: str) -> dict[str, Any]:
        return {name: {"S": "x"}} if place == "item" else {"a": {"M": {name: {"S": "x"}}}}

    for name in ("n" * 65_535, "é" * 32_767, "\U0001f600" * 16_383):
        assert values.canonical_item(named(name)) == named(name)
    for name in ("n" * 65_536, "é" * 32_768, "\U0001f600" * 16_384):
        with pytest.raises(ApiError) as caught:
            values.canonical_item(named(name))
        assert caught.value.message == "Attribute name is too large, must be less than 65536 bytes"
    with pytest.raises(ApiError, match="ValidationException"):
        values.canonical_item(named(""))


def test_only_strings_numbers_and_binaries_have_an_order() -> None:
    assert values.compare({"S": "a"}, {"S": "b"}) == -1
    assert values.compare({"N": "10"}, {"N": "9"}) == 1
    assert values.compare({"B": "YQ=="}, {"B": "YQ=="}) == 0
    assert values.compare({"S": "1"}, {"N": "1"}) is None
    assert values.compare({"BOOL": True}, {"BOOL": False}) is None
    assert values.compare({"L": []}, {"L": []}) is None


def test_strings_and_binaries_compare_by_their_bytes() -> None:
    # UTF-16 would put the second first; the base64 texts are in the other order than their bytes.
    assert values.compare({"S": "\uffff"}, {"S": "\U0001f600"}) == -1
    assert values.compare({"B": "/w=="}, {"B": "AA=="}) == 1


def test_equality_is_by_type_and_value() -> None:
    left = values.canonical_value({"M": {"a": {"NS": ["1", "2.0"]}, "b": {"S": "x"}}})
    right = values.canonical_value({"M": {"b": {"S": "x"}, "a": {"NS": ["2", "1"]}}})
    assert values.equal(left, right)
    assert not values.equal({"L": [{"S": "a"}, {"S": "b"}]}, {"L": [{"S": "b"}, {"S": "a"}]})
    assert not values.equal({"S": "1"}, {"N": "1"})
    close = "1." + "0" * 36
    assert not values.equal(
        values.canonical_value({"NS": [close + "1"]}), values.canonical_value({"NS": [close + "2"]})
    )
