"""Time to live through boto3. Numbers are those of the public cases that Trizone is held to."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from trizone import Cluster

SECONDS_MAX = 20.0
FIVE_YEARS_AND_A_DAY = (5 * 365 + 2) * 86_400


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster: Cluster) -> Any:
    return cluster.client()


def create(client: Any, *, sort: bool = True, **members: Any) -> str:
    name = f"ttl-{uuid.uuid4()}"
    types = {"pk": "S", "expires": "N", "g": "S"} if members else {"pk": "S", "expires": "N"}
    if not sort:
        del types["expires"]
    client.create_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": n, "AttributeType": t} for n, t in types.items()],
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            *([{"AttributeName": "expires", "KeyType": "RANGE"}] if sort else []),
        ],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        **members,
    )
    return name


def enable(client: Any, table: str, attribute: str = "expires", *, enabled: bool = True) -> Any:
    wanted = {"Enabled": enabled, "AttributeName": attribute}
    answer = client.update_time_to_live(TableName=table, TimeToLiveSpecification=wanted)
    assert answer["TimeToLiveSpecification"] == wanted


def described(client: Any, table: str) -> Any:
    return client.describe_time_to_live(TableName=table)["TimeToLiveDescription"]


def until(holds: Callable[[], bool]) -> None:
    """Wait for what the sweep is to bring about."""
    deadline = time.monotonic() + SECONDS_MAX
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def names(client: Any, table: str, **members: Any) -> set[str]:
    return {item["pk"]["S"] for item in client.scan(TableName=table, **members)["Items"]}


def refused(client: Any, table: str, attribute: str, *, enabled: bool) -> tuple[str, str]:
    with pytest.raises(ClientError) as caught:
        enable(client, table, attribute, enabled=enabled)
    return caught.value.response["Error"]["Code"], caught.value.response["Error"]["Message"]


def records(cluster: Cluster, table: str) -> list[dict[str, Any]]:
    streams = cluster.client("dynamodbstreams")
    arn = streams.list_streams(TableName=table)["Streams"][0]["StreamArn"]
    found = []
    for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
        iterator = streams.get_shard_iterator(StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON")
        found += streams.get_records(ShardIterator=iterator["ShardIterator"])["Records"]
    return found


def test_what_has_expired_goes_and_nothing_else(client: Any, cluster: Cluster) -> None:
    """Cases 136 and 138: items from before time to live was enabled and from after."""
    now = int(time.time())
    table = create(client, sort=False)
    items: dict[str, Any] = {
        "text": {"S": str(now - 60)},
        "ancient": {"N": str(now - FIVE_YEARS_AND_A_DAY)},
        "future": {"N": str(now + 3600)},
        "before": {"N": str(now - 60)},
    }
    for name, value in items.items():
        client.put_item(TableName=table, Item={"pk": {"S": name}, "expires": value})
    client.put_item(TableName=table, Item={"pk": {"S": "missing"}})
    enable(client, table)
    assert described(client, table) == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires"}
    client.put_item(TableName=table, Item={"pk": {"S": "after"}, "expires": {"N": f"{now - 60}.5"}})
    stay = {"text", "ancient", "future", "missing"}
    until(lambda: names(client, table, ConsistentRead=True) == stay)
    removed = [record for record in records(cluster, table) if record["eventName"] == "REMOVE"]
    assert {record["dynamodb"]["Keys"]["pk"]["S"] for record in removed} == {"before", "after"}
    assert all("OldImage" in record["dynamodb"] for record in removed)
    for record in removed:
        assert record["userIdentity"] == {"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"}
    client.delete_item(TableName=table, Key={"pk": {"S": "future"}})
    by_hand = records(cluster, table)
    assert [record.get("userIdentity") for record in by_hand if record["dynamodb"]["Keys"]["pk"]["S"] == "future"] == [
        None,
        None,
    ]


def test_a_key_may_tell_the_time_and_indexes_follow(client: Any) -> None:
    """Cases 137 and 138."""
    table = create(
        client,
        GlobalSecondaryIndexes=[
            {
                "IndexName": "global",
                "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        LocalSecondaryIndexes=[
            {
                "IndexName": "local",
                "KeySchema": [
                    {"AttributeName": "pk", "KeyType": "HASH"},
                    {"AttributeName": "g", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )
    now = int(time.time())
    for name, at in (("gone", now - 60), ("here", now + 3600)):
        client.put_item(TableName=table, Item={"pk": {"S": name}, "expires": {"N": str(at)}, "g": {"S": "g"}})
    until(lambda: names(client, table, IndexName="global") == {"gone", "here"})
    enable(client, table)
    until(lambda: names(client, table, ConsistentRead=True) == {"here"})
    assert names(client, table, IndexName="local", ConsistentRead=True) == {"here"}
    until(lambda: names(client, table, IndexName="global") == {"here"})


def test_changes_that_cannot_be(client: Any) -> None:
    table = create(client)
    code = "ValidationException"
    assert described(client, table) == {"TimeToLiveStatus": "DISABLED"}
    assert refused(client, table, "a", enabled=False) == (code, "TimeToLive is already disabled")
    enable(client, table, "a")
    assert refused(client, table, "a", enabled=True) == (code, "TimeToLive is already enabled")
    other = "TimeToLive is active on a different AttributeName: current AttributeName is a"
    assert refused(client, table, "b", enabled=True) == (code, other)
    assert refused(client, table, "b", enabled=False) == (code, other)
    soon = "Time to live has been modified multiple times within a fixed interval"
    assert refused(client, table, "a", enabled=False) == (code, soon)
    assert described(client, table) == {"TimeToLiveStatus": "ENABLED", "AttributeName": "a"}


def test_a_table_that_is_not_there(client: Any) -> None:
    missing = f"none-{uuid.uuid4()}"
    assert refused(client, missing, "a", enabled=True) == (
        "ResourceNotFoundException",
        f"Requested resource not found: Table: {missing} not found",
    )
