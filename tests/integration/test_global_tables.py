"""Global tables through boto3: two regions, each a whole cluster, in one process."""

from __future__ import annotations

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


def create(client: Any, **members: Any) -> str:
    """A table with a hash key; its name."""
    name = f"global-{uuid.uuid4()}"
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
