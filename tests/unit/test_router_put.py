"""PutItem and DeleteItem at the level of plans: messages to nodes, answers, wrong requests (numbers are those of the
collected cases)."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from cluster.wire import storage_pb2
from dynamo.errors import ApiError
from dynamo.item import item_size
from dynamo.keys import partition_hash
from router.operations import delete_item, put_item
from router.plan import Single, Work, carry_out
from tests.unit.router_fakes import table
from tests.unit.router_plans import (
    PlanCatalog,
    PlanExecutor,
    answer,
    call_of,
    context,
    failed,
    refusal,
    written,
)

INVALID = "One or more parameter values were invalid: "
ENVELOPE = "1 validation error detected: "
ITEM = {"pk": {"S": "a"}, "sk": {"S": "b"}, "v": {"N": "1.50"}}
MIXED = (
    "Can not use both expression and non-expression parameters in the same request: "
    "Non-expression parameters: {%s} Expression parameters: {%s}"
)


def put(item: dict[str, Any] | None = None, name: str = "hash", **members: Any) -> dict[str, Any]:
    return {"TableName": name, "Item": {"pk": {"S": "a"}, **(item or {})}, **members}


def test_a_put_carries_the_canonical_item_its_size_and_its_place() -> None:
    made = put_item.plan({"TableName": "composite", "Item": ITEM}, context(invocation_id="i"))
    assert isinstance(made, Single)
    sent = made.call.operation
    assert isinstance(sent, storage_pb2.Put)
    assert orjson.loads(sent.item) == {**ITEM, "v": {"N": "1.5"}}
    assert sent.size == item_size({**ITEM, "v": {"N": "1.5"}})
    assert sent.key == partition_hash("S", "a") + b"b"
    assert made.call.hash == partition_hash("S", "a")
    assert not made.call.any_replica
    assert made.call.request_id == "R1"
    assert not sent.HasField("condition")


def test_a_retry_of_the_same_request_has_the_same_operation_id() -> None:
    def operation_id(invocation: str) -> int:
        made = put_item.plan(put(), context(invocation_id=invocation))
        assert isinstance(made, Single)
        return made.call.operation_id

    assert operation_id("i") == operation_id("i") != 0
    assert operation_id("i") != operation_id("j")


def test_a_condition_travels_as_tree_and_values() -> None:
    body = put(
        ConditionExpression="#v <> :v",
        ExpressionAttributeNames={"#v": "v"},
        ExpressionAttributeValues={":v": {"N": "01"}},
        ReturnValuesOnConditionCheckFailure="ALL_OLD",
    )
    condition = call_of(put_item.plan, body).condition
    assert orjson.loads(condition.values) == [{"N": "1"}]
    assert condition.tree
    assert condition.return_old


async def test_answers() -> None:
    body, _ = await answer(put_item.plan, put(), written(new_size=3))
    assert body == {}  # case 1: an object, never nothing
    body, calls = await answer(
        put_item.plan, put(ReturnValues="ALL_OLD"), written(attributes=b'{"pk":{"S":"a"}}', old_size=3, new_size=3)
    )
    assert body == {"Attributes": {"pk": {"S": "a"}}}
    assert calls[0].operation.return_old  # type: ignore[union-attr]
    body, _ = await answer(delete_item.plan, {"TableName": "hash", "Key": {"pk": {"S": "a"}}}, written(old_size=3))
    assert body == {}


@pytest.mark.parametrize(("old", "new", "units"), [(0, 1, 1.0), (0, 1025, 2.0), (5000, 10, 5.0), (0, 0, 1.0)])
async def test_capacity(old: int, new: int, units: float) -> None:
    reply = written(old_size=old, new_size=new)
    total, _ = await answer(put_item.plan, put(ReturnConsumedCapacity="TOTAL"), reply)
    assert total == {"ConsumedCapacity": {"TableName": "hash", "CapacityUnits": units}}
    by_index, _ = await answer(put_item.plan, put(ReturnConsumedCapacity="INDEXES"), reply)
    assert by_index["ConsumedCapacity"] == {
        "TableName": "hash",
        "CapacityUnits": units,
        "Table": {"CapacityUnits": units},
    }
    none, _ = await answer(put_item.plan, put(ReturnConsumedCapacity="NONE"), reply)
    assert none == {}


async def test_item_collections_are_shown_where_there_are_local_indexes() -> None:
    asked = {"ReturnItemCollectionMetrics": "SIZE"}
    shown, _ = await answer(put_item.plan, put({"sk": {"S": "b"}}, "indexed", **asked), written())
    assert shown == {"ItemCollectionMetrics": {"ItemCollectionKey": {"pk": {"S": "a"}}, "SizeEstimateRangeGB": [0, 1]}}
    without, _ = await answer(put_item.plan, put({"sk": {"S": "b"}}, "composite", **asked), written())
    assert without == {}


async def test_a_failed_condition_carries_the_item_that_was_asked_for() -> None:
    node = failed("ConditionalCheckFailedException", "The conditional request failed", b'{"pk":{"S":"a"}}')
    with pytest.raises(ApiError) as raised:
        await answer(put_item.plan, put(), node)
    assert (raised.value.type, raised.value.status) == ("ConditionalCheckFailedException", 400)
    assert raised.value.item == {"pk": {"S": "a"}}


async def test_a_table_that_the_catalog_at_hand_lacks_is_asked_for() -> None:
    catalog = PlanCatalog(table("late", id_=9))
    executor = PlanExecutor(written())
    body = {"TableName": "late", "Item": ITEM}
    made = put_item.plan(body, context(executor, catalog))
    assert isinstance(made, Work)
    assert await carry_out(made, executor) == b"{}"
    assert executor.calls[0].table.id == 9
    assert catalog.refreshes == 1
    error = await refusal(put_item.plan, {"TableName": "missing", "Item": ITEM})
    assert (error.type, error.message) == ("ResourceNotFoundException", "Requested resource not found")


EMPTY_KEY = (
    "One or more parameter values are not valid. The AttributeValue for a key attribute "
    "cannot contain an empty %s value. Key: %s"
)
HASH_KEY_SIZE = INVALID + "Size of hashkey has exceeded the maximum size limit of2048 bytes"
RANGE_KEY_SIZE = INVALID + "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"

WRONG_PUTS: list[tuple[str, dict[str, Any], str]] = [
    (
        "mixed styles",
        put(Expected={"pk": {"Exists": False}}, ConditionExpression="attribute_not_exists(pk)"),
        MIXED % ("Expected", "ConditionExpression"),
    ),
    (
        "values without an expression",
        put(ExpressionAttributeValues={":v": {"S": "x"}}),
        "ExpressionAttributeValues can only be specified when using expressions: ConditionExpression is null",
    ),
    (
        "names without an expression",
        put(ExpressionAttributeNames={"#v": "x"}),
        "ExpressionAttributeNames can only be specified when using expressions",
    ),
    ("return values", put(ReturnValues="ALL_NEW"), "ReturnValues can only be ALL_OLD or NONE"),
    ("return values", put(ReturnValues="UPDATED_OLD"), "ReturnValues can only be ALL_OLD or NONE"),
    ("56", put(ConditionExpression="((attribute_exists(pk)))"), "redundant parentheses"),
    ("58", put(ConditionExpression="a" * 4097), "Expression size has exceeded the maximum allowed size"),
    ("70", put({"n": {"N": "1" * 39}}), "Attempting to store more than 38 significant digits in a Number"),
    ("70", put({"n": {"N": "NaN"}}), "cannot be converted to a numeric value: NaN"),
    ("70", put({"n": {"N": "1E126"}}), "Number overflow"),
    ("73", put({"n": {"NULL": False}}), INVALID + "Null attribute value types must have the value of true"),
    ("77", put({"s": {"SS": []}}), ENVELOPE + INVALID + "An string set  may not be empty"),
    ("77", put({"s": {"BS": []}}), ENVELOPE + INVALID + "Binary sets should not be empty"),
    ("78", put({"s": {"SS": ["a", "a"]}}), INVALID + "Input collection [a, a] contains duplicates."),
    ("no key", {"TableName": "hash", "Item": {"x": {"S": "y"}}}, INVALID + "Missing the key pk in the item"),
    ("no sort key", put(name="composite"), INVALID + "Missing the key sk in the item"),
    ("77", put({"pk": {"N": "1"}}), INVALID + "Type mismatch for key pk expected: S actual: N"),
    ("empty key", put({"pk": {"S": ""}}), EMPTY_KEY % ("string", "pk")),
    ("empty sort key", put({"sk": {"S": ""}}, "composite"), EMPTY_KEY % ("string", "sk")),
    ("69", put({"pk": {"S": "k" * 2049}}), HASH_KEY_SIZE),
    ("69", put({"sk": {"S": "k" * 1025}}, "composite"), RANGE_KEY_SIZE),
    ("69", put({"pk": {"B": "AAAA"}, "sk": {"B": "AAAA" * 341 + "AAA="}}, "binary"), RANGE_KEY_SIZE),
    ("400 KB", put({"v": {"S": "x" * 409_600}}), "Item size has exceeded the maximum allowed size"),
]


@pytest.mark.parametrize(("case", "body", "text"), WRONG_PUTS, ids=[f"{i}-{c[0]}" for i, c in enumerate(WRONG_PUTS)])
async def test_wrong_puts(case: str, body: dict[str, Any], text: str) -> None:
    error = await refusal(put_item.plan, body)
    assert error.type == "ValidationException", case
    assert text in error.message


async def test_the_request_is_checked_before_the_table_and_the_table_before_the_key() -> None:
    error = await refusal(put_item.plan, put({"s": {"SS": []}}, "missing"))
    assert error.type == "ValidationException"
    error = await refusal(put_item.plan, put(name="missing", ConditionExpression="a =="))
    assert error.type == "ValidationException"
    error = await refusal(put_item.plan, {"TableName": "missing", "Item": {}})
    assert error.type == "ResourceNotFoundException"


@pytest.mark.parametrize(
    ("case", "body"),
    [
        ("69", put({"pk": {"S": "k" * 2048}})),
        ("69", put({"sk": {"S": "k" * 1024}}, "composite")),
        ("70", put({"n": {"N": "9" * 38}})),
        ("70", put({"n": {"N": "1E-130"}})),
        ("empty strings beside keys", put({"v": {"S": ""}})),
        ("exactly 400 KB", put({"v": {"S": "x" * (409_600 - 4)}})),
        ("any position of an ARN", put(name="arn:aws:dynamodb:us-east-1:000000000000:table/hash")),
    ],
)
def test_puts_at_the_limits(case: str, body: dict[str, Any]) -> None:
    assert call_of(put_item.plan, body).size <= 409_600, case


def delete(key: dict[str, Any], name: str = "composite", **members: Any) -> dict[str, Any]:
    return {"TableName": name, "Key": key, **members}


KEY = {"pk": {"S": "a"}, "sk": {"S": "b"}}
NO_KEY = "The provided key element does not match the schema"


def test_a_delete_names_the_row() -> None:
    sent = call_of(delete_item.plan, delete(KEY, ReturnValues="ALL_OLD", ConditionExpression="attribute_exists(pk)"))
    assert sent.key == partition_hash("S", "a") + b"b"
    assert sent.return_old
    assert sent.condition.tree


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (delete({"pk": {"S": "a"}}), NO_KEY),
        (delete({**KEY, "x": {"S": "y"}}), NO_KEY),
        (delete({"pk": {"S": "a"}, "sk": {"N": "1"}}), NO_KEY),
        (delete(KEY, ReturnValues="ALL_NEW"), "ReturnValues can only be ALL_OLD or NONE"),
        (
            delete(KEY, Expected={}, ConditionExpression="a = b", ConditionalOperator="OR"),
            MIXED % ("Expected, ConditionalOperator", "ConditionExpression"),
        ),
        (delete({"pk": {"S": "a"}, "sk": {"SS": []}}), INVALID + "An string set  may not be empty"),
    ],
)
async def test_wrong_deletes(body: dict[str, Any], text: str) -> None:
    error = await refusal(delete_item.plan, body)
    assert (error.type, error.message) == ("ValidationException", text)
