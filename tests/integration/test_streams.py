"""DynamoDB Streams through boto3. Numbers are those of the public cases that Trizone is held to."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from trizone import Cluster

INVALID = "One or more parameter values were invalid: "


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster: Cluster) -> Any:
    return cluster.client()


@pytest.fixture(scope="module")
def streams(cluster: Cluster) -> Any:
    """Sends wrong requests, too."""
    return boto3.client(
        "dynamodbstreams",
        endpoint_url=cluster.endpoint,
        region_name=cluster.region,
        aws_access_key_id="any",
        aws_secret_access_key="any",
        config=Config(parameter_validation=False),
    )


def create(client: Any, view: str | None = "NEW_AND_OLD_IMAGES", name: str = "", **members: Any) -> str:
    """A new table with a stream of this view, if any; its name."""
    name = name or f"stream-{uuid.uuid4()}"
    if view is not None:
        members["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": view}
    client.create_table(
        TableName=name,
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "N"},
        ],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        BillingMode="PAY_PER_REQUEST",
        **members,
    )
    return name


def arn_of(client: Any, table: str) -> str:
    arn: str = client.describe_table(TableName=table)["Table"]["LatestStreamArn"]
    return arn


def key(pk: str, sk: int = 0) -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"N": str(sk)}}


def shards_of(streams: Any, arn: str) -> list[dict[str, Any]]:
    shards: list[dict[str, Any]] = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
    return shards


def iterators(streams: Any, arn: str, kind: str = "TRIM_HORIZON", **members: Any) -> list[str]:
    return [
        streams.get_shard_iterator(StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType=kind, **members)[
            "ShardIterator"
        ]
        for shard in shards_of(streams, arn)
    ]


def follow(streams: Any, iterator: str | None, **members: Any) -> tuple[list[dict[str, Any]], str | None]:
    """Records until there are none; where to go on."""
    found: list[dict[str, Any]] = []
    while iterator is not None:
        answer = streams.get_records(ShardIterator=iterator, **members)
        iterator = answer.get("NextShardIterator")
        found += answer["Records"]
        if not answer["Records"]:
            break
    return found, iterator


def all_records(streams: Any, arn: str, kind: str = "TRIM_HORIZON", **members: Any) -> list[dict[str, Any]]:
    """All records of the stream, shard by shard."""
    return [record for one in iterators(streams, arn, kind, **members) for record in follow(streams, one)[0]]


def failure(call: Any, **request: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as caught:
        call(**request)
    return caught.value.response["Error"]["Code"], caught.value.response["Error"]["Message"]


def changes(records: list[dict[str, Any]]) -> list[tuple[str, Any, Any]]:
    return [(one["eventName"], one["dynamodb"].get("OldImage"), one["dynamodb"].get("NewImage")) for one in records]


def test_descriptions_agree(client: Any, streams: Any) -> None:
    """Case 128."""
    table = create(client, "OLD_IMAGE")
    described = client.describe_table(TableName=table)["Table"]
    assert described["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "OLD_IMAGE"}
    arn, label = described["LatestStreamArn"], described["LatestStreamLabel"]
    assert arn == f"{described['TableArn']}/stream/{label}"
    assert streams.list_streams(TableName=table)["Streams"] == [
        {"StreamArn": arn, "StreamLabel": label, "TableName": table}
    ]
    stream = streams.describe_stream(StreamArn=arn)["StreamDescription"]
    created = stream.pop("CreationRequestDateTime")
    assert abs(created.timestamp() - time.time()) < 60
    shards = stream.pop("Shards")
    assert stream == {
        "StreamArn": arn,
        "StreamLabel": label,
        "StreamStatus": "ENABLED",
        "StreamViewType": "OLD_IMAGE",
        "TableName": table,
        "KeySchema": described["KeySchema"],
    }
    assert len(shards) == 3
    for shard in shards:
        assert 28 <= len(shard["ShardId"]) <= 65
        assert shard["SequenceNumberRange"].keys() == {"StartingSequenceNumber"}
        assert 21 <= len(shard["SequenceNumberRange"]["StartingSequenceNumber"]) <= 40


def test_records_have_dynamodbs_shape(client: Any, streams: Any) -> None:
    table = create(client)
    item = {**key("a", 7), "x": {"S": "val"}}
    client.put_item(TableName=table, Item=item)
    (record,) = all_records(streams, arn_of(client, table))
    change = record.pop("dynamodb")
    assert len(record.pop("eventID")) == 32
    assert record == {
        "eventName": "INSERT",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "us-east-1",
    }
    assert abs(change.pop("ApproximateCreationDateTime").timestamp() - time.time()) < 60
    assert 21 <= len(change["SequenceNumber"]) <= 40
    assert change.pop("SequenceNumber").isdigit()
    # Keys: pk + a, sk + 7 in 2 bytes; the image has these, x and val.
    assert change == {
        "Keys": key("a", 7),
        "NewImage": item,
        "SizeBytes": 7 + 11,
        "StreamViewType": "NEW_AND_OLD_IMAGES",
    }


def test_a_replaced_item_is_modified(client: Any, streams: Any) -> None:
    """Case 122: one MODIFY, no REMOVE and INSERT."""
    table = create(client)
    first, second = {**key("a"), "x": {"N": "1"}}, {**key("a"), "y": {"N": "2"}}
    client.put_item(TableName=table, Item=first)
    client.put_item(TableName=table, Item=second)
    client.delete_item(TableName=table, Key=key("a"))
    assert changes(all_records(streams, arn_of(client, table))) == [
        ("INSERT", None, first),
        ("MODIFY", first, second),
        ("REMOVE", second, None),
    ]


def test_what_changes_nothing_has_no_record(client: Any, streams: Any) -> None:
    """Case 121."""
    table = create(client)
    item = {**key("a"), "m": {"M": {"x": {"N": "1"}, "y": {"N": "2"}}}}
    turned = {**key("a"), "m": {"M": {"y": {"N": "2.0"}, "x": {"N": "1"}}}}
    client.put_item(TableName=table, Item=item)
    client.put_item(TableName=table, Item=turned)
    client.update_item(
        TableName=table,
        Key=key("a"),
        UpdateExpression="SET m.x = :x",
        ExpressionAttributeValues={":x": {"N": "1"}},
    )
    client.delete_item(TableName=table, Key=key("missing"))
    client.batch_write_item(
        RequestItems={
            table: [{"PutRequest": {"Item": turned}}, {"DeleteRequest": {"Key": key("b")}}],
        }
    )
    client.transact_write_items(
        TransactItems=[
            {"Put": {"TableName": table, "Item": turned}},
            {"Delete": {"TableName": table, "Key": key("missing", 3)}},
        ]
    )
    assert [event for event, _, _ in changes(all_records(streams, arn_of(client, table)))] == ["INSERT"]


def test_new_images_after_a_delete_and_without_attributes(client: Any, streams: Any) -> None:
    """Case 124."""
    table = create(client, "NEW_IMAGE")
    client.put_item(TableName=table, Item={**key("a"), "x": {"N": "1"}})
    client.update_item(TableName=table, Key=key("a"), UpdateExpression="REMOVE x")
    client.delete_item(TableName=table, Key=key("a"))
    found = changes(all_records(streams, arn_of(client, table)))
    assert found[1:] == [("MODIFY", None, key("a")), ("REMOVE", None, None)]


@pytest.mark.parametrize(("view", "images"), [("KEYS_ONLY", set()), ("OLD_IMAGE", {"OldImage"})])
def test_other_views(client: Any, streams: Any, view: str, images: set[str]) -> None:
    table = create(client, view)
    client.put_item(TableName=table, Item=key("a"))
    client.put_item(TableName=table, Item={**key("a"), "x": {"N": "1"}})
    insert, modify = all_records(streams, arn_of(client, table))
    assert insert["dynamodb"].keys() & {"OldImage", "NewImage"} == set()
    assert modify["dynamodb"].keys() & {"OldImage", "NewImage"} == images
    assert modify["dynamodb"]["Keys"] == key("a")


def test_nothing_to_read_and_nothing_twice(client: Any, streams: Any) -> None:
    """Cases 125 and 126."""
    table = create(client)
    arn = arn_of(client, table)
    (first, *_) = iterators(streams, arn)
    answer = streams.get_records(ShardIterator=first)
    assert answer["Records"] == []
    assert answer["NextShardIterator"]
    client.put_item(TableName=table, Item=key("a"))
    ends = [follow(streams, one) for one in iterators(streams, arn)]
    assert sum(len(records) for records, _ in ends) == 1
    assert [follow(streams, end)[0] for _, end in ends] == [[], [], []]
    client.put_item(TableName=table, Item=key("b"))
    again = [follow(streams, end)[0] for _, end in ends]
    assert [record["dynamodb"]["Keys"] for records in again for record in records] == [key("b")]


def test_a_batch_into_one_partition_has_three_records(client: Any, streams: Any) -> None:
    """Case 132; and case 112's half: all writes of a transaction, each with its image."""
    table, plain = create(client), create(client, None)
    items = [{**key("a", n), "x": {"N": str(n)}} for n in range(3)]
    client.batch_write_item(RequestItems={table: [{"PutRequest": {"Item": item}} for item in items]})
    more = [{**key("a", n), "x": {"N": str(n)}} for n in range(3, 6)]
    client.transact_write_items(
        TransactItems=[
            *({"Put": {"TableName": table, "Item": item}} for item in more),
            {"Put": {"TableName": plain, "Item": key("z")}},
        ]
    )
    records = all_records(streams, arn_of(client, table))
    found = sorted((image["x"]["N"] for _, _, image in changes(records)), key=int)
    assert found == ["0", "1", "2", "3", "4", "5"]
    assert len({record["dynamodb"]["SequenceNumber"] for record in records}) == 6
    assert len({record["eventID"] for record in records}) == 6


