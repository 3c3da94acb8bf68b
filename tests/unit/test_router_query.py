"""Query at the level of plans: ranges of rows, answers, starting keys, wrong requests."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from cluster.wire import storage_pb2
from dynamo.keys import encode_sort, partition_hash
from dynamo.number import normalise
from router.operations import query
from router.pages import PAGE_BYTES_MAX
from router.plan import Call, Single
from tests.unit.router_plans import answer, call_of, context, refusal

INVALID = "One or more parameter values were invalid: "
START = "The provided starting key is invalid: "
HASHED = partition_hash("S", "a")


def ask(condition: str | None = "pk = :p", name: str = "composite", **members: Any) -> dict[str, Any]:
    """A Query for the partition key "a"; `values` are further ExpressionAttributeValues."""
    values = {":p": {"S": "a"}, **members.pop("values", {})}
    body = {"TableName": name, **members}
    if condition is not None:
        body |= {"KeyConditionExpression": condition, "ExpressionAttributeValues": values}
    return body


def legacy(**conditions: Any) -> dict[str, Any]:
    """A Query by KeyConditions, given as (operator, values…)."""
    return {
        "TableName": "composite",
        "KeyConditions": {
            name: {"ComparisonOperator": operator, "AttributeValueList": values}
            for name, (operator, *values) in conditions.items()
        },
    }


def chosen(body: dict[str, Any], sort_keys: list[tuple[str, str]]) -> list[str]:
    """Which of the rows with partition key "a" and these sort keys the query's bounds hold."""
    sent = call_of(query.plan, body)
    rows = [(HASHED + encode_sort(kind, content), content) for kind, content in sort_keys]
    return [content for row, content in sorted(rows) if sent.start <= row < sent.end]


TEXTS = [("S", text) for text in ("a", "ab", "abc", "b", "b\x00", "ba", "c", "\U0010ffff")]


@pytest.mark.parametrize(
    ("condition", "values", "found"),
    [
        ("pk = :p", {}, ["a", "ab", "abc", "b", "b\x00", "ba", "c", "\U0010ffff"]),
        ("pk = :p AND sk = :s", {":s": {"S": "b"}}, ["b"]),
        ("sk < :s AND pk = :p", {":s": {"S": "b"}}, ["a", "ab", "abc"]),
        ("pk = :p AND sk <= :s", {":s": {"S": "b"}}, ["a", "ab", "abc", "b"]),
        ("pk = :p AND sk > :s", {":s": {"S": "b"}}, ["b\x00", "ba", "c", "\U0010ffff"]),
        ("pk = :p AND sk >= :s", {":s": {"S": "b"}}, ["b", "b\x00", "ba", "c", "\U0010ffff"]),
        ("pk = :p AND :s <= sk", {":s": {"S": "ba"}}, ["ba", "c", "\U0010ffff"]),  # 82
        ("pk = :p AND sk BETWEEN :s AND :t", {":s": {"S": "ab"}, ":t": {"S": "b"}}, ["ab", "abc", "b"]),
        ("(pk = :p) AND (begins_with(sk, :s))", {":s": {"S": "a"}}, ["a", "ab", "abc"]),  # 81
        ("pk = :p AND begins_with(sk, :s)", {":s": {"S": "\U0010ffff"}}, ["\U0010ffff"]),
    ],
)
def test_ranges_of_texts(condition: str, values: dict[str, Any], found: list[str]) -> None:
    assert chosen(ask(condition, values=values), TEXTS) == found


NUMBERS = ["-1E+100", "-2", "-1.5", "0", "1E-130", "2", "10", "9.9E+125"]


@pytest.mark.parametrize(
    ("condition", "values", "found"),
    [
        ("pk = :p AND sk > :s", {":s": {"N": "-2"}}, ["-1.5", "0", "1E-130", "2", "10", "9.9E+125"]),
        ("pk = :p AND sk BETWEEN :s AND :t", {":s": {"N": "-1.50"}, ":t": {"N": "2.0"}}, ["-1.5", "0", "1E-130", "2"]),
        ("pk = :p AND sk = :s", {":s": {"N": "1e1"}}, ["10"]),
    ],
)
def test_ranges_of_numbers(condition: str, values: dict[str, Any], found: list[str]) -> None:
    stored = [("N", normalise(text)) for text in NUMBERS]
    assert chosen(ask(condition, "numbers", values=values), stored) == [normalise(text) for text in found]


