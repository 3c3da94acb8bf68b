"""Local secondary indexes through boto3. Numbers are those of the public cases that Trizone is held to."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from trizone import Cluster
from trizone.services import Services

INVALID = "One or more parameter values were invalid: "
UNPROJECTED = "x" * 5000


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with Cluster() as cluster:
        yield cluster.client()


def index(name: str, key: str, projection: str, *included: str) -> dict[str, Any]:
    """An element of LocalSecondaryIndexes."""
    described: dict[str, Any] = {"ProjectionType": projection}
    if included:
        described["NonKeyAttributes"] = list(included)
    schema = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": key, "KeyType": "RANGE"}]
    return {"IndexName": name, "KeySchema": schema, "Projection": described}


ALL, KEYS, INCLUDE = index("all", "a", "ALL"), index("keys", "b", "KEYS_ONLY"), index("include", "c", "INCLUDE", "v")


def request(*indexes: dict[str, Any], **members: Any) -> dict[str, Any]:
    """A CreateTable request."""
    types = {"pk": "S", "sk": "S", "a": "S", "b": "N", "c": "B"}
    keys = {element["AttributeName"] for one in indexes for element in one["KeySchema"]} | {"pk", "sk"}
    return {
        "TableName": f"lsi-{uuid.uuid4()}",
        "AttributeDefinitions": [{"AttributeName": n, "AttributeType": t} for n, t in types.items() if n in keys],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        "BillingMode": "PAY_PER_REQUEST",
        "LocalSecondaryIndexes": list(indexes),
        **members,
    }


def create(client: Any, *indexes: dict[str, Any]) -> str:
    """A new table with these indexes; its name."""
    asked = request(*indexes or (ALL, KEYS, INCLUDE))
    name: str = asked["TableName"]
    client.create_table(**asked)
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
    return name


@pytest.fixture(scope="module")
def filled(client: Any) -> str:
    """A table with the partition keys p and q; under p ten items, of which every fifth lacks `b`, with few values."""
    name = create(client)
    for n in range(10):
        item = {"pk": {"S": "p"}, "sk": {"S": f"s{n}"}, "a": {"S": f"a{9 - n}"}, "c": {"B": bytes((n // 4, 0, 255))}}
        item |= {"v": {"S": "v"}, "w": {"S": UNPROJECTED}}
        if n % 5 != 4:
            item["b"] = {"N": str(n % 3 - 1)}
        client.put_item(TableName=name, Item=item)
    client.put_item(TableName=name, Item={"pk": {"S": "q"}, "sk": {"S": "s"}, "a": {"S": "a"}, "b": {"N": "0"}})
    return name


def query(client: Any, table: str, index_name: str, condition: str = "pk = :p", **members: Any) -> Any:
    values = {":p": {"S": "p"}, **members.pop("values", {})}
    return client.query(
        TableName=table,
        IndexName=index_name,
        KeyConditionExpression=condition,
        ExpressionAttributeValues=values,
        **members,
    )


def error_of(call: Callable[..., Any], **members: Any) -> tuple[str, str]:
    """The code and message of the error that a call ends with."""
    with pytest.raises(ClientError) as raised:
        call(**members)
    error = raised.value.response["Error"]
    return error["Code"], error["Message"]


# --- tables ---


def test_a_table_shows_its_indexes(client: Any) -> None:
    asked = request(ALL, KEYS, INCLUDE)
    made = client.create_table(**asked)["TableDescription"]
    shown = client.describe_table(TableName=asked["TableName"])["Table"]
    assert [one["IndexName"] for one in made["LocalSecondaryIndexes"]] == ["all", "keys", "include"]
    for one, wanted in zip(shown["LocalSecondaryIndexes"], (ALL, KEYS, INCLUDE), strict=True):
        assert one == {
            **wanted,
            "IndexSizeBytes": 0,
            "ItemCount": 0,
            "IndexArn": f"{shown['TableArn']}/index/{wanted['IndexName']}",
        }


def test_counts_of_indexes(client: Any, filled: str) -> None:
    table = client.describe_table(TableName=filled)["Table"]
    assert [one["ItemCount"] for one in table["LocalSecondaryIndexes"]] == [11, 9, 10]
    whole, keys, include = (one["IndexSizeBytes"] for one in table["LocalSecondaryIndexes"])
    assert whole == table["TableSizeBytes"]
    assert 0 < keys < include < 1000
    name = create(client, ALL)
    client.put_item(TableName=name, Item={"pk": {"S": "p"}, "sk": {"S": "s"}, "a": {"S": "a"}})
    client.update_item(TableName=name, Key={"pk": {"S": "p"}, "sk": {"S": "s"}}, UpdateExpression="REMOVE a")
    (counted,) = client.describe_table(TableName=name)["Table"]["LocalSecondaryIndexes"]
    assert (counted["ItemCount"], counted["IndexSizeBytes"]) == (0, 0)


NO_RANGE = {**ALL, "KeySchema": ALL["KeySchema"][:1]}
OTHER_HASH = {**ALL, "KeySchema": [{"AttributeName": "sk", "KeyType": "HASH"}, ALL["KeySchema"][1]]}


@pytest.mark.parametrize(
    ("indexes", "message"),
    [
        (
            [{**ALL, "Projection": {"ProjectionType": "INCLUDE"}}],
            "ProjectionType is INCLUDE, but NonKeyAttributes is not specified",
        ),
        ([index("one", "a", "ALL", "v")], "ProjectionType is ALL, but NonKeyAttributes is specified"),
        ([index("one", "a", "KEYS_ONLY", "v")], "ProjectionType is KEYS_ONLY, but NonKeyAttributes is specified"),
        ([index("one", "a", "INCLUDE", "v", "v")], "Duplicate NonKeyAttributes: [v, v]"),
        ([{**ALL, "Projection": {}}], "Unknown ProjectionType: null"),
        ([ALL, {**KEYS, "IndexName": "all"}], "Duplicate index name: all"),
        ([NO_RANGE], "Index KeySchema does not have a range key for index: all"),
        (
            [OTHER_HASH],
            "Index KeySchema does not have the same leading hash key as table KeySchema for index: all. "
            "index hash key: sk, table hash key: pk",
        ),
        (
            [index(f"one{n}", "a", "ALL") for n in range(6)],
            "Number of LocalSecondaryIndexes exceeds per-table limit of 5",
        ),
    ],
)
def test_indexes_that_cannot_be(client: Any, indexes: list[dict[str, Any]], message: str) -> None:
    """Cases 29 and 30."""
    code, text = error_of(client.create_table, **request(*indexes))
    assert (code, text) == ("ValidationException", INVALID + message)


def test_a_local_and_a_global_index_of_one_name(client: Any) -> None:
    """Case 30."""
    global_ = [{"IndexName": "all", "KeySchema": ALL["KeySchema"][1:], "Projection": {"ProjectionType": "ALL"}}]
    global_[0]["KeySchema"] = [{"AttributeName": "a", "KeyType": "HASH"}]
    code, text = error_of(client.create_table, **request(ALL, GlobalSecondaryIndexes=global_))
    assert (code, text) == ("ValidationException", f"{INVALID}Duplicate index name: all")


def test_one_attribute_defined_twice(client: Any) -> None:
    """Case 22."""
    asked = request(ALL)
    asked["AttributeDefinitions"].append({"AttributeName": "a", "AttributeType": "N"})
    code, text = error_of(client.create_table, **asked)
    assert code == "ValidationException"
    assert text.startswith(INVALID)


def test_a_table_without_sort_key_has_no_local_indexes(client: Any) -> None:
    asked = request(ALL)
    asked["KeySchema"].pop()
    asked["AttributeDefinitions"] = [each for each in asked["AttributeDefinitions"] if each["AttributeName"] != "sk"]
    code, text = error_of(client.create_table, **asked)
    assert (code, text) == (
        "ValidationException",
        f"{INVALID}Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex",
    )


# --- reads ---


@pytest.mark.parametrize("consistent", [False, True])
@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("all", {"pk", "sk", "a", "b", "c", "v", "w"}),
        ("keys", {"pk", "sk", "b"}),
        ("include", {"pk", "sk", "c", "v"}),
    ],
)
def test_what_is_projected(client: Any, filled: str, name: str, names: set[str], consistent: bool) -> None:
    items = query(client, filled, name, ConsistentRead=consistent)["Items"]
    assert set().union(*items) == names
    again = query(client, filled, name, ConsistentRead=consistent, Select="ALL_PROJECTED_ATTRIBUTES")["Items"]
    assert again == items


@pytest.mark.parametrize(
    ("name", "condition", "values", "found"),
    [
        ("all", "a = :x", {":x": {"S": "a3"}}, ["s6"]),
        ("all", "begins_with(a, :x)", {":x": {"S": "a"}}, [f"s{n}" for n in range(9, -1, -1)]),
        ("all", "a BETWEEN :x AND :y", {":x": {"S": "a3"}, ":y": {"S": "a5"}}, ["s6", "s5", "s4"]),
        ("all", "a > :x", {":x": {"S": "a7"}}, ["s1", "s0"]),
        ("all", "a <= :x", {":x": {"S": "a1"}}, ["s9", "s8"]),
        ("keys", "b < :x", {":x": {"N": "0"}}, ["s0", "s3", "s6"]),
        ("keys", "b >= :x", {":x": {"N": "1.0"}}, ["s2", "s5", "s8"]),
        ("include", "begins_with(c, :x)", {":x": {"B": b"\x02\x00"}}, ["s8", "s9"]),
        ("include", "c = :x", {":x": {"B": b"\x01\x00\xff"}}, ["s4", "s5", "s6", "s7"]),
    ],
)
def test_key_conditions(
    client: Any, filled: str, name: str, condition: str, values: dict[str, Any], found: list[str]
) -> None:
    items = query(client, filled, name, f"pk = :p AND {condition}", values=values, ConsistentRead=True)["Items"]
    got = [each["sk"]["S"] for each in items]
    assert got == found if name == "all" else sorted(got) == found


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("name", ["all", "keys", "include"])
def test_pages_hold_everything_once(client: Any, filled: str, name: str, forward: bool) -> None:
    """Cases 86, 88, 90, 102 for a local index."""
    whole = query(client, filled, name, ScanIndexForward=forward)["Items"]
    assert len(whole) == (8 if name == "keys" else 10)
    key = {"all": "a", "keys": "b", "include": "c"}[name]
    paged: list[Any] = []
    start: dict[str, Any] = {}
    while True:
        page = query(client, filled, name, ScanIndexForward=forward, Limit=3, **start)
        paged += page["Items"]
        if "LastEvaluatedKey" not in page:
            break
        assert page["LastEvaluatedKey"] == {each: page["Items"][-1][each] for each in ("pk", "sk", key)}
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
    assert paged == whole


def test_scans(client: Any, filled: str) -> None:
    items = client.scan(TableName=filled, IndexName="keys", ConsistentRead=True)["Items"]
    assert len(items) == 9
    parts = [client.scan(TableName=filled, IndexName="keys", Segment=n, TotalSegments=3)["Items"] for n in range(3)]
    assert sorted(str(each) for part in parts for each in part) == sorted(map(str, items))
    start: dict[str, Any] = {}
    paged = []
    while True:
        page = client.scan(TableName=filled, IndexName="keys", Limit=2, **start)
        paged += page["Items"]
        if "LastEvaluatedKey" not in page:
            break
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
    assert paged == items


def test_unprojected_attributes_come_from_the_item(client: Any, filled: str) -> None:
    """Case 92."""
    page = query(client, filled, "keys", ProjectionExpression="sk, w", ReturnConsumedCapacity="INDEXES")
    assert all(set(each) == {"sk", "w"} and each["w"]["S"] == UNPROJECTED for each in page["Items"])
    assert page["ConsumedCapacity"] == {
        "TableName": filled,
        "CapacityUnits": 8.5,
        "Table": {"CapacityUnits": 8.0},  # 2 × 0.5 for each of 8 items of 5 KB
        "LocalSecondaryIndexes": {"keys": {"CapacityUnits": 0.5}},
    }
    strong = query(client, filled, "keys", Select="ALL_ATTRIBUTES", ConsistentRead=True, ReturnConsumedCapacity="TOTAL")
    assert set(strong["Items"][0]) >= {"a", "b", "c", "v", "w"}
    assert strong["ConsumedCapacity"] == {"TableName": filled, "CapacityUnits": 17.0}
    only = query(client, filled, "keys", ProjectionExpression="sk, b", ReturnConsumedCapacity="INDEXES")
    assert only["ConsumedCapacity"]["Table"] == {"CapacityUnits": 0.0}
    scanned = client.scan(TableName=filled, IndexName="keys", Select="ALL_ATTRIBUTES", ReturnConsumedCapacity="TOTAL")
    assert len(scanned["Items"]) == 9
    assert scanned["ConsumedCapacity"]["CapacityUnits"] == 0.5 + 8 * 1.0 + 0.5


def test_a_filter_sees_what_is_read(client: Any, filled: str) -> None:
    """It fetches nothing by itself: attributes that are not projected are missing, as in a global index."""
    filtered = {"FilterExpression": "attribute_exists(w)"}
    page = query(client, filled, "keys", **filtered)
    assert (page["Count"], page["ScannedCount"]) == (0, 8)
    page = query(client, filled, "keys", Select="ALL_ATTRIBUTES", **filtered)
    assert (page["Count"], page["ScannedCount"]) == (8, 8)
    page = query(client, filled, "include", FilterExpression="sk > :s", values={":s": {"S": "s7"}})
    assert (page["Count"], page["ScannedCount"]) == (2, 10)


def test_select(client: Any, filled: str) -> None:
    """Case 93."""
    page = query(client, filled, "keys", Select="COUNT")
    assert (page["Count"], "Items" in page) == (8, False)
    assert query(client, filled, "keys", Select="SPECIFIC_ATTRIBUTES", ProjectionExpression="b")["Items"][0] == {
        "b": {"N": "-1"}
    }
    for wrong in ({"Select": "SPECIFIC_ATTRIBUTES"}, {"Select": "ALL_ATTRIBUTES", "ProjectionExpression": "b"}):
        with pytest.raises(ClientError, match="ValidationException"):
            query(client, filled, "keys", **wrong)


START = {"pk": {"S": "p"}, "sk": {"S": "s1"}, "b": {"N": "0"}}


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (
            {**START, "pk": {"S": "q"}},
            "The provided starting key is outside query boundaries based on provided conditions",
        ),
        ({**START, "b": {"N": "5"}}, "The provided starting key does not match the range key predicate"),
        ({"pk": START["pk"], "sk": START["sk"]}, "The provided starting key is invalid"),
        ({**START, "a": {"S": "a"}}, "The provided starting key is invalid"),
        ({**START, "b": {"S": "0"}}, "The provided starting key is invalid"),
        ({**START, "sk": {"N": "0"}}, "The provided starting key is invalid"),
    ],
)
def test_starting_keys_that_do_not_fit(client: Any, filled: str, start: dict[str, Any], message: str) -> None:
    """Case 85."""
    with pytest.raises(ClientError) as raised:
        query(client, filled, "keys", "pk = :p AND b < :x", values={":x": {"N": "5"}}, ExclusiveStartKey=start)
    assert raised.value.response["Error"]["Message"].startswith(message)


def test_key_attributes_are_no_business_of_filters(client: Any, filled: str) -> None:
    with pytest.raises(ClientError, match="Filter Expression can only contain non-primary key attributes"):
        query(client, filled, "keys", FilterExpression="b = :x", values={":x": {"N": "5"}})
    with pytest.raises(ClientError, match="The table does not have the specified index: none"):
        query(client, filled, "none")


def test_a_write_is_in_the_index_at_once(client: Any) -> None:
    name = create(client, ALL)
    key = {"pk": {"S": "p"}, "sk": {"S": "s"}}

    def found() -> list[str]:
        items = query(client, name, "all", ConsistentRead=True)["Items"]
        return [each["a"]["S"] for each in items]

    client.put_item(TableName=name, Item={**key, "a": {"S": "1"}})
    assert found() == ["1"]
    client.update_item(
        TableName=name, Key=key, UpdateExpression="SET a = :a", ExpressionAttributeValues={":a": {"S": "2"}}
    )
    assert found() == ["2"]
    client.batch_write_item(RequestItems={name: [{"PutRequest": {"Item": {**key, "a": {"S": "3"}}}}]})
    assert found() == ["3"]
    client.put_item(TableName=name, Item=key)
    assert found() == []
    client.put_item(TableName=name, Item={**key, "a": {"S": "4"}})
    client.delete_item(TableName=name, Key=key)
    assert found() == []


# --- writes ---


WRONG_TYPE = f"{INVALID}Type mismatch for Index Key b Expected: N Actual: S IndexName: keys"


def test_index_keys_of_a_wrong_type(client: Any) -> None:
    """Case 74 as far as local indexes go."""
    name = create(client)
    key = {"pk": {"S": "p"}, "sk": {"S": "s"}}
    bad = {**key, "b": {"S": "x"}}
    good = {"pk": {"S": "p"}, "sk": {"S": "t"}}
    assert error_of(client.put_item, TableName=name, Item=bad) == ("ValidationException", WRONG_TYPE)
    batch = {name: [{"PutRequest": {"Item": good}}, {"PutRequest": {"Item": bad}}]}
    assert error_of(client.batch_write_item, RequestItems=batch) == ("ValidationException", WRONG_TYPE)
    update = {"UpdateExpression": "SET b = :b", "ExpressionAttributeValues": {":b": {"S": "x"}}}
    assert error_of(client.update_item, TableName=name, Key=key, **update) == ("ValidationException", WRONG_TYPE)
    computed = {"UpdateExpression": "SET b = c", "ConditionExpression": "attribute_exists(pk)"}
    client.put_item(TableName=name, Item={**key, "c": {"B": b"x"}})
    code, _ = error_of(client.update_item, TableName=name, Key=key, **computed)
    assert code == "ValidationException"
    assert client.scan(TableName=name, ConsistentRead=True)["Count"] == 1
    empty = {**key, "a": {"S": ""}}
    code, text = error_of(client.put_item, TableName=name, Item=empty)
    assert code == "ValidationException"
    assert text.endswith("cannot contain an empty string value. IndexName: all, IndexKey: a")


def test_an_item_and_its_entries_may_be_too_large_together(client: Any) -> None:
    name = create(client)
    item = {"pk": {"S": "p"}, "sk": {"S": "s"}, "a": {"S": "a"}, "w": {"S": "x" * 210_000}}
    code, text = error_of(client.put_item, TableName=name, Item=item)
    assert (code, text) == ("ValidationException", "Item size has exceeded the maximum allowed size")
    code, _ = error_of(client.batch_write_item, RequestItems={name: [{"PutRequest": {"Item": item}}]})
    assert code == "ValidationException"
    item.pop("a")
    client.put_item(TableName=name, Item=item)
    update = {"UpdateExpression": "SET a = :a", "ExpressionAttributeValues": {":a": {"S": "a"}}}
    code, text = error_of(client.update_item, TableName=name, Key={each: item[each] for each in ("pk", "sk")}, **update)
    assert (code, text) == ("ValidationException", "Item size to update has exceeded the maximum allowed size")


def test_write_units_follow_the_entries(client: Any) -> None:
    """Cases 144 and 150."""
    name = create(client)
    key = {"pk": {"S": "p"}, "sk": {"S": "s"}}

    def put(**attributes: Any) -> Any:
        answer = client.put_item(TableName=name, Item={**key, **attributes}, ReturnConsumedCapacity="INDEXES")
        consumed = answer["ConsumedCapacity"]
        indexes = {each: units["CapacityUnits"] for each, units in consumed.get("LocalSecondaryIndexes", {}).items()}
        assert consumed["CapacityUnits"] == consumed["Table"]["CapacityUnits"] + sum(indexes.values())
        return indexes

    assert put() == {}
    assert put(b={"N": "1"}) == {"keys": 1.0}
    assert put(b={"N": "1"}) == {}
    assert put(b={"N": "1"}, v={"S": "outside"}) == {}
    assert put(b={"N": "2"}) == {"keys": 2.0}
    assert put(a={"S": "a"}, w={"S": "x" * 3000}) == {"keys": 1.0, "all": 3.0}
    total = client.delete_item(TableName=name, Key=key, ReturnConsumedCapacity="TOTAL")["ConsumedCapacity"]
    assert total == {"TableName": name, "CapacityUnits": 6.0}
    members = [{"PutRequest": {"Item": {**key, "sk": {"S": str(n)}, "b": {"N": "1"}}}} for n in range(3)]
    batch = client.batch_write_item(RequestItems={name: members}, ReturnConsumedCapacity="INDEXES")
    assert batch["ConsumedCapacity"] == [
        {
            "TableName": name,
            "CapacityUnits": 6.0,
            "Table": {"CapacityUnits": 3.0},
            "LocalSecondaryIndexes": {"keys": {"CapacityUnits": 3.0}},
        }
    ]


def test_item_collection_metrics(client: Any) -> None:
    name = create(client)
    key = {"pk": {"S": "p"}, "sk": {"S": "s"}}
    wanted = {"ItemCollectionKey": {"pk": {"S": "p"}}, "SizeEstimateRangeGB": [0.0, 1.0]}
    sized = {"TableName": name, "ReturnItemCollectionMetrics": "SIZE"}
    assert client.put_item(Item=key, **sized)["ItemCollectionMetrics"] == wanted
    assert client.update_item(Key=key, **sized)["ItemCollectionMetrics"] == wanted
    assert client.delete_item(Key=key, **sized)["ItemCollectionMetrics"] == wanted
    assert client.delete_item(Key=key, **sized)["ItemCollectionMetrics"] == wanted
    batch = {name: [{"PutRequest": {"Item": {**key, "sk": {"S": str(n)}}}} for n in range(3)]}
    answer = client.batch_write_item(RequestItems=batch, ReturnItemCollectionMetrics="SIZE")
    assert answer["ItemCollectionMetrics"] == {name: [wanted]}


async def test_an_item_collection_ends_at_its_limit(tmp_path: Path) -> None:
    async with Services("us-east-1", tmp_path, item_collection_bytes_max=20_000) as services:
        client = boto3.client(
            "dynamodb",
            endpoint_url=f"http://{services.router.address}",
            region_name="us-east-1",
            aws_access_key_id="any",
            aws_secret_access_key="any",
        )
        await asyncio.to_thread(_fill_a_collection, client)


def _fill_a_collection(client: Any) -> None:
    name = create(client)

    def item(sk: int, pk: str = "p") -> dict[str, Any]:
        return {"pk": {"S": pk}, "sk": {"S": str(sk)}, "a": {"S": "a"}, "w": {"S": "x" * 4500}}

    client.put_item(TableName=name, Item=item(1))
    client.put_item(TableName=name, Item=item(2))
    code, text = error_of(client.put_item, TableName=name, Item=item(3))
    assert (code, text) == ("ItemCollectionSizeLimitExceededException", "Collection size exceeded.")
    batch = {name: [{"PutRequest": {"Item": item(3)}}]}
    assert error_of(client.batch_write_item, RequestItems=batch)[0] == code
    client.put_item(TableName=name, Item=item(3, "q"))
    client.delete_item(TableName=name, Key={"pk": {"S": "p"}, "sk": {"S": "1"}})
    client.put_item(TableName=name, Item=item(3))
