"""`trizone.Cluster`: the whole cluster inside a test's own process."""

from __future__ import annotations

import asyncio
import threading
import time
import urllib.request
import uuid
from pathlib import Path
from typing import Any

import boto3
import pytest

from trizone import Cluster
from trizone.services import Services

START_S_MAX = 0.3


def create_table(client: Any) -> str:
    """A new table with the partition key `id`; its name."""
    name = f"table-{uuid.uuid4()}"
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
    return name


def test_an_item_comes_back() -> None:
    with Cluster() as cluster:
        client = cluster.client()
        name = create_table(client)
        client.put_item(TableName=name, Item={"id": {"S": "a"}, "n": {"N": "1.50"}})
        answer = client.get_item(TableName=name, Key={"id": {"S": "a"}}, ConsistentRead=True)
        assert answer["Item"] == {"id": {"S": "a"}, "n": {"N": "1.5"}}


def test_the_largest_transaction_fits_into_one_partition() -> None:
    """4 MB, which is one entry of the log, and more than a segment of it takes here."""
    with Cluster() as cluster:
        client = cluster.client()
        name = create_table(client)
        items = [{"id": {"S": str(number)}, "text": {"S": "x" * 409_000}} for number in range(10)]
        client.transact_write_items(TransactItems=[{"Put": {"TableName": name, "Item": item}} for item in items])
        client.put_item(TableName=name, Item={"id": {"S": "next"}})
        for item in items:
            assert client.get_item(TableName=name, Key={"id": item["id"]}, ConsistentRead=True)["Item"] == item


async def test_one_of_three_auto_admins_may_be_stopped(tmp_path: Path) -> None:
    async with Services("us-east-1", tmp_path, auto_admins=3) as services:
        first = services.auto_admin
        assert [member.serving for member in services.auto_admins].count(True) == 1
        await first.stop()
        async with asyncio.timeout(30):
            while services.auto_admin is first or services.auto_admin.live_nodes < 3:  # noqa: ASYNC110
                await asyncio.sleep(0.01)  # elections tell nobody of their end
        await asyncio.to_thread(_make_and_use_a_table, f"http://{services.router.address}")


def _make_and_use_a_table(endpoint: str) -> None:
    access = {"aws_access_key_id": "any", "aws_secret_access_key": "any"}
    client = boto3.client("dynamodb", endpoint_url=endpoint, region_name="us-east-1", **access)
    name = create_table(client)
    client.put_item(TableName=name, Item={"id": {"S": "a"}})


def test_auto_admin_has_one_member_or_three() -> None:
    with pytest.raises(ValueError, match="one member or three"):
        Cluster(auto_admins=2)


async def test_asynchronous_context_manager() -> None:
    async with Cluster() as cluster:
        # The test blocks its own loop here, and the cluster goes on.
        client = cluster.client()
        assert client.list_tables()["TableNames"] == []


def test_it_is_up_at_once() -> None:
    took = []
    for _ in range(3):  # the first one may still import what it needs
        started = time.perf_counter()
        with Cluster() as cluster:
            urllib.request.urlopen(cluster.endpoint, timeout=5).close()
            took.append(time.perf_counter() - started)
    assert min(took) < START_S_MAX, took


def test_it_leaves_nothing_behind() -> None:
    before = set(threading.enumerate())
    cluster = Cluster()
    with cluster:
        endpoint = cluster.endpoint
    assert set(threading.enumerate()) <= before
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(endpoint, timeout=5)
    with pytest.raises(RuntimeError, match="not running"):
        assert cluster.endpoint


def test_clusters_do_not_see_each_other() -> None:
    with Cluster() as one, Cluster() as other:
        name = create_table(one.client())
        assert one.client().list_tables()["TableNames"] == [name]
        assert other.client().list_tables()["TableNames"] == []


def test_the_region_is_in_the_names() -> None:
    with Cluster(region="eu-central-1") as cluster:
        name = create_table(cluster.client())
        described = cluster.client().describe_table(TableName=name)["Table"]
        assert ":eu-central-1:" in described["TableArn"]


def test_the_fixture_gives_an_endpoint(trizone: str) -> None:
    with urllib.request.urlopen(trizone, timeout=5) as answer:
        assert answer.status == 200
