"""deploy/compose.small.yaml and deploy/compose.regions.yaml, started and used."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from tests.compose.engine import Project, eventually
from tests.compose.ledger import TABLE, connect, create

pytestmark = [
    pytest.mark.skipif("DOCKER_HOST" not in os.environ, reason="no container engine: make test-compose brings one"),
    pytest.mark.slow,
    pytest.mark.timeout(300),
]


@pytest.fixture
def project(request: pytest.FixtureRequest) -> Iterator[Project]:
    """The compose file that the test names, up; it leaves nothing behind."""
    project = Project(f"deploy/compose.{request.param}.yaml")
    project.end()
    try:
        project("up", "--build", "--detach", "--wait", "--wait-timeout", "180")
        yield project
    finally:
        project.end()


def _client(project: Project, router: str, port: int, region: str = "us-east-1") -> Any:
    file = project("exec", "-T", router, "cat", "/cluster/admin.toml")
    (credentials,) = tomllib.loads(file)["users"]["admin"]["keys"].items()
    return connect(f"http://127.0.0.1:{port}", credentials, region=region)


@pytest.mark.parametrize("project", ["small"], indirect=True)
def test_the_small_cluster_serves(project: Project) -> None:
    client = _client(project, "router", 8000)
    create(client)
    client.put_item(TableName=TABLE, Item={"id": {"S": "a"}})
    assert client.get_item(TableName=TABLE, Key={"id": {"S": "a"}}, ConsistentRead=True)["Item"] == {"id": {"S": "a"}}


@pytest.mark.parametrize("project", ["regions"], indirect=True)
def test_two_regions_share_a_table(project: Project) -> None:
    here = _client(project, "us-router", 8001)
    there = _client(project, "eu-router", 8002, "eu-central-1")
    here.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )
    here.get_waiter("table_exists").wait(TableName=TABLE, WaiterConfig={"Delay": 1})
    here.update_table(TableName=TABLE, ReplicaUpdates=[{"Create": {"RegionName": "eu-central-1"}}])

    def active() -> bool:
        replicas = here.describe_table(TableName=TABLE)["Table"].get("Replicas", [])
        return [replica["ReplicaStatus"] for replica in replicas if replica["RegionName"] == "eu-central-1"] == [
            "ACTIVE"
        ]

    eventually(active)
    here.put_item(TableName=TABLE, Item={"id": {"S": "from here"}})
    there.put_item(TableName=TABLE, Item={"id": {"S": "from there"}})
    assert eventually(lambda: _has(there, "from here") and _has(here, "from there"))


def _has(client: Any, name: str) -> bool:
    try:
        return "Item" in client.get_item(TableName=TABLE, Key={"id": {"S": name}}, ConsistentRead=True)
    except (BotoCoreError, ClientError):
        return False
