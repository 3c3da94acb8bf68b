"""Scan at the level of plans: pages across partitions, segments, starting keys, wrong requests."""

from __future__ import annotations

import random
from typing import Any

import orjson
import pytest

from cluster.wire import storage_pb2
from dynamo.errors import ApiError
from dynamo.keys import partition_hash, row_key
from dynamo.values import dump
from router.operations import scan
from router.pages import PAGE_BYTES_MAX, segment_hashes
from router.plan import Call
from tests.unit.router_plans import COMPOSITE, answer, failed, refusal

Rows = dict[bytes, dict[str, Any]]


def rows(count: int) -> Rows:
    """Items of the table `composite` by their row keys."""
    items = [{"pk": {"S": f"p{i % 7}"}, "sk": {"S": f"{i:04d}"}} for i in range(count)]
    return {row_key(COMPOSITE.keys, COMPOSITE.attribute_types, item): item for item in items}


class Partitioned:
    """A table that evaluates the Query messages it gets, each row weighing `size` bytes."""

    def __init__(self, held: Rows, size: int = 100) -> None:
        self.held = held
        self.size = size

    def __call__(self, call: Call) -> storage_pb2.Reply:
        query = call.operation
        assert isinstance(query, storage_pb2.Query)
        lower = max(query.start, query.after + b"\0" if query.after else b"")
        keys = [key for key in sorted(self.held) if lower <= key < query.end]
        taken = keys[: max(1, query.max_bytes // self.size)]
        if query.limit:
            taken = taken[: query.limit]
        more = len(taken) < len(keys) or (query.limit and len(taken) == query.limit)
        items = [dump(self.held[key]) for key in taken]
        reply = storage_pb2.QueryReply(
            items=b"" if query.count_only else b",".join(items),
            count=len(taken),
            scanned_count=len(taken),
            size=self.size * len(taken),
        )
        if more and taken:
            reply.last_key, reply.last_key_attributes = taken[-1], items[-1]
        return storage_pb2.Reply(query=reply)


async def pages(node: Partitioned, **members: Any) -> list[dict[str, Any]]:
    """Every page of a scan."""
    body: dict[str, Any] = {"TableName": "composite", **members}
    found = []
    while True:
        page, _ = await answer(scan.plan, body, node)
        found.append(page)
        if "LastEvaluatedKey" not in page:
            return found
        body = {**body, "ExclusiveStartKey": page["LastEvaluatedKey"]}


def sort_keys(found: list[dict[str, Any]]) -> list[str]:
    return [item["sk"]["S"] for page in found for item in page["Items"]]


async def test_a_small_table_is_one_page_over_all_its_partitions() -> None:
    page, calls = await answer(scan.plan, {"TableName": "composite"}, Partitioned(rows(50)))
    assert (page["Count"], page["ScannedCount"], len(page["Items"])) == (50, 50, 50)
    assert "LastEvaluatedKey" not in page
    assert len(calls) == 3
    assert all(call.any_replica for call in calls)


async def test_a_strong_scan_asks_leaders() -> None:
    _, calls = await answer(scan.plan, {"TableName": "composite", "ConsistentRead": True}, Partitioned({}))
    assert not any(call.any_replica for call in calls)
    assert all(call.operation.consistent for call in calls)  # type: ignore[union-attr]


@pytest.mark.parametrize("limit", [1, 3, 49, 50, 51])
async def test_limits_cut_pages_and_no_item_is_lost_or_shown_twice(limit: int) -> None:
    found = await pages(Partitioned(rows(50)), Limit=limit)
    assert sorted(sort_keys(found)) == [f"{i:04d}" for i in range(50)]
    assert all(page["ScannedCount"] <= limit for page in found)
    assert all(page["ScannedCount"] == limit for page in found if "LastEvaluatedKey" in page)


async def test_pages_end_at_one_megabyte_over_all_partitions() -> None:
    found = await pages(Partitioned(rows(60), size=100_000))
    assert sorted(sort_keys(found)) == [f"{i:04d}" for i in range(60)]
    for page in found[:-1]:
        assert 900_000 < 100_000 * page["ScannedCount"] <= PAGE_BYTES_MAX + 100_000


async def test_capacity_is_rounded_once_for_all_rows() -> None:
    asked = {"TableName": "composite", "ReturnConsumedCapacity": "TOTAL"}
    page, _ = await answer(scan.plan, asked, Partitioned(rows(50), size=100))
    assert page["ConsumedCapacity"] == {"TableName": "composite", "CapacityUnits": 1.0}  # 5,000 bytes: 2 / 2
    page, _ = await answer(scan.plan, {**asked, "ConsistentRead": True}, Partitioned({}))
    assert page["ConsumedCapacity"]["CapacityUnits"] == 1.0  # 148


async def test_count_only() -> None:
    page, calls = await answer(scan.plan, {"TableName": "composite", "Select": "COUNT"}, Partitioned(rows(9)))
    assert page == {"Count": 9, "ScannedCount": 9}
    assert all(call.operation.count_only for call in calls)  # type: ignore[union-attr]


async def test_filter_and_projection_go_to_every_partition() -> None:
    body = {
        "TableName": "composite",
        "FilterExpression": "v = :v",
        "ProjectionExpression": "v",
        "ExpressionAttributeValues": {":v": {"N": "1.0"}},
    }
    _, calls = await answer(scan.plan, body, Partitioned({}))
    sent: list[Any] = [call.operation for call in calls]
    assert len(sent) == 3
    assert all(query.filter and query.projection and orjson.loads(query.values) == [{"N": "1"}] for query in sent)


async def test_a_nodes_failure_is_the_answer() -> None:
    with pytest.raises(ApiError) as raised:
        await answer(scan.plan, {"TableName": "composite"}, failed("InternalServerError", "corrupt"))
    assert raised.value.status == 500


# --- segments ---


@pytest.mark.parametrize("total", [1, 2, 3, 4, 7, 100])
async def test_segments_are_disjoint_and_complete(total: int) -> None:
    node = Partitioned(rows(200))
    found = [sort_keys(await pages(node, Segment=i, TotalSegments=total, Limit=11)) for i in range(total)]
    assert sorted(key for part in found for key in part) == [f"{i:04d}" for i in range(200)]  # 101


@pytest.mark.parametrize("total", [1, 3, 7, 1_000_000])
def test_segments_cut_the_space_of_hashes_without_gaps(total: int) -> None:
    assert segment_hashes(0, total)[0] == bytes(16)
    assert segment_hashes(total - 1, total)[1] == b"\xff" * 16
    for segment in random.Random(1).sample(range(total), min(total, 50)):
        low, high = segment_hashes(segment, total)
        assert low <= high
        if segment + 1 < total:
            following = int.from_bytes(segment_hashes(segment + 1, total)[0], "big")
            assert int.from_bytes(high, "big") + 1 == following


async def test_a_starting_key_of_another_segment_is_refused() -> None:
    key = {"pk": {"S": "p1"}}
    hash_ = partition_hash("S", "p1")
    other = next(i for i in range(4) if not segment_hashes(i, 4)[0] <= hash_ <= segment_hashes(i, 4)[1])
    body = {"TableName": "hash", "Segment": other, "TotalSegments": 4, "ExclusiveStartKey": key}
    assert (await refusal(scan.plan, body)).message == (
        "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use ExclusiveStartKey "
        f"with correct Segment. TotalSegments: 4 Segment: {other}"
    )


# --- wrong requests ---

START = "The provided starting key is invalid: "
NO_KEY = "The provided key element does not match the schema"
GSI_ALL = (
    "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for global secondary index "
    "gsi because its projection type is not ALL"
)


def wrong(**members: Any) -> dict[str, Any]:
    return {"TableName": "composite", **members}


WRONG = [
    (
        "100",
        wrong(Segment=0),
        "The TotalSegments parameter is required but was not present in the request when Segment parameter is present",
    ),
    (
        "100",
        wrong(TotalSegments=4),
        "The Segment parameter is required but was not present in the request when parameter TotalSegments is present",
    ),
    (
        "100",
        wrong(Segment=5, TotalSegments=5),
        "The Segment parameter is zero-based and must be less than parameter TotalSegments: "
        "Segment: 5 is not less than TotalSegments: 5",
    ),
    ("85", wrong(ExclusiveStartKey={"pk": {"S": "a"}}), START + NO_KEY),
    ("85", wrong(ExclusiveStartKey={"pk": {"S": "a"}, "sk": {"S": "b"}, "x": {"S": "c"}}), START + NO_KEY),
    ("85", wrong(ExclusiveStartKey={"pk": {"N": "1"}, "sk": {"S": "b"}}), START + NO_KEY),
    (
        "85",
        wrong(ExclusiveStartKey={"pk": {}, "sk": {"S": "b"}}),
        START + "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
    ),
    (
        "93",
        wrong(Select="ALL_PROJECTED_ATTRIBUTES"),
        "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName",
    ),
    (
        "93",
        wrong(Select="SPECIFIC_ATTRIBUTES"),
        "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES",
    ),
    (
        "93",
        wrong(Select="ALL_ATTRIBUTES", ProjectionExpression="pk"),
        "Cannot specify the ProjectionExpression when choosing to get ALL_ATTRIBUTES",
    ),
    (
        "93",
        wrong(Select="COUNT", AttributesToGet=["pk"]),
        "Cannot specify the AttributesToGet when choosing to get only the Count",
    ),
    ("index", wrong(IndexName="none"), "The table does not have the specified index: none"),
    (
        "strong GSI",
        wrong(TableName="indexed", IndexName="gsi", ConsistentRead=True),
        "Consistent reads are not supported on global secondary indexes",
    ),
    ("GSI projection", wrong(TableName="indexed", IndexName="gsi", Select="ALL_ATTRIBUTES"), GSI_ALL),
    (
        "mixed styles",
        wrong(ScanFilter={}, FilterExpression="a = b"),
        "Can not use both expression and non-expression parameters in the same request: "
        "Non-expression parameters: {ScanFilter} Expression parameters: {FilterExpression}",
    ),
    (
        "values alone",
        wrong(ExpressionAttributeValues={":v": {"S": "x"}}),
        "ExpressionAttributeValues can only be specified when using expressions: FilterExpression is null",
    ),
    ("56", wrong(FilterExpression="((a = b))"), "Invalid FilterExpression: The expression has redundant parentheses;"),
]


@pytest.mark.parametrize(("case", "body", "text"), WRONG, ids=[f"{i}-{case[0]}" for i, case in enumerate(WRONG)])
async def test_wrong_scans(case: str, body: dict[str, Any], text: str) -> None:
    error = await refusal(scan.plan, body)
    assert (error.type, error.message) == ("ValidationException", text), case


async def test_a_missing_table_is_told_before_its_indexes_and_keys() -> None:
    body = {"TableName": "missing", "IndexName": "none", "ExclusiveStartKey": {"pk": {"S": "a"}}}
    assert (await refusal(scan.plan, body)).type == "ResourceNotFoundException"