@pytest.mark.parametrize("prefix", ["/w==", "//8=", "AP8="])
def test_prefixes_of_binary_keys_end_where_the_prefix_ends(prefix: str) -> None:
    key = "AQID"
    body = {
        "TableName": "binary",
        "KeyConditionExpression": "pk = :p AND begins_with(sk, :s)",
        "ExpressionAttributeValues": {":p": {"B": key}, ":s": {"B": prefix}},
    }
    sent = call_of(query.plan, body)
    hashed = partition_hash("B", key)
    beginning = hashed + encode_sort("B", prefix)
    assert sent.start == beginning
    for row in (beginning, beginning + b"\x00", beginning + b"\xff" * 1020):
        assert row < sent.end
    above = (int.from_bytes(beginning, "big") + 1).to_bytes(len(beginning), "big")  # the next of the same length
    assert sent.end <= above


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (legacy(pk=("EQ", {"S": "a"})), ["a", "ab", "abc", "b", "b\x00", "ba", "c", "\U0010ffff"]),
        (legacy(pk=("EQ", {"S": "a"}), sk=("BEGINS_WITH", {"S": "ab"})), ["ab", "abc"]),
        (legacy(sk=("BETWEEN", {"S": "b"}, {"S": "c"}), pk=("EQ", {"S": "a"})), ["b", "b\x00", "ba", "c"]),
        (legacy(pk=("EQ", {"S": "a"}), sk=("GT", {"S": "c"})), ["\U0010ffff"]),
    ],
)
def test_key_conditions_of_the_older_kind(body: dict[str, Any], found: list[str]) -> None:
    assert chosen(body, TEXTS) == found


def test_a_query_goes_to_one_partition_with_all_its_settings() -> None:
    made = query.plan(
        ask(
            FilterExpression="v > :v",
            ProjectionExpression="v, #w",
            ExpressionAttributeNames={"#w": "w"},
            values={":v": {"N": "1.0"}},
            ScanIndexForward=False,
            Limit=7,
            ConsistentRead=True,
        ),
        context(),
    )
    assert isinstance(made, Single)
    assert made.call.hash == HASHED
    assert not made.call.any_replica
    sent = made.call.operation
    assert isinstance(sent, storage_pb2.Query)
    assert (sent.reverse, sent.limit, sent.max_bytes, sent.consistent) == (True, 7, PAGE_BYTES_MAX, True)
    assert sent.filter
    assert sent.projection
    assert {"N": "1"} in orjson.loads(sent.values)


def page(**members: Any) -> Any:
    def node(_: Call) -> storage_pb2.Reply:
        return storage_pb2.Reply(query=storage_pb2.QueryReply(**members))

    return node


async def test_answers() -> None:
    items = b'{"pk":{"S":"a"}},{"pk":{"S":"b"}}'
    body, _ = await answer(query.plan, ask(), page(items=items, count=2, scanned_count=3, size=5000))
    assert body == {"Count": 2, "Items": [{"pk": {"S": "a"}}, {"pk": {"S": "b"}}], "ScannedCount": 3}
    last = {"pk": {"S": "a"}, "sk": {"S": "b"}}
    body, _ = await answer(
        query.plan,
        ask(ReturnConsumedCapacity="INDEXES"),
        page(count=0, scanned_count=3, size=5000, last_key=b"k", last_key_attributes=orjson.dumps(last)),
    )
    assert body == {
        "Count": 0,
        "Items": [],
        "ScannedCount": 3,
        "LastEvaluatedKey": last,
        "ConsumedCapacity": {"TableName": "composite", "CapacityUnits": 1.0, "Table": {"CapacityUnits": 1.0}},
    }
    body, _ = await answer(query.plan, ask(Select="COUNT"), page(count=2, scanned_count=2))
    assert body == {"Count": 2, "ScannedCount": 2}


def test_a_starting_key_is_where_the_rows_go_on() -> None:
    body = ask("pk = :p AND sk > :s", values={":s": {"S": "b"}}, ExclusiveStartKey={"pk": {"S": "a"}, "sk": {"S": "c"}})
    assert call_of(query.plan, body).after == HASHED + b"c"


