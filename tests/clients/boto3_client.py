"""boto3's client and resource. Arguments: the endpoint."""

# mypy: ignore-errors
import decimal
import sys
import uuid

import boto3
from boto3.dynamodb.conditions import Attr, Key

URL = sys.argv[1]
CONNECTION = {
    "endpoint_url": URL,
    "region_name": "us-east-1",
    "aws_access_key_id": "any",
    "aws_secret_access_key": "any",
}


def with_client(name: str) -> None:
    """The low-level client: waiters, paginators, exceptions."""
    client = boto3.client("dynamodb", **CONNECTION)
    client.create_table(
        TableName=name,
        AttributeDefinitions=[
            {"AttributeName": "p", "AttributeType": "S"},
            {"AttributeName": "c", "AttributeType": "N"},
        ],
        KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}, {"AttributeName": "c", "KeyType": "RANGE"}],
        BillingMode="PAY_PER_REQUEST",
    )
    client.get_waiter("table_exists").wait(TableName=name)
    for number in range(50):
        client.put_item(TableName=name, Item={"p": {"S": "x"}, "c": {"N": str(number)}, "b": {"B": b"\x00\xff"}})
    pages = client.get_paginator("query").paginate(
        TableName=name,
        KeyConditionExpression="p = :p",
        ExpressionAttributeValues={":p": {"S": "x"}},
        PaginationConfig={"PageSize": 7},
    )
    assert [int(item["c"]["N"]) for page in pages for item in page["Items"]] == list(range(50))
    try:
        client.put_item(
            TableName=name, Item={"p": {"S": "x"}, "c": {"N": "1"}}, ConditionExpression="attribute_not_exists(p)"
        )
    except client.exceptions.ConditionalCheckFailedException:
        pass
    else:
        raise AssertionError("the condition held")
    assert name in client.list_tables()["TableNames"]
    client.delete_table(TableName=name)
    client.get_waiter("table_not_exists").wait(TableName=name)


def with_resource(name: str) -> None:
    """The resource: Python's types, conditions as objects, the batch writer."""
    table = boto3.resource("dynamodb", **CONNECTION).create_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}],
        ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
    )
    table.wait_until_exists()
    with table.batch_writer() as batch:
        for number in range(60):
            batch.put_item(
                {"p": f"k{number}", "n": decimal.Decimal(number) / 8, "s": {"a", "b"}, "m": {"l": [None, True]}}
            )
    found = table.get_item(Key={"p": "k3"}, ConsistentRead=True)["Item"]
    assert found == {"p": "k3", "n": decimal.Decimal("0.375"), "s": {"a", "b"}, "m": {"l": [None, True]}}
    assert table.query(KeyConditionExpression=Key("p").eq("k3"))["Count"] == 1
    large = table.scan(
        FilterExpression=Attr("n").gte(decimal.Decimal("6.5")) & Attr("m.l").exists(), ConsistentRead=True
    )
    assert sorted(item["p"] for item in large["Items"]) == [f"k{number}" for number in range(52, 60)]
    changed = table.update_item(
        Key={"p": "k3"}, UpdateExpression="ADD n :n", ExpressionAttributeValues={":n": 2}, ReturnValues="UPDATED_NEW"
    )
    assert changed["Attributes"] == {"n": decimal.Decimal("2.375")}
    table.reload()
    assert (table.item_count, table.table_status) == (60, "ACTIVE")
    table.delete()


with_client(f"client-{uuid.uuid4().hex}")
with_resource(f"resource-{uuid.uuid4().hex}")
