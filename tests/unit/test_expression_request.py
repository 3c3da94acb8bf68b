"""Which parameters of a request go together, and what expressions may do with key attributes."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo.errors import ApiError
from dynamo.expressions.key_condition import resolve_key_condition
from dynamo.expressions.key_rules import check_filter_keys, check_key_paths, check_update_keys
from dynamo.expressions.request import compile_request
from dynamo.table import Index, KeySchema, Table

V: dict[str, Any] = {":v": {"S": "x"}}
KEYS = KeySchema(("pk",), ("sk",))
TABLE = Table(
    id=1,
    name="table",
    schema_version=1,
    attribute_types={"pk": "S", "sk": "S", "ik": "S"},
    keys=KEYS,
    created=0.0,
    global_indexes=(Index("by_ik", KeySchema(("ik",)), "ALL"),),
)


def refusal(operation: str, **parameters: Any) -> str:
    with pytest.raises(ApiError) as caught:
        compile_request(operation, parameters)
    assert caught.value.type == "ValidationException"
    return caught.value.message


def test_expressions_and_legacy_parameters_do_not_mix() -> None:
    mixed = "Can not use both expression and non-expression parameters in the same request: "
    assert refusal("PutItem", Expected={}, ConditionExpression="attribute_exists(a)") == (
        f"{mixed}Non-expression parameters: {{Expected}} Expression parameters: {{ConditionExpression}}"
    )
    assert refusal(
        "UpdateItem", AttributeUpdates={}, UpdateExpression="REMOVE a", ConditionExpression="attribute_exists(a)"
    ) == (
        f"{mixed}Non-expression parameters: {{AttributeUpdates}} "
        "Expression parameters: {UpdateExpression, ConditionExpression}"
    )
    assert refusal("Query", KeyConditions={}, KeyConditionExpression="a = :v") == (
        f"{mixed}Non-expression parameters: {{KeyConditions}} Expression parameters: {{KeyConditionExpression}}"
    )
    assert refusal("Query", KeyConditions={}, QueryFilter={}, ProjectionExpression="a") == (
        f"{mixed}Non-expression parameters: {{QueryFilter}} Expression parameters: {{ProjectionExpression}}"
    )


def test_key_conditions_beside_a_filter_expression() -> None:
    compiled = compile_request(
        "Query",
        {
            "KeyConditions": {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "p"}]}},
            "FilterExpression": "a = :v",
            "ExpressionAttributeValues": V,
        },
    )
    assert compiled.key_condition is not None
    assert compiled.filter is not None
    assert compiled.values == [{"S": "x"}, {"S": "p"}]
    keys = resolve_key_condition(compiled.key_condition, compiled.values, KEYS, TABLE.attribute_types)
    assert keys.hash == ({"S": "p"},)


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        ("PutItem", "ConditionExpression is null"),
        ("DeleteItem", "ConditionExpression is null"),
        ("UpdateItem", "UpdateExpression and ConditionExpression are null"),
        ("Query", "FilterExpression and KeyConditionExpression are null"),
        ("Scan", "FilterExpression is null"),
    ],
)
def test_placeholders_without_expressions(operation: str, text: str) -> None:
    assert refusal(operation, ExpressionAttributeValues=V) == (
        f"ExpressionAttributeValues can only be specified when using expressions: {text}"
    )
    assert refusal(operation, ExpressionAttributeNames={"#a": "a"}) == (
        "ExpressionAttributeNames can only be specified when using expressions"
    )


def test_requests_without_any_of_this() -> None:
    compiled = compile_request("PutItem", {"Item": {}, "ConditionExpression": None})
    assert compiled.condition is None
    assert compiled.encoded_condition == b""
    assert compiled.values == []


def test_legacy_parameters_take_their_way() -> None:
    compiled = compile_request("Scan", {"ScanFilter": {"a": {"ComparisonOperator": "NULL"}}, "AttributesToGet": ["b"]})
    assert compiled.filter is not None
    assert compiled.projection is not None
    assert refusal("DeleteItem", ConditionalOperator="OR") == (
        "ConditionalOperator cannot be used without Filter or Expected"
    )


# --- key attributes ---


@pytest.mark.parametrize("text", ["SET {} = :v", "REMOVE {}", "SET a = :v REMOVE {}.b", "ADD {} :s"])
@pytest.mark.parametrize("name", ["pk", "sk"])
def test_updates_leave_keys_alone(text: str, name: str) -> None:
    values = {":v": {"S": "x"}, ":s": {"SS": ["x"]}}
    used = {key: value for key, value in values.items() if key in text}
    parameters: dict[str, Any] = {"UpdateExpression": text.format(name)}
    compiled = compile_request("UpdateItem", parameters | ({"ExpressionAttributeValues": used} if used else {}))
    assert compiled.update is not None
    with pytest.raises(ApiError) as caught:
        check_update_keys(compiled.update, KEYS)
    assert caught.value.message == (
        f"One or more parameter values were invalid: Cannot update attribute {name}. This attribute is part of the key"
    )


def test_updates_may_read_keys() -> None:
    compiled = compile_request("UpdateItem", {"UpdateExpression": "SET a = pk"})
    assert compiled.update is not None
    check_update_keys(compiled.update, KEYS)
    check_key_paths(compiled, TABLE)


def test_filters_of_a_query_leave_keys_alone() -> None:
    parameters = {"KeyConditionExpression": "pk = :v", "ExpressionAttributeValues": V}
    check_filter_keys(compile_request("Query", parameters), KEYS)
    other = compile_request("Query", parameters | {"FilterExpression": "a = :v OR size(b) < size(pk)"})
    with pytest.raises(ApiError) as caught:
        check_filter_keys(other, KEYS)
    assert caught.value.message == (
        "Filter Expression can only contain non-primary key attributes: Primary key attribute: pk"
    )
    check_filter_keys(other, KeySchema(("ik",)))


def test_query_filters_leave_keys_alone() -> None:
    compiled = compile_request("Query", {"QueryFilter": {"sk": {"ComparisonOperator": "NOT_NULL"}}})
    with pytest.raises(ApiError) as caught:
        check_filter_keys(compiled, KEYS)
    assert caught.value.message == (
        "QueryFilter can only contain non-primary key attributes: Primary key attribute: sk"
    )


@pytest.mark.parametrize(
    ("path", "key"), [("pk.a", "Key: pk"), ("sk[0]", "Key: sk"), ("ik.a", "IndexKey: ik"), ("a.pk", "")]
)
def test_paths_do_not_lead_into_keys(path: str, key: str) -> None:
    for parameters in ({"ProjectionExpression": path}, {"FilterExpression": f"attribute_exists({path})"}):
        message = ""
        try:
            check_key_paths(compile_request("Scan", parameters), TABLE)
        except ApiError as error:
            message = error.message
        assert message == (
            f"Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: {key}"
            if key
            else ""
        )
