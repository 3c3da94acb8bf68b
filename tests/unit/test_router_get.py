"""GetItem at the level of plans."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.wire import storage_pb2
from dynamo.errors import ApiError
from dynamo.expressions.tree import Path, decode_projection
from dynamo.keys import partition_hash
from router.operations import get_item
from router.plan import Call, Single
from tests.unit.router_plans import answer, call_of, context, failed, refusal

INVALID = "One or more parameter values were invalid: "
KEY = {"pk": {"S": "a"}, "sk": {"S": "b"}}
ITEM = b'{"pk":{"S":"a"},"sk":{"S":"b"},"v":{"N":"1"}}'


def get(key: dict[str, Any] | None = None, name: str = "composite", **members: Any) -> dict[str, Any]:
    return {"TableName": name, "Key": KEY if key is None else key, **members}


def found(item: bytes = ITEM, size: int = 10) -> Any:
    def node(_: Call) -> storage_pb2.Reply:
        return storage_pb2.Reply(item=storage_pb2.ItemReply(item=item, size=size))

    return node


@pytest.mark.parametrize(("members", "consistent"), [({}, False), ({"ConsistentRead": True}, True)])
def test_only_strong_reads_need_the_leader(members: dict[str, Any], consistent: bool) -> None:
    made = get_item.plan(get(**members), context())
    assert isinstance(made, Single)
    assert made.call.any_replica is not consistent
    assert made.call.operation_id == 0
    sent = made.call.operation
    assert isinstance(sent, storage_pb2.Get)
    assert sent.consistent is consistent
    assert sent.key == partition_hash("S", "a") + b"b"
    assert sent.projection == b""


@pytest.mark.parametrize(
    ("members", "paths"),
    [
        ({"ProjectionExpression": "v, sk"}, [("v",), ("sk",)]),
        ({"ProjectionExpression": "#v.x", "ExpressionAttributeNames": {"#v": "v"}}, [("v", "x")]),
        ({"AttributesToGet": ["v", "a.b"]}, [("v",), ("a.b",)]),
    ],
)
def test_projections(members: dict[str, Any], paths: list[tuple[str, ...]]) -> None:
    sent = call_of(get_item.plan, get(**members))
    assert decode_projection(sent.projection) == tuple(Path(path) for path in paths)


async def test_answers() -> None:
    body, _ = await answer(get_item.plan, get(), found())
    assert body == {"Item": {**KEY, "v": {"N": "1"}}}
    body, _ = await answer(get_item.plan, get(), found(b"", 0))
    assert body == {}
    body, _ = await answer(get_item.plan, get(), found(b"{}"))
    assert body == {"Item": {}}  # there is an item, and the projection leaves nothing of it
    with pytest.raises(ApiError) as raised:
        await answer(get_item.plan, get(), failed("InternalServerError", "x"))
    assert raised.value.status == 500


@pytest.mark.parametrize(
    ("size", "consistent", "units"),
    [(0, False, 0.5), (0, True, 1), (4096, False, 0.5), (4097, True, 2), (409_600, True, 100)],  # 146: a missing item
)
async def test_capacity(size: int, consistent: bool, units: float) -> None:
    asked = get(ConsistentRead=consistent, ReturnConsumedCapacity="TOTAL")
    body, _ = await answer(get_item.plan, asked, found(ITEM if size else b"", size))
    assert body["ConsumedCapacity"] == {"TableName": "composite", "CapacityUnits": units}
    assert ("Item" in body) is bool(size)


WRONG = [
    ("missing sort key", get({"pk": {"S": "a"}}), "The provided key element does not match the schema"),
    ("wrong type", get({"pk": {"N": "1"}, "sk": {"S": "b"}}), "The provided key element does not match the schema"),
    ("too many", get({**KEY, "v": {"S": "b"}}), "The provided key element does not match the schema"),
    (
        "69",
        get({"pk": {"S": "a"}, "sk": {"S": "k" * 1025}}),
        INVALID + "Aggregated size of all range keys has exceeded the size limit of 1024 bytes",
    ),
    (
        "mixed styles",
        get(AttributesToGet=["a"], ProjectionExpression="a"),
        "Can not use both expression and non-expression parameters in the same request: "
        "Non-expression parameters: {AttributesToGet} Expression parameters: {ProjectionExpression}",
    ),
    (
        "names alone",
        get(ExpressionAttributeNames={"#a": "a"}),
        "ExpressionAttributeNames can only be specified when using expressions",
    ),
    ("twice", get(AttributesToGet=["a", "b", "a"]), INVALID + "Duplicate value in attribute name: a"),
    (
        "syntax",
        get(ProjectionExpression="!!! INVALID !!!"),
        'Invalid ProjectionExpression: Syntax error; token: "!", near: "!!"',
    ),
    ("empty", get(ProjectionExpression=""), "Invalid ProjectionExpression: The expression can not be empty;"),
    (
        "96: overlap",
        get(ProjectionExpression="a, a.b"),
        "Invalid ProjectionExpression: Two document paths overlap with each other; must remove or rewrite one of these "
        "paths; path one: [a], path two: [a, b]",
    ),
]


@pytest.mark.parametrize(("case", "body", "text"), WRONG, ids=[case[0] for case in WRONG])
async def test_wrong_gets(case: str, body: dict[str, Any], text: str) -> None:
    error = await refusal(get_item.plan, body)
    assert (error.type, error.message) == ("ValidationException", text), case


async def test_a_missing_table() -> None:
    error = await refusal(get_item.plan, get({}, "missing"))
    assert (error.type, error.message) == ("ResourceNotFoundException", "Requested resource not found")
    error = await refusal(get_item.plan, get({"pk": {"S": ""}}, "hash"))
    assert error.message == (
        "One or more parameter values are not valid. The AttributeValue for a key attribute "
        "cannot contain an empty string value. Key: pk"
    )
