"""A record that rots on the leader's disk: nothing wrong is given out, and the other replicas serve it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest

from storagenode.hosted import HostedReplica
from storagenode.storage.store import WriteBatch
from trizone.services import Services

KEY = {"id": {"S": "one"}}
ITEM = {**KEY, "n": {"N": "1"}}


def connect(services: Services) -> Any:
    """A client with any credentials."""
    return boto3.client(
        "dynamodb",
        endpoint_url=f"http://{services.router.address}",
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
    )


def filled(client: Any) -> None:
    """A table with one item."""
    client.create_table(
        TableName="things",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
    )
    client.put_item(TableName="things", Item=ITEM)


def damage_on_leader(services: Services) -> HostedReplica:
    """Flip a bit of the item where its partition's leader keeps it."""
    (leader,) = (
        hosted
        for node in services.nodes
        for hosted in node.hosted_all()
        if hosted.replica.role == "leader" and hosted.partition.applied.items
    )
    ((row, stored),) = leader.store.scan(b"", b"")
    leader.store.write(WriteBatch(leader.partition.applied, items={row: stored[:-3] + b"x" + stored[-2:]}))
    return leader


def read(client: Any) -> None:
    assert client.get_item(TableName="things", Key=KEY, ConsistentRead=True)["Item"] == ITEM


def scan(client: Any) -> None:
    assert client.scan(TableName="things", ConsistentRead=True)["Items"] == [ITEM]


def update(client: Any) -> None:
    values = {":one": {"N": "1"}}
    answer = client.update_item(
        TableName="things",
        Key=KEY,
        UpdateExpression="ADD n :one",
        ExpressionAttributeValues=values,
        ReturnValues="ALL_NEW",
    )
    assert answer["Attributes"]["n"] == {"N": "2"}


@pytest.mark.parametrize("use", [read, scan, update])
async def test_another_replica_serves_what_rotted_on_the_leader(tmp_path: Path, use: Callable[[Any], None]) -> None:
    async with Services("us-east-1", tmp_path) as services:
        client = connect(services)
        await asyncio.to_thread(filled, client)
        damaged = damage_on_leader(services)
        await asyncio.to_thread(use, client)
        assert damaged.replica.role != "leader"