def test_pages_follow_the_order_of_writes(client: Any, streams: Any) -> None:
    table = create(client)
    for n in range(30):
        client.put_item(TableName=table, Item={**key("a"), "n": {"N": str(n)}})
    found = []
    for one in iterators(streams, arn_of(client, table)):
        found += follow(streams, one, Limit=7)[0]
    assert [record["dynamodb"]["NewImage"]["n"]["N"] for record in found] == [str(n) for n in range(30)]
    numbers = [record["dynamodb"]["SequenceNumber"] for record in found]
    assert numbers == sorted(numbers)


def test_iterators_begin_where_they_are_told(client: Any, streams: Any) -> None:
    table = create(client)
    arn = arn_of(client, table)
    for n in range(3):
        client.put_item(TableName=table, Item={**key("a"), "n": {"N": str(n)}})
    records = all_records(streams, arn)
    (shard,) = [
        shard["ShardId"]
        for shard, one in zip(shards_of(streams, arn), iterators(streams, arn), strict=True)
        if follow(streams, one)[0]
    ]
    middle = records[1]["dynamodb"]["SequenceNumber"]
    place = {"StreamArn": arn, "ShardId": shard}

    def read(kind: str, **members: Any) -> list[str]:
        iterator = streams.get_shard_iterator(**place, ShardIteratorType=kind, **members)["ShardIterator"]
        return [record["dynamodb"]["NewImage"]["n"]["N"] for record in follow(streams, iterator)[0]]

    assert read("AT_SEQUENCE_NUMBER", SequenceNumber=middle) == ["1", "2"]
    assert read("AFTER_SEQUENCE_NUMBER", SequenceNumber=middle) == ["2"]
    assert read("TRIM_HORIZON") == ["0", "1", "2"]
    assert read("LATEST") == []
    assert read("AT_TIMESTAMP", Timestamp=time.time() - 3600) == ["0", "1", "2"]
    assert read("AT_TIMESTAMP", Timestamp=time.time() + 3600) == []
    start = shards_of(streams, arn)[0]["SequenceNumberRange"]["StartingSequenceNumber"]
    latest = streams.get_shard_iterator(**place, ShardIteratorType="LATEST")["ShardIterator"]
    client.put_item(TableName=table, Item={**key("a"), "n": {"N": "3"}})
    assert [record["dynamodb"]["NewImage"]["n"]["N"] for record in follow(streams, latest)[0]] == ["3"]
    wrong = failure(
        streams.get_shard_iterator, **place, ShardIteratorType="AT_SEQUENCE_NUMBER", SequenceNumber="9" * 26
    )
    assert wrong[0] == "ValidationException"
    assert read("AT_SEQUENCE_NUMBER", SequenceNumber=start) == ["0", "1", "2", "3"]
    missing = failure(streams.get_shard_iterator, **place, ShardIteratorType="AT_SEQUENCE_NUMBER")
    assert missing[0] == "ValidationException"


