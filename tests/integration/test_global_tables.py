"""Global tables through boto3: two regions, each a whole cluster, in one process."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.regions import Regions, until

EAST, WEST = "us-east-1", "eu-west-1"


@pytest.fixture(scope="module")
def regions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Regions]:
    with Regions(tmp_path_factory.mktemp("regions"), EAST, WEST) as regions:
        yield regions


@pytest.fixture(scope="module")
def east(regions: Regions) -> Any:
    return regions.client(EAST)


@pytest.fixture(scope="module")
def west(regions: Regions) -> Any:
    return regions.client(WEST)


def create(client: Any, name: str = "", **members: Any) -> str:
    """A table with a hash key; its name."""
    name = name or f"global-{uuid.uuid4()}"
    client.create_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
        **members,
    )
    return name


def add(client: Any, name: str, region: str) -> None:
    client.update_table(TableName=name, ReplicaUpdates=[{"Create": {"RegionName": region}}])


def replicas(client: Any, name: str) -> dict[str, str]:
    """Status by other region."""
    found = client.describe_table(TableName=name)["Table"].get("Replicas", [])
    return {replica["RegionName"]: replica["ReplicaStatus"] for replica in found}


def is_joined(client: Any, name: str, region: str) -> bool:
    return replicas(client, name) == {region: "ACTIVE"}


def get(client: Any, name: str, pk: str) -> Any:
    return client.get_item(TableName=name, Key={"pk": {"S": pk}}, ConsistentRead=True).get("Item")


def global_table(east: Any, west: Any, **members: Any) -> str:
    name = create(east, **members)
    add(east, name, WEST)
    until("both regions are replicas", lambda: is_joined(east, name, WEST) and is_joined(west, name, EAST))
    return name


def test_writes_and_deletes_come_to_the_other_region(east: Any, west: Any) -> None:
    name = global_table(east, west)
    east.put_item(TableName=name, Item={"pk": {"S": "a"}, "from": {"S": "east"}})
    west.put_item(TableName=name, Item={"pk": {"S": "b"}, "from": {"S": "west"}})
    until("west has east's item", lambda: get(west, name, "a"))
    until("east has west's item", lambda: get(east, name, "b"))
    west.delete_item(TableName=name, Key={"pk": {"S": "a"}})
    until("the delete came to east", lambda: get(east, name, "a") is None)
    assert get(west, name, "a") is None


def test_the_replica_has_its_own_arn_and_stream(east: Any, west: Any) -> None:
    """Cases 140, 142."""
    name = global_table(east, west)
    assert name in west.list_tables()["TableNames"]
    here, there = east.describe_table(TableName=name)["Table"], west.describe_table(TableName=name)["Table"]
    assert there["TableArn"] == here["TableArn"].replace(EAST, WEST)
    assert there["LatestStreamArn"].startswith(there["TableArn"])
    assert here["StreamSpecification"] == there["StreamSpecification"]
    assert here["StreamSpecification"]["StreamViewType"] == "NEW_AND_OLD_IMAGES"
    assert here["GlobalTableVersion"] == there["GlobalTableVersion"] == "2019.11.21"


def test_a_full_table_is_copied_while_writes_go_on(east: Any, west: Any) -> None:
    name = create(east)
    for first in range(0, 300, 25):
        items = [{"pk": {"S": f"old-{n}"}, "n": {"N": "0"}} for n in range(first, first + 25)]
        east.batch_write_item(RequestItems={name: [{"PutRequest": {"Item": item}} for item in items]})
    add(east, name, WEST)
    for n in range(0, 90, 3):
        east.put_item(TableName=name, Item={"pk": {"S": f"old-{n}"}, "n": {"N": "1"}})
        east.delete_item(TableName=name, Key={"pk": {"S": f"old-{n + 1}"}})
        east.put_item(TableName=name, Item={"pk": {"S": f"new-{n}"}, "n": {"N": "1"}})
    until("the replica is filled", lambda: is_joined(east, name, WEST))
    until("both hold the same", lambda: scan(east, name) == scan(west, name))
    assert len(scan(west, name)) == 300
    assert scan(west, name)["old-3"]["n"] == {"N": "1"}
    assert west.describe_table(TableName=name)["Table"]["ItemCount"] == 300


def scan(client: Any, name: str) -> dict[str, Any]:
    """All items by key, as a strong scan finds them."""
    pages = client.get_paginator("scan").paginate(TableName=name, ConsistentRead=True)
    return {item["pk"]["S"]: item for page in pages for item in page["Items"]}


def test_concurrent_writes_end_alike_with_the_last_one(east: Any, west: Any) -> None:
    name = global_table(east, west)
    for n in range(8):
        for round_ in range(3):
            for client, region in ((east, EAST), (west, WEST)):
                item = {"pk": {"S": f"k{n}"}, "by": {"S": region}, "round": {"N": str(round_)}}
                client.put_item(TableName=name, Item=item)
    until("both hold the same", lambda: scan(east, name) == scan(west, name))
    found = scan(east, name)
    assert len(found) == 8
    assert all(item["round"] == {"N": "2"} for item in found.values()), "a write that follows another is never beaten"


def test_both_streams_tell_all_writes_and_the_origin_is_not_told_again(east: Any, west: Any, regions: Regions) -> None:
    """Case 141."""
    name = global_table(east, west)
    east.put_item(TableName=name, Item={"pk": {"S": "a"}, "v": {"N": "1"}})
    until("west has it", lambda: get(west, name, "a"))
    west.put_item(TableName=name, Item={"pk": {"S": "a"}, "v": {"N": "2"}})
    until("east has west's", lambda: get(east, name, "a")["v"] == {"N": "2"})
    west.delete_item(TableName=name, Key={"pk": {"S": "a"}})
    until("east has the delete", lambda: get(east, name, "a") is None)
    expected = ["INSERT", "MODIFY", "REMOVE"]
    for region in (EAST, WEST):
        assert [record["eventName"] for record in records(regions, region, name)] == expected


def records(regions: Regions, region: str, name: str) -> list[Any]:
    """All records of a region's stream, of one item each in order."""
    streams = regions.client(region, "dynamodbstreams")
    arn = regions.client(region).describe_table(TableName=name)["Table"]["LatestStreamArn"]
    found: list[Any] = []
    for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
        iterator = streams.get_shard_iterator(
            StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        found += streams.get_records(ShardIterator=iterator)["Records"]
    return found


def test_a_replica_that_is_removed_is_deleted_and_can_be_added_again(east: Any, west: Any) -> None:
    name = global_table(east, west)
    east.put_item(TableName=name, Item={"pk": {"S": "a"}})
    until("west has it", lambda: get(west, name, "a"))
    east.update_table(TableName=name, ReplicaUpdates=[{"Delete": {"RegionName": WEST}}])
    until("the table is gone there", lambda: name not in west.list_tables()["TableNames"])
    until("nothing is left of it here", lambda: replicas(east, name) == {})
    east.delete_item(TableName=name, Key={"pk": {"S": "a"}})
    east.put_item(TableName=name, Item={"pk": {"S": "b"}})
    add(east, name, WEST)
    until("it is back", lambda: is_joined(east, name, WEST) and is_joined(west, name, EAST))
    until("it holds the same", lambda: set(scan(west, name)) == {"b"})
    west.put_item(TableName=name, Item={"pk": {"S": "c"}})
    until("it sends", lambda: get(east, name, "c"))


def test_a_region_leaves_by_deleting_its_table(east: Any, west: Any) -> None:
    name = global_table(east, west)
    east.put_item(TableName=name, Item={"pk": {"S": "a"}})
    until("west has it", lambda: get(west, name, "a"))
    answer = west.delete_table(TableName=name)
    assert answer["TableDescription"]["TableStatus"] == "DELETING"
    until("it is gone", lambda: name not in west.list_tables()["TableNames"])
    until("the others go on without it", lambda: replicas(east, name) == {})
    assert get(east, name, "a")


def test_only_the_region_that_expires_an_item_sends_its_delete(east: Any, west: Any, regions: Regions) -> None:
    name = global_table(east, west)
    west.update_time_to_live(TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires"})
    until("the setting came", lambda: expiring(east, name) == "expires")
    east.put_item(TableName=name, Item={"pk": {"S": "a"}, "expires": {"N": "1000000000"}})
    east.put_item(TableName=name, Item={"pk": {"S": "b"}, "expires": {"N": str(10**10)}})
    assert get(east, name, "a"), "one that expired more than five years ago stays"
    soon = str(int(time.time()) - 60)
    east.put_item(TableName=name, Item={"pk": {"S": "c"}, "expires": {"N": soon}})
    until("it is gone here", lambda: get(east, name, "c") is None)
    until("and there", lambda: get(west, name, "c") is None)
    until("both streams tell it", lambda: all(removed(regions, region, name) for region in (EAST, WEST)))


def expiring(client: Any, name: str) -> str | None:
    """The attribute by which items expire."""
    found: str | None = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"].get("AttributeName")
    return found


def removed(regions: Regions, region: str, name: str) -> list[Any]:
    return [record for record in records(regions, region, name) if record["eventName"] == "REMOVE"]


def test_global_indexes_are_made_everywhere_and_fed_by_all_writes(east: Any, west: Any) -> None:
    name = global_table(east, west)
    east.put_item(TableName=name, Item={"pk": {"S": "a"}, "g": {"S": "x"}})
    until("west has it", lambda: get(west, name, "a"))
    index = {
        "IndexName": "by_g",
        "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }
    east.update_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": "g", "AttributeType": "S"}],
        GlobalSecondaryIndexUpdates=[{"Create": index}],
    )
    for client in (east, west):
        until("the index is there", lambda client=client: indexes(client, name) == {"by_g": "ACTIVE"})  # type: ignore[misc]
    east.put_item(TableName=name, Item={"pk": {"S": "b"}, "g": {"S": "x"}})
    for client in (east, west):
        until("it has both", lambda client=client: by_g(client, name, "x") == {"a", "b"})  # type: ignore[misc]
    west.update_table(TableName=name, GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by_g"}}])
    until("it is gone everywhere", lambda: indexes(east, name) == {} == indexes(west, name))


def indexes(client: Any, name: str) -> dict[str, str]:
    table = client.describe_table(TableName=name)["Table"]
    return {index["IndexName"]: index["IndexStatus"] for index in table.get("GlobalSecondaryIndexes", [])}


def by_g(client: Any, name: str, value: str) -> set[str]:
    found = client.query(
        TableName=name,
        IndexName="by_g",
        KeyConditionExpression="g = :g",
        ExpressionAttributeValues={":g": {"S": value}},
    )
    return {item["pk"]["S"] for item in found["Items"]}


def test_the_calls_of_2017(east: Any, west: Any) -> None:
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    name = create(east, StreamSpecification=stream)
    with pytest.raises(east.exceptions.GlobalTableNotFoundException):
        east.describe_global_table(GlobalTableName=name)
    create(west, name=name, StreamSpecification=stream)
    group = [{"RegionName": EAST}, {"RegionName": WEST}]
    made = east.create_global_table(GlobalTableName=name, ReplicationGroup=group)["GlobalTableDescription"]
    assert made["GlobalTableStatus"] == "CREATING"
    assert made["GlobalTableArn"] == f"arn:aws:dynamodb::000000000000:global-table/{name}"
    for client in (east, west):
        until("it is active", lambda client=client: statuses_2017(client, name) == {EAST: "ACTIVE", WEST: "ACTIVE"})  # type: ignore[misc]
    with pytest.raises(east.exceptions.GlobalTableAlreadyExistsException):
        east.create_global_table(GlobalTableName=name, ReplicationGroup=group)
    east.put_item(TableName=name, Item={"pk": {"S": "a"}})
    until("west has it", lambda: get(west, name, "a"))
    found = west.list_global_tables(RegionName=EAST)["GlobalTables"]
    assert {"GlobalTableName": name, "ReplicationGroup": sorted(group, key=lambda each: each["RegionName"])} in found
    settings = west.describe_global_table_settings(GlobalTableName=name)["ReplicaSettings"]
    assert [each["ReplicaBillingModeSummary"]["BillingMode"] for each in settings] == ["PAY_PER_REQUEST"] * 2
    assert "Replicas" not in east.describe_table(TableName=name)["Table"]
    with pytest.raises(east.exceptions.ReplicaAlreadyExistsException):
        east.update_global_table(GlobalTableName=name, ReplicaUpdates=[{"Create": {"RegionName": WEST}}])
    east.update_global_table(GlobalTableName=name, ReplicaUpdates=[{"Delete": {"RegionName": WEST}}])
    until("west is on its own", lambda: not is_known_2017(west, name))
    with pytest.raises(east.exceptions.ReplicaNotFoundException):
        east.update_global_table(GlobalTableName=name, ReplicaUpdates=[{"Delete": {"RegionName": WEST}}])
    assert get(west, name, "a"), "a region that is removed keeps its table"


def statuses_2017(client: Any, name: str) -> dict[str, str]:
    if not is_known_2017(client, name):
        return {}
    group = client.describe_global_table(GlobalTableName=name)["GlobalTableDescription"]["ReplicationGroup"]
    return {replica["RegionName"]: replica["ReplicaStatus"] for replica in group}


def is_known_2017(client: Any, name: str) -> bool:
    tables = client.list_global_tables()["GlobalTables"]
    return name in [table["GlobalTableName"] for table in tables]


def test_what_replica_updates_cannot_be(east: Any, west: Any) -> None:
    name = create(east, StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})

    def refused(**action: Any) -> str:
        with pytest.raises(east.exceptions.ClientError) as caught:
            east.update_table(TableName=name, ReplicaUpdates=[action])
        assert caught.value.response["Error"]["Code"] == "ValidationException"
        return str(caught.value.response["Error"]["Message"])

    assert refused(Create={"RegionName": EAST}).startswith("Cannot add, delete, or update the local region")
    assert "sa-west-9" in refused(Create={"RegionName": "sa-west-9"})
    assert "NEW_AND_OLD_IMAGES" in refused(Create={"RegionName": WEST})
    assert refused(Delete={"RegionName": WEST}).startswith("Replica specified in the Replica Update or Replica Delete")
    full = global_table(east, west)
    with pytest.raises(east.exceptions.ClientError, match="stream"):
        east.update_table(TableName=full, StreamSpecification={"StreamEnabled": False})
    with pytest.raises(east.exceptions.ClientError, match="already existed as tables"):
        east.update_table(TableName=full, ReplicaUpdates=[{"Create": {"RegionName": WEST}}])
    with pytest.raises(east.exceptions.ClientError, match="acted as a source region"):
        east.delete_table(TableName=full)


def test_a_region_that_has_a_table_of_this_name_gets_no_replica(east: Any, west: Any) -> None:
    name = create(east)
    create(west, name=name)
    add(east, name, WEST)
    until("that is told", lambda: replicas(east, name) == {WEST: "CREATION_FAILED"})
    assert "GlobalTableVersion" not in west.describe_table(TableName=name)["Table"]