NO_KEY = "The provided key element does not match the schema"
WRONG = [
    ("no hash", ask("sk = :p"), "Query condition missed key schema element: pk"),
    ("not a key", ask("attr1 = :p"), "Query condition missed key schema element: pk"),
    (
        "no condition",
        ask(None),
        "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.",
    ),
    ("range on hash", ask("pk > :p"), "Query key condition not supported"),
    (
        "type",
        ask("pk = :p AND sk = :s", values={":s": {"N": "1"}}),
        INVALID + "Condition parameter type does not match schema type",
    ),
    (
        "empty",
        ask("pk = :p AND sk = :s", values={":s": {"S": ""}}),
        "One or more parameter values are not valid. The AttributeValue for a key attribute "
        "cannot contain an empty string value. Key: sk",
    ),
    (
        "69",
        ask("pk = :p AND sk = :s", values={":s": {"S": "x" * 1025}}),
        INVALID + "Aggregated size of all range keys has exceeded the size limit of 1024 bytes",
    ),
    ("81", ask("((pk = :p))"), "Invalid KeyConditionExpression: The expression has redundant parentheses;"),
    ("empty text", ask(""), "Invalid KeyConditionExpression: The expression can not be empty;"),
    (
        "54: bad filter, whatever the rows",
        ask(FilterExpression="#missing = :p"),
        "Invalid FilterExpression: An expression attribute name used in the document path is not defined; "
        "attribute name: #missing",
    ),
    (
        "filter on a key",
        ask(FilterExpression="sk = :p"),
        "Filter Expression can only contain non-primary key attributes: Primary key attribute: sk",
    ),
    (
        "unused name",
        ask(ExpressionAttributeNames={"#unused": "x"}),
        "Value provided in ExpressionAttributeNames unused in expressions: keys: {#unused}",
    ),
    (
        "mixed styles",
        {**ask(), "QueryFilter": {}, "AttributesToGet": ["a"]},
        "Can not use both expression and non-expression parameters in the same request: "
        "Non-expression parameters: {AttributesToGet, QueryFilter} Expression parameters: {KeyConditionExpression}",
    ),
    (
        "values alone",
        {**ask(None), "ExpressionAttributeValues": {":v": {"S": "a"}}},
        "ExpressionAttributeValues can only be specified when using expressions: "
        "FilterExpression and KeyConditionExpression are null",
    ),
    (
        "85: another partition",
        ask(ExclusiveStartKey={"pk": {"S": "other"}, "sk": {"S": "c"}}),
        "The provided starting key is outside query boundaries based on provided conditions",
    ),
    ("85: missing", ask(ExclusiveStartKey={"pk": {"S": "a"}}), START + NO_KEY),
    (
        "85: extra",
        ask(ExclusiveStartKey={"pk": {"S": "a"}, "sk": {"S": "c"}, "x": {"S": "y"}}),
        START + NO_KEY,
    ),
    (
        "85: outside the range",
        ask("pk = :p AND sk > :s", values={":s": {"S": "b"}}, ExclusiveStartKey={"pk": {"S": "a"}, "sk": {"S": "b"}}),
        "The provided starting key does not match the range key predicate",
    ),
    (
        "93",
        ask(Select="SPECIFIC_ATTRIBUTES"),
        "1 validation error detected: "
        "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES",
    ),
    (
        "93",
        ask(Select="ALL_PROJECTED_ATTRIBUTES"),
        "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName",
    ),
    ("index", ask(IndexName="none"), "The table does not have the specified index: none"),
    (
        "strong GSI",
        ask("g = :g", "indexed", IndexName="gsi", ConsistentRead=True, values={":g": {"N": "1"}}),
        "Consistent reads are not supported on global secondary indexes",
    ),
    (
        "legacy operator",
        legacy(pk=("EQ", {"S": "a"}), sk=("NE", {"S": "b"})),
        "Attempted conditional constraint is not an indexable operation",
    ),
]


@pytest.mark.parametrize(("case", "body", "text"), WRONG, ids=[f"{i}-{case[0]}" for i, case in enumerate(WRONG)])
async def test_wrong_queries(case: str, body: dict[str, Any], text: str) -> None:
    if case == "strong GSI":
        body["ExpressionAttributeValues"].pop(":p")
    error = await refusal(query.plan, body)
    assert (error.type, error.message) == ("ValidationException", text), case