def test_enabling_and_disabling(client: Any) -> None:
    """Case 129."""
    table = create(client, None)

    def update(**specification: Any) -> Any:
        return client.update_table(TableName=table, StreamSpecification=specification)

    def refused(**specification: Any) -> tuple[str, str]:
        return failure(client.update_table, TableName=table, StreamSpecification=specification)

    off = ("ValidationException", f"Table has no stream to disable: TableName: {table}")
    on = ("ValidationException", f"Table already has an enabled stream: TableName: {table}")
    assert refused(StreamEnabled=False) == off
    assert refused(StreamEnabled=True)[0] == "ValidationException"
    described = update(StreamEnabled=True, StreamViewType="KEYS_ONLY")["TableDescription"]
    assert described["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    assert described["LatestStreamArn"].endswith(described["LatestStreamLabel"])
    assert refused(StreamEnabled=True, StreamViewType="KEYS_ONLY") == on
    assert refused(StreamEnabled=True, StreamViewType="NEW_IMAGE") == on
    described = update(StreamEnabled=False)["TableDescription"]
    assert "StreamSpecification" not in described
    assert refused(StreamEnabled=False) == off


def test_a_disabled_stream_can_be_read_to_its_end(client: Any, streams: Any) -> None:
    """Case 130."""
    table = create(client)
    old = arn_of(client, table)
    client.put_item(TableName=table, Item=key("a"))
    waiting = iterators(streams, old, "LATEST")
    client.put_item(TableName=table, Item=key("b"))
    client.update_table(TableName=table, StreamSpecification={"StreamEnabled": False})
    client.put_item(TableName=table, Item=key("c"))
    client.update_table(TableName=table, StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
    client.put_item(TableName=table, Item=key("d"))
    new = arn_of(client, table)
    assert new != old
    described = streams.describe_stream(StreamArn=old)["StreamDescription"]
    assert described["StreamStatus"] == "DISABLED"
    assert all("EndingSequenceNumber" in shard["SequenceNumberRange"] for shard in described["Shards"])
    for all_of_them, begin in ((["a", "b"], iterators(streams, old)), (["b"], waiting)):
        read = [follow(streams, one) for one in begin]
        found = sorted(record["dynamodb"]["Keys"]["pk"]["S"] for records, _ in read for record in records)
        assert found == all_of_them
        assert [end for _, end in read] == [None, None, None]
    assert [record["dynamodb"]["Keys"] for record in all_records(streams, new)] == [key("d")]
    listed = streams.list_streams(TableName=table)["Streams"]
    assert [stream["StreamArn"] for stream in listed] == [old, new]
    assert not {shard["ShardId"] for shard in shards_of(streams, old)} & {
        shard["ShardId"] for shard in shards_of(streams, new)
    }


def test_limits(client: Any, streams: Any) -> None:
    """Case 133."""
    table = create(client)
    (iterator, *_) = iterators(streams, arn_of(client, table))
    for limit in (0, 1001):
        assert failure(streams.get_records, ShardIterator=iterator, Limit=limit)[0] == "ValidationException"
    for limit in (0, 101):
        assert failure(streams.list_streams, Limit=limit)[0] == "ValidationException"


def test_pages_of_streams_and_of_shards(client: Any, streams: Any) -> None:
    table = create(client)
    for enabled in (False, True):
        specification = {"StreamEnabled": enabled, **({"StreamViewType": "KEYS_ONLY"} if enabled else {})}
        client.update_table(TableName=table, StreamSpecification=specification)
    first = streams.list_streams(TableName=table, Limit=1)
    second = streams.list_streams(TableName=table, ExclusiveStartStreamArn=first["LastEvaluatedStreamArn"])
    assert "LastEvaluatedStreamArn" not in second
    arn = arn_of(client, table)
    assert [first["Streams"][0]["StreamArn"], second["Streams"][0]["StreamArn"]][1] == arn
    everywhere = streams.list_streams()["Streams"]
    assert arn in [stream["StreamArn"] for stream in everywhere]
    names = [shard["ShardId"] for shard in shards_of(streams, arn)]
    page = streams.describe_stream(StreamArn=arn, Limit=2)["StreamDescription"]
    assert [shard["ShardId"] for shard in page["Shards"]] == names[:2]
    assert page["LastEvaluatedShardId"] == names[1]
    rest = streams.describe_stream(StreamArn=arn, ExclusiveStartShardId=names[1])["StreamDescription"]
    assert [shard["ShardId"] for shard in rest["Shards"]] == names[2:]
    assert "LastEvaluatedShardId" not in rest
    children = streams.describe_stream(StreamArn=arn, ShardFilter={"Type": "CHILD_SHARDS", "ShardId": names[0]})
    assert children["StreamDescription"]["Shards"] == []


def test_wrong_names(client: Any, streams: Any) -> None:
    """Case 134."""
    malformed = "arn:aws:dynamodb:us-east-1:000000000000:table"
    missing = f"{malformed}/none-{uuid.uuid4()}/stream/2026-01-01T00:00:00.000"
    assert failure(streams.describe_stream, StreamArn=malformed)[0] == "ValidationException"
    assert failure(streams.describe_stream, StreamArn="short")[0] == "ValidationException"
    assert failure(streams.describe_stream, StreamArn=missing) == (
        "ResourceNotFoundException",
        f"Requested resource not found: Stream: {missing} not found",
    )
    arn = arn_of(client, create(client))
    shard = "shardId-00000000000000000001-00000000"
    request = {"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "LATEST"}
    assert failure(streams.get_shard_iterator, **request)[0] == "ResourceNotFoundException"
    (iterator, *_) = iterators(streams, arn)
    for wrong in ("x", iterator[:-4], iterator.replace("us-east-1", "us-west-2"), iterator[:-8] + "AAAAAAA="):
        assert failure(streams.get_records, ShardIterator=wrong) == (
            "ValidationException",
            "Invalid ShardIterator",
        )


def test_a_table_of_the_longest_name(client: Any, streams: Any) -> None:
    """Case 41."""
    table = create(client, name=("n" * 219) + str(uuid.uuid4()))
    client.put_item(TableName=table, Item=key("a"))
    assert [record["dynamodb"]["Keys"] for record in all_records(streams, arn_of(client, table))] == [key("a")]


def test_create_table_checks_the_specification(client: Any) -> None:
    def refused(**specification: Any) -> tuple[str, str]:
        with pytest.raises(ClientError) as caught:
            create(client, None, StreamSpecification=specification)
        return caught.value.response["Error"]["Code"], caught.value.response["Error"]["Message"]

    assert refused(StreamEnabled=True)[0] == "ValidationException"
    assert refused(StreamEnabled=False, StreamViewType="KEYS_ONLY") == (
        "ValidationException",
        f"{INVALID}Table is being created with a stream disabled, UpdateViewType should not be specified",
    )
