"""Global indexes in a router: made and described, and read over the tables that hold their rows."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from cluster.wire import storage_pb2
from dynamo.keys import encode_range, index_partition_hash, index_row_key, partition_hash, row_key
from dynamo.table import Index, KeySchema
from router.operations import query, scan
from router.plan import Call
from tests.unit.router_plans import INDEX_ROWS, INDEXED, answer, call_of, refusal
from tests.unit.router_tables import ALL, ARN, COMPOSITE, INVALID, UNITS, Catalog, ask, error, new

START = "The provided starting key is invalid: "
G = {"AttributeName": "g", "AttributeType": "S"}
BY_G = {"IndexName": "by_g", "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}], "Projection": ALL}


def definitions(*names: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": "S"} for name in names]


# --- CreateTable, DescribeTable ---


async def test_an_index_is_created_and_shown() -> None:
    catalog = Catalog()
    request = new(AttributeDefinitions=definitions("pk", "g"), GlobalSecondaryIndexes=[BY_G])
    shown = (await ask("CreateTable", request, catalog))["TableDescription"]
    expected = {
        "IndexName": "by_g",
        "KeySchema": BY_G["KeySchema"],
        "Projection": ALL,
        "IndexStatus": "CREATING",
        "ProvisionedThroughput": {"NumberOfDecreasesToday": 0, "ReadCapacityUnits": 0, "WriteCapacityUnits": 0},
        "IndexSizeBytes": 0,
        "ItemCount": 0,
        "IndexArn": f"{ARN}abc/index/by_g",
        "WarmThroughput": {"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 4_000, "Status": "ACTIVE"},
    }
    assert shown["GlobalSecondaryIndexes"] == [expected]
    assert catalog.named("abc").global_indexes == (Index("by_g", KeySchema(("g",)), "ALL"),)
    shown = (await ask("DescribeTable", {"TableName": "abc"}, catalog))["Table"]
    assert shown["GlobalSecondaryIndexes"] == [{**expected, "IndexStatus": "ACTIVE"}]
    shown = (await ask("DeleteTable", {"TableName": "abc"}, catalog))["TableDescription"]
    assert shown["GlobalSecondaryIndexes"] == [{**expected, "IndexStatus": "DELETING"}]


async def test_an_index_keeps_keys_projection_and_throughput() -> None:
    catalog = Catalog()
    keys = [{"AttributeName": name, "KeyType": "HASH"} for name in ("g1", "g2", "g3", "g4")]
    keys += [{"AttributeName": name, "KeyType": "RANGE"} for name in ("r1", "r2", "r3", "r4")]
    index = {
        "IndexName": "wide",
        "KeySchema": keys,
        "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["a", "b"]},
        "ProvisionedThroughput": UNITS,
    }
    request = new(
        AttributeDefinitions=definitions("pk", "g1", "g2", "g3", "g4", "r1", "r2", "r3", "r4"),
        BillingMode="PROVISIONED",
        ProvisionedThroughput=UNITS,
        GlobalSecondaryIndexes=[index],
    )
    (shown,) = (await ask("CreateTable", request, catalog))["TableDescription"]["GlobalSecondaryIndexes"]
    assert (shown["KeySchema"], shown["Projection"]) == (keys, index["Projection"])
    assert shown["ProvisionedThroughput"] == {"NumberOfDecreasesToday": 0, **UNITS}
    assert shown["WarmThroughput"] == {"ReadUnitsPerSecond": 5, "WriteUnitsPerSecond": 6, "Status": "ACTIVE"}
    (kept,) = catalog.named("abc").global_indexes
    assert kept.keys == KeySchema(("g1", "g2", "g3", "g4"), ("r1", "r2", "r3", "r4"))


async def test_an_index_of_a_provisioned_table_needs_units() -> None:
    request = new(
        BillingMode="PROVISIONED",
        ProvisionedThroughput=UNITS,
        AttributeDefinitions=definitions("pk", "g"),
        GlobalSecondaryIndexes=[BY_G],
    )
    refused = await error("CreateTable", request)
    assert refused.message == f"{INVALID}ProvisionedThroughput is not specified for index: by_g"


@pytest.mark.parametrize(
    ("types", "text"),
    [
        ("HRH", "Invalid KeySchema: HASH elements must come before RANGE elements"),
        ("HHHHH", "Invalid KeySchema: At most 4 HASH and 4 RANGE elements"),
        ("HRRRRR", "Invalid KeySchema: At most 4 HASH and 4 RANGE elements"),
    ],
)
async def test_keys_of_an_index_that_cannot_be(types: str, text: str) -> None:
    names = [f"k{n}" for n in range(len(types))]
    keys = [
        {"AttributeName": name, "KeyType": {"H": "HASH", "R": "RANGE"}[type_]}
        for name, type_ in zip(names, types, strict=True)
    ]
    request = new(AttributeDefinitions=definitions("pk", *names), GlobalSecondaryIndexes=[{**BY_G, "KeySchema": keys}])
    assert (await error("CreateTable", request)).message == text


async def test_one_attribute_has_one_type_whatever_the_index() -> None:
    """Case 22: two definitions of one attribute."""
    twice = [*definitions("pk", "g"), {**G, "AttributeType": "N"}]
    refused = await error("CreateTable", new(AttributeDefinitions=twice, GlobalSecondaryIndexes=[BY_G]))
    assert refused.message == f"{INVALID}Duplicate AttributeName in AttributeDefinitions: g"
    assert (await error("CreateTable", new(**COMPOSITE, GlobalSecondaryIndexes=[BY_G]))).type == "ValidationException"


# --- Query ---


def asked(condition: str, index: str = "gsi", **members: Any) -> dict[str, Any]:
    values = {":g": {"N": "1"}, **members.pop("values", {})}
    return {
        "TableName": "indexed",
        "IndexName": index,
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": values,
        **members,
    }


def empty(_: Call) -> storage_pb2.Reply:
    return storage_pb2.Reply(query=storage_pb2.QueryReply())


async def test_a_query_goes_to_the_table_of_the_index() -> None:
    _, (call,) = await answer(query.plan, asked("g = :g"), empty)
    assert (call.table, call.any_replica) == (INDEX_ROWS[0], True)
    assert call.hash == partition_hash("N", "1")
    assert isinstance(call.operation, storage_pb2.Query)
    assert call.operation.start == call.hash


async def test_several_hash_attributes_and_ranges_from_left_to_right() -> None:
    condition = "b > :b AND g = :g AND a = :a AND l = :l"
    values = {":l": {"S": "x"}, ":a": {"S": "y"}, ":b": {"N": "3"}}
    _, (call,) = await answer(query.plan, asked(condition, "wide", values=values), empty)
    assert call.table == INDEX_ROWS[1]
    hashed = index_partition_hash(call.table.keys, {"g": {"N": "1"}, "l": {"S": "x"}})
    assert call.hash == hashed
    assert isinstance(call.operation, storage_pb2.Query)
    equal = hashed + encode_range("S", "y")
    assert equal + encode_range("N", "3") + b"\xff" < call.operation.start < equal + encode_range("N", "3.1")
    assert equal + encode_range("N", "9" * 38) + b"\xff" * 16 < call.operation.end < hashed + encode_range("S", "z")


async def test_units_of_a_query_are_the_index_s() -> None:
    def node(_: Call) -> storage_pb2.Reply:
        return storage_pb2.Reply(query=storage_pb2.QueryReply(scanned_count=2, size=9_000))

    result, _ = await answer(query.plan, asked("g = :g", ReturnConsumedCapacity="INDEXES"), node)
    assert result["ConsumedCapacity"] == {
        "TableName": "indexed",
        "CapacityUnits": 1.5,
        "Table": {"CapacityUnits": 0.0},
        "GlobalSecondaryIndexes": {"gsi": {"CapacityUnits": 1.5}},
    }
    result, _ = await answer(query.plan, asked("g = :g", ReturnConsumedCapacity="TOTAL"), node)
    assert result["ConsumedCapacity"] == {"TableName": "indexed", "CapacityUnits": 1.5}


KEY = {"pk": {"S": "p"}, "sk": {"S": "s"}, "g": {"N": "1"}}


def test_a_start_key_holds_the_keys_of_index_and_table() -> None:
    sent = call_of(query.plan, asked("g = :g", ExclusiveStartKey=KEY))
    base_key = row_key(INDEXED.keys, INDEXED.attribute_types, KEY)
    assert sent.after == index_row_key(KeySchema(("g",)), INDEXED.attribute_types, KEY, base_key)


OUTSIDE = "The provided starting key is outside query boundaries based on provided conditions"
SCHEMA = f"{START}The provided key element does not match the schema"
WRONG = [
    ("strong", asked("g = :g", ConsistentRead=True), "Consistent reads are not supported on global secondary indexes"),
    (
        "92",
        asked("g = :g", ProjectionExpression="pk, z, y.q"),
        f"{INVALID}Global secondary index gsi does not project [y, z]",
    ),
    (
        "92 filter",
        asked("g = :g", FilterExpression="z = :g"),
        f"{INVALID}Secondary index gsi does not project one or more filter attributes: [z]",
    ),
    (
        "93",
        asked("g = :g", Select="ALL_ATTRIBUTES"),
        f"{INVALID}Select type ALL_ATTRIBUTES is not supported for global secondary index gsi because its projection "
        "type is not ALL",
    ),
    ("84", asked("g = :g AND pk = :p", values={":p": {"S": "p"}}), "Query key condition not supported"),
    ("85", asked("g = :g", ExclusiveStartKey={**KEY, "g": {"N": "2"}}), OUTSIDE),
    ("85", asked("g = :g", ExclusiveStartKey={"pk": KEY["pk"], "sk": KEY["sk"]}), SCHEMA),
    ("85", asked("g = :g", ExclusiveStartKey={"g": KEY["g"]}), SCHEMA),
    ("85", asked("g = :g", ExclusiveStartKey={**KEY, "x": {"S": "x"}}), SCHEMA),
    ("85", asked("g = :g", ExclusiveStartKey={**KEY, "g": {"S": "1"}}), SCHEMA),
    (
        "gap",
        asked("g = :g AND l = :l AND b = :g", "wide", values={":l": {"S": "x"}}),
        "Query condition missed key schema element: a",
    ),
    ("hash", asked("g = :g", "wide"), "Query condition missed key schema element: l"),
    (
        "early range",
        asked("g = :g AND l = :l AND a > :l AND b = :g", "wide", values={":l": {"S": "x"}}),
        "Query key condition not supported",
    ),
    (
        "filter",
        asked("g = :g", FilterExpression="g = :g"),
        "Filter Expression can only contain non-primary key attributes: Primary key attribute: g",
    ),
    ("backfilling", asked("g = :g", "new"), "Cannot read from backfilling global secondary index: new"),
]


@pytest.mark.parametrize(("case", "body", "text"), WRONG, ids=[f"{i}-{case[0]}" for i, case in enumerate(WRONG)])
async def test_wrong_queries(case: str, body: dict[str, Any], text: str) -> None:
    refused = await refusal(query.plan, body)
    assert (refused.type, refused.message) == ("ValidationException", text), case


def test_a_filter_may_use_the_table_s_keys() -> None:
    assert call_of(query.plan, asked("g = :g", FilterExpression="pk = :p", values={":p": {"S": "p"}})).filter


# --- Scan ---


async def test_a_scan_goes_through_the_table_of_the_index() -> None:
    def node(call: Call) -> storage_pb2.Reply:
        assert isinstance(call.operation, storage_pb2.Query)
        items = orjson.dumps({"n": call.operation.start[:1].hex()})
        return storage_pb2.Reply(query=storage_pb2.QueryReply(items=items, count=1, scanned_count=1, size=10))

    body = {"TableName": "indexed", "IndexName": "gsi", "ReturnConsumedCapacity": "INDEXES"}
    result, calls = await answer(scan.plan, body, node)
    assert [item["n"] for item in result["Items"]] == ["00", "40", "a0"]
    assert {call.table.id for call in calls} == {6}
    assert result["ConsumedCapacity"]["GlobalSecondaryIndexes"] == {"gsi": {"CapacityUnits": 0.5}}


async def test_a_scan_starts_after_an_index_s_row() -> None:
    body = {"TableName": "indexed", "IndexName": "gsi", "ExclusiveStartKey": KEY}
    _, calls = await answer(scan.plan, body, empty)
    assert isinstance(calls[0].operation, storage_pb2.Query)
    base_key = row_key(INDEXED.keys, INDEXED.attribute_types, KEY)
    assert calls[0].operation.after == index_row_key(KeySchema(("g",)), INDEXED.attribute_types, KEY, base_key)
    refused = await refusal(scan.plan, {**body, "ExclusiveStartKey": {"pk": KEY["pk"], "sk": KEY["sk"]}})
    assert refused.message == SCHEMA
