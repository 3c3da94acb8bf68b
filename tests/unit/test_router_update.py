"""UpdateItem at the level of plans."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from cluster.wire import storage_pb2
from dynamo.expressions.tree import Add, Path, Value, decode_update
from dynamo.keys import partition_hash
from router.operations import update_item
from tests.unit.router_plans import answer, call_of, refusal, written

INVALID = "One or more parameter values were invalid: "
KEY = {"pk": {"S": "a"}, "sk": {"S": "b"}}
Return = storage_pb2.Update.Return


def update(expression: str | None = None, *, name: str = "composite", **members: Any) -> dict[str, Any]:
    body = {"TableName": name, "Key": KEY, **members}
    return body if expression is None else {**body, "UpdateExpression": expression}


def test_an_update_carries_key_tree_and_values() -> None:
    sent = call_of(
        update_item.plan,
        update(
            "ADD #c :one",
            ConditionExpression="#c < :max",
            ExpressionAttributeNames={"#c": "c"},
            ExpressionAttributeValues={":one": {"N": "1.0"}, ":max": {"N": "9"}},
            ReturnValues="UPDATED_NEW",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        ),
    )
    assert sent.key == partition_hash("S", "a") + b"b"
    assert orjson.loads(sent.key_attributes) == KEY
    assert decode_update(sent.tree) == (Add(Path(("c",)), Value(0)),)
    assert orjson.loads(sent.values) == [{"N": "1"}, {"N": "9"}]
    assert sent.condition
    assert sent.condition_return_old
    assert sent.return_values == Return.UPDATED_NEW


@pytest.mark.parametrize("name", ["NONE", "ALL_OLD", "UPDATED_OLD", "ALL_NEW", "UPDATED_NEW"])
def test_every_return_value_is_allowed(name: str) -> None:
    assert call_of(update_item.plan, update(ReturnValues=name)).return_values == Return.Value(name)


def test_an_update_without_actions_only_makes_the_item() -> None:
    sent = call_of(update_item.plan, update())  # 46
    assert (sent.tree, sent.condition, sent.values) == (b"", b"", b"")
    assert sent.return_values == Return.NONE


async def test_answers() -> None:
    body, calls = await answer(update_item.plan, update("REMOVE a"), written(old_size=1, new_size=1))
    assert body == {}
    assert calls[0].operation_id
    body, _ = await answer(
        update_item.plan,
        update("REMOVE a", ReturnValues="ALL_NEW", ReturnConsumedCapacity="TOTAL"),
        written(attributes=b'{"pk":{"S":"a"}}', old_size=2000, new_size=10),
    )
    assert body == {
        "Attributes": {"pk": {"S": "a"}},
        "ConsumedCapacity": {"TableName": "composite", "CapacityUnits": 2.0},
    }


KEY_PART = INVALID + "Cannot update attribute %s. This attribute is part of the key"
ENVELOPE = "1 validation error detected: "

WRONG = [
    ("key", update("SET pk = :v", ExpressionAttributeValues={":v": {"S": "x"}}), KEY_PART % "pk"),
    ("key", update("REMOVE a, #s", ExpressionAttributeNames={"#s": "sk"}), KEY_PART % "sk"),
    (
        "unused name",
        update("REMOVE a", ExpressionAttributeNames={"#unused": "x"}),
        "Value provided in ExpressionAttributeNames unused in expressions: keys: {#unused}",
    ),
    (
        "unused value",
        update("SET a = :v", ExpressionAttributeValues={":v": {"S": "x"}, ":unused": {"S": "y"}}),
        "Value provided in ExpressionAttributeValues unused in expressions: keys: {:unused}",
    ),
    (
        "undefined value",
        update("SET a = :v"),
        "Invalid UpdateExpression: An expression attribute value used in expression is not defined; "
        "attribute value: :v",
    ),
    (
        "syntax",
        update("INVALID SYNTAX HERE"),
        'Invalid UpdateExpression: Syntax error; token: "INVALID", near: "INVALID SYNTAX"',
    ),
    ("empty", update(""), "Invalid UpdateExpression: The expression can not be empty;"),
    (
        "mixed styles",
        update("SET a = :v", AttributeUpdates={"a": {"Value": {"S": "x"}, "Action": "PUT"}}),
        "Can not use both expression and non-expression parameters in the same request: "
        "Non-expression parameters: {AttributeUpdates} Expression parameters: {UpdateExpression}",
    ),
    (
        "values alone",
        update(ExpressionAttributeValues={":v": {"S": "x"}}),
        "ExpressionAttributeValues can only be specified when using expressions: "
        "UpdateExpression and ConditionExpression are null",
    ),
    ("60: overlap", update("SET a.b.c = :v REMOVE a", ExpressionAttributeValues={":v": {"S": "x"}}), "overlap"),
    ("2: type", update("ADD a :v", ExpressionAttributeValues={":v": {"S": "x"}}), "Incorrect operand type"),
    (
        "77: empty set",
        update("SET a = :v", ExpressionAttributeValues={":v": {"SS": []}}),
        "ExpressionAttributeValues contains invalid value: " + INVALID + "An string set  may not be empty for key :v",
    ),
    ("62", update("REMOVE a", ExpressionAttributeValues={}), "ExpressionAttributeValues must not be empty"),
    ("62", update("REMOVE a", ExpressionAttributeNames={}), "ExpressionAttributeNames must not be empty"),
]


@pytest.mark.parametrize(("case", "body", "text"), WRONG, ids=[f"{i}-{case[0]}" for i, case in enumerate(WRONG)])
async def test_wrong_updates(case: str, body: dict[str, Any], text: str) -> None:
    error = await refusal(update_item.plan, body)
    assert error.type == "ValidationException", case
    assert text in error.message


async def test_checks_come_in_dynamodbs_order() -> None:
    key = {"pk": {"S": "a"}}
    error = await refusal(update_item.plan, {**update("SET a ="), "TableName": "missing"})
    assert error.type == "ValidationException"  # the expression before the table
    error = await refusal(update_item.plan, {**update("REMOVE a"), "TableName": "missing", "Key": key})
    assert error.type == "ResourceNotFoundException"  # the table before its key
    error = await refusal(update_item.plan, {**update("REMOVE pk"), "Key": key})
    assert error.message == "The provided key element does not match the schema"


def test_sibling_paths_do_not_overlap() -> None:
    values = {":x": {"S": "x"}, ":y": {"S": "y"}}
    sent = call_of(update_item.plan, update("SET m.a = :x, m.b = :y", ExpressionAttributeValues=values))  # 61
    assert len(decode_update(sent.tree)) == 2
