"""The parameters of before expressions reach the nodes as the same trees, and are refused as DynamoDB does."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from cluster.wire import storage_pb2
from dynamo.expressions import tree
from dynamo.expressions.compile import compile_expressions
from dynamo.expressions.tree import Add, DeleteFrom, Path, Remove, Set, Value
from router.operations import delete_item, put_item, query, scan, update_item
from tests.unit.router_plans import answer, call_of, refusal

KEY = {"pk": {"S": "a"}}
INVALID = "One or more parameter values were invalid: "


def put(**members: Any) -> dict[str, Any]:
    return {"TableName": "hash", "Item": KEY, **members}


def condition_of(text: str, values: dict[str, Any]) -> bytes:
    return compile_expressions(condition=text, values=values or None).encoded_condition


@pytest.mark.parametrize(
    ("expected", "operator", "text", "values"),
    [
        ({"pk": {"Exists": False}}, None, "attribute_not_exists(pk)", []),
        ({"v": {"Value": {"N": "1.0"}}}, None, "v = :a", [{"N": "1"}]),
        ({"v": {"ComparisonOperator": "NOT_NULL"}}, None, "attribute_exists(v)", []),
        (
            {
                "v": {"ComparisonOperator": "GT", "AttributeValueList": [{"N": "1"}]},
                "w": {"ComparisonOperator": "BEGINS_WITH", "AttributeValueList": [{"S": "x"}]},
            },
            "OR",
            "v > :a OR begins_with(w, :b)",
            [{"N": "1"}, {"S": "x"}],
        ),
    ],
)
def test_expected(expected: dict[str, Any], operator: str | None, text: str, values: list[Any]) -> None:
    body = put(Expected=expected, **({"ConditionalOperator": operator} if operator else {}))
    sent = call_of(put_item.plan, body).condition
    named = dict(zip((":a", ":b"), values, strict=False))
    assert sent.tree == condition_of(text, named)
    assert orjson.loads(sent.values) == values
    key_only = {"TableName": "hash", "Key": KEY, "Expected": expected}
    assert call_of(delete_item.plan, key_only).condition.tree


def test_attribute_updates() -> None:
    sent = call_of(
        update_item.plan,
        {
            "TableName": "hash",
            "Key": KEY,
            "AttributeUpdates": {
                "a": {"Value": {"S": "x"}},
                "b": {"Action": "ADD", "Value": {"N": "1"}},
                "c": {"Action": "DELETE", "Value": {"SS": ["x"]}},
                "d": {"Action": "DELETE"},
            },
            "Expected": {"e": {"Exists": False}},
        },
    )
    actions = tree.decode_update(sent.tree)
    assert [(type(action), action.path) for action in actions] == [
        (kind, Path((name,))) for kind, name in ((Set, "a"), (Add, "b"), (DeleteFrom, "c"), (Remove, "d"))
    ]
    assert isinstance(actions[0], Set)
    assert isinstance(actions[0].operand, Value)
    assert orjson.loads(sent.values)[actions[0].operand.slot] == {"S": "x"}
    assert tree.decode_condition(sent.condition) == tree.AttributeNotExists(Path(("e",)))


def test_query_filter() -> None:
    sent = call_of(
        query.plan,
        {
            "TableName": "composite",
            "KeyConditions": {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]}},
            "QueryFilter": {"v": {"ComparisonOperator": "CONTAINS", "AttributeValueList": [{"S": "x"}]}},
            "AttributesToGet": ["v"],
        },
    )
    found = tree.decode_condition(sent.filter)
    assert isinstance(found, tree.Contains)
    assert isinstance(found.member, Value)
    assert orjson.loads(sent.values)[found.member.slot] == {"S": "x"}
    assert tree.decode_projection(sent.projection) == (Path(("v",)),)


async def test_scan_filter() -> None:
    body = {
        "TableName": "composite",
        "ScanFilter": {"v": {"ComparisonOperator": "EQ", "AttributeValueList": [{"N": "1.0"}]}},
    }
    _, calls = await answer(scan.plan, body, lambda _: storage_pb2.Reply(query=storage_pb2.QueryReply()))
    sent: Any = calls[0].operation
    assert sent.filter == condition_of("v = :v", {":v": {"N": "1"}})


WRONG = [
    (
        put_item.plan,
        put(ConditionalOperator="OR"),
        "ConditionalOperator cannot be used without Filter or Expected",
    ),
    (
        put_item.plan,
        put(ConditionalOperator="OR", Expected={"v": {"Exists": False}}),
        "ConditionalOperator can only be used when Filter or Expected has two or more elements",
    ),
    (
        update_item.plan,
        {"TableName": "hash", "Key": KEY, "AttributeUpdates": {"pk": {"Value": {"S": "x"}}}},
        INVALID + "Cannot update attribute pk. This attribute is part of the key",
    ),
    (
        query.plan,
        {
            "TableName": "composite",
            "KeyConditions": {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]}},
            "QueryFilter": {"sk": {"ComparisonOperator": "NULL"}},
        },
        "QueryFilter can only contain non-primary key attributes: Primary key attribute: sk",
    ),
    (
        scan.plan,
        {"TableName": "hash", "ScanFilter": {"v": {"ComparisonOperator": "EQ"}}},
        INVALID + "Invalid number of argument(s) for the EQ ComparisonOperator",
    ),
]


@pytest.mark.parametrize(("plan", "body", "text"), WRONG)
async def test_wrong_requests(plan: Any, body: dict[str, Any], text: str) -> None:
    error = await refusal(plan, body)
    assert (error.type, error.message) == ("ValidationException", text)
