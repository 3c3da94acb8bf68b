"""Capacity units as they are shown."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.support import Client, Item, n, s

KB = 1024


def sized(size: int) -> Item:
    """An item of exactly so many bytes, with a key of its own."""
    key = s()
    return {"p": key, "v": s("x" * (size - len("pv") - len(key["S"])))}


def consumed(answer: Any) -> Any:
    """ConsumedCapacity; of a batch, that of its only table."""
    capacity = answer["ConsumedCapacity"]
    return capacity[0] if isinstance(capacity, list) else capacity


def writes(client: Client, table: str, kind: str) -> dict[str, Any]:
    """The capacity shown by every write, by operation."""
    item = sized(2 * KB + 1)
    key, entry = {"p": item["p"]}, [{"PutRequest": {"Item": item}}]
    asked = {"ReturnConsumedCapacity": kind}
    change = {"UpdateExpression": "SET w = :w", "ExpressionAttributeValues": {":w": n(1)}}
    return {
        "put": consumed(client.put_item(TableName=table, Item=item, **asked)),
        "batch": consumed(client.batch_write_item(RequestItems={table: entry}, **asked)),
        "update": consumed(client.update_item(TableName=table, Key=key, **change, **asked)),
        "delete": consumed(client.delete_item(TableName=table, Key=key, **asked)),
    }


def reads(client: Client, table: str, kind: str, consistent: bool) -> dict[str, Any]:
    """The capacity shown by every read of an item of 9 KB, by operation."""
    item = sized(9 * KB)
    client.put_item(TableName=table, Item=item)
    key = {"p": item["p"]}
    asked: dict[str, Any] = {"ReturnConsumedCapacity": kind}
    strong = {"ConsistentRead": consistent}
    condition = {"KeyConditionExpression": "p = :p", "ExpressionAttributeValues": {":p": item["p"]}}
    batch = {table: {"Keys": [key], **strong}}
    return {
        "get": consumed(client.get_item(TableName=table, Key=key, **asked, **strong)),
        "batch": consumed(client.batch_get_item(RequestItems=batch, **asked)),
        "query": consumed(client.query(TableName=table, **condition, **asked, **strong)),
    }


def test_total_and_indexes_of_writes(client: Client, simple: str) -> None:  # case 144
    total = {"TableName": simple, "CapacityUnits": 3.0}
    for name, shown in writes(client, simple, "TOTAL").items():
        assert shown == total, name
    for name, shown in writes(client, simple, "INDEXES").items():
        assert shown == {**total, "Table": {"CapacityUnits": 3.0}}, name


@pytest.mark.parametrize(("consistent", "units"), [(True, 3.0), (False, 1.5)])
def test_total_and_indexes_of_reads(client: Client, simple: str, consistent: bool, units: float) -> None:  # case 144
    total = {"TableName": simple, "CapacityUnits": units}
    for name, shown in reads(client, simple, "TOTAL", consistent).items():
        assert shown == total, name
    for name, shown in reads(client, simple, "INDEXES", consistent).items():
        assert shown == {**total, "Table": {"CapacityUnits": units}}, name


def test_none_is_shown_unless_asked(client: Client, simple: str) -> None:
    for asked in ({}, {"ReturnConsumedCapacity": "NONE"}):
        assert "ConsumedCapacity" not in client.get_item(TableName=simple, Key={"p": s()}, **asked)
        assert "ConsumedCapacity" not in client.put_item(TableName=simple, Item={"p": s()}, **asked)


def test_each_item_of_a_batch_is_rounded_up_alone(client: Client, simple: str) -> None:  # case 145
    items = [sized(65 * KB), sized(17 * KB)]
    for item in items:
        client.put_item(TableName=simple, Item=item)
    keys = [{"p": item["p"]} for item in items]
    for consistent, units in ((True, 22.0), (False, 11.0)):
        request = {simple: {"Keys": keys, "ConsistentRead": consistent}}
        answer = client.batch_get_item(RequestItems=request, ReturnConsumedCapacity="TOTAL")
        assert consumed(answer)["CapacityUnits"] == units


@pytest.mark.parametrize(("consistent", "units"), [(True, 1.0), (False, 0.5)])
def test_a_missing_item(client: Client, simple: str, consistent: bool, units: float) -> None:  # case 146
    asked: dict[str, Any] = {"ReturnConsumedCapacity": "TOTAL"}
    answer = client.get_item(TableName=simple, Key={"p": s()}, ConsistentRead=consistent, **asked)
    assert consumed(answer)["CapacityUnits"] == units
    batch = {simple: {"Keys": [{"p": s()}], "ConsistentRead": consistent}}
    assert consumed(client.batch_get_item(RequestItems=batch, **asked))["CapacityUnits"] == units
    values = {":p": s()}
    answer = client.query(
        TableName=simple,
        KeyConditionExpression="p = :p",
        ExpressionAttributeValues=values,
        ConsistentRead=consistent,
        **asked,
    )
    assert consumed(answer)["CapacityUnits"] == units


@pytest.mark.parametrize(("consistent", "units"), [(True, 1.0), (False, 0.5)])
def test_a_scan_of_one_item(client: Client, own: str, consistent: bool, units: float) -> None:  # case 148
    """The honest figure, not DynamoDB's unexplained fourfold one."""
    client.put_item(TableName=own, Item={"p": s(), "c": s()})
    answer = client.scan(TableName=own, ConsistentRead=consistent, ReturnConsumedCapacity="TOTAL")
    assert consumed(answer)["CapacityUnits"] == units


def test_a_query_is_rounded_up_once(client: Client, strings: str) -> None:
    p = s()
    for number in range(10):
        client.put_item(TableName=strings, Item={"p": p, "c": s(str(number))})
    answer = client.query(
        TableName=strings,
        KeyConditionExpression="p = :p",
        ExpressionAttributeValues={":p": p},
        ConsistentRead=True,
        ReturnConsumedCapacity="TOTAL",
    )
    assert consumed(answer)["CapacityUnits"] == 1.0


def test_a_write_counts_the_larger_of_old_and_new(client: Client, simple: str) -> None:
    large = sized(5 * KB)
    small = {"p": large["p"]}
    asked: dict[str, Any] = {"TableName": simple, "ReturnConsumedCapacity": "TOTAL"}
    assert consumed(client.put_item(Item=small, **asked))["CapacityUnits"] == 1.0
    assert consumed(client.put_item(Item=large, **asked))["CapacityUnits"] == 5.0
    assert consumed(client.put_item(Item=small, **asked))["CapacityUnits"] == 5.0
    client.put_item(TableName=simple, Item=large)
    assert consumed(client.delete_item(Key=small, **asked))["CapacityUnits"] == 5.0
    assert consumed(client.delete_item(Key=small, **asked))["CapacityUnits"] == 1.0


def test_projection_and_filter_do_not_make_reads_cheaper(client: Client, simple: str) -> None:
    item = sized(9 * KB)
    client.put_item(TableName=simple, Item=item)
    asked: dict[str, Any] = {"TableName": simple, "ConsistentRead": True, "ReturnConsumedCapacity": "TOTAL"}
    answer = client.get_item(Key={"p": item["p"]}, ProjectionExpression="p", **asked)
    assert consumed(answer)["CapacityUnits"] == 3.0
    answer = client.query(
        KeyConditionExpression="p = :p",
        FilterExpression="attribute_exists(nothing)",
        ExpressionAttributeValues={":p": item["p"]},
        **asked,
    )
    assert (answer["Count"], consumed(answer)["CapacityUnits"]) == (0, 3.0)
