"""Two regions as processes of their own: `trizone up --regions`, one of them killed and started again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.integration.launching import Up, eventually, finished
from tests.integration.test_global_tables import add, get, is_joined

EAST, WEST = "us-east-1", "eu-west-1"
NAMES = f"{EAST},{WEST}"


@contextmanager
def running(data: Path, region: str) -> Iterator[Up]:
    """One of the regions, by itself; killed at the end if it is still there."""
    up = Up("--regions", NAMES, "--only", region, "--port", "0", "--data", str(data))
    try:
        yield up
    finally:
        if up.process.poll() is None:
            up.process.kill()
            up.process.wait()


def client(endpoint: str, region: str) -> Any:
    return boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name=region,
        aws_access_key_id="any",
        aws_secret_access_key="any",
    )


def test_a_region_that_is_killed_gets_what_it_missed_and_sends_what_it_had(tmp_path: Path) -> None:
    data, name = tmp_path / "data", "orders"
    with ExitStack() as stack:
        ups = {region: stack.enter_context(running(data, region)) for region in (EAST, WEST)}
        east, west = (client(ups[region].endpoint(), region) for region in (EAST, WEST))
        east.create_table(
            TableName=name,
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )
        add(east, name, WEST)
        eventually(lambda: is_joined(east, name, WEST) and is_joined(west, name, EAST))
        west.put_item(TableName=name, Item={"pk": {"S": "from west"}})
        ups[WEST].process.kill()
        ups[WEST].process.wait()
        for n in range(20):
            east.put_item(TableName=name, Item={"pk": {"S": f"e{n}"}})
        status = finished("regions", "status", "--json", "--data", str(data))
        assert [each["region"] for each in json.loads(status.stdout)] == [EAST]
        west = client(stack.enter_context(running(data, WEST)).endpoint(), WEST)
        eventually(lambda: all(get(west, name, f"e{n}") for n in range(20)))
        eventually(lambda: get(east, name, "from west"))
        compared = finished("regions", "compare", name, "--data", str(data))
        assert compared.returncode == 0, compared.stderr
        assert f"{EAST} and {WEST} hold the same (21 and 21 items" in compared.stdout
        config = data / EAST / "config" / "replicator.toml"
        asked = finished("regions", "status", "--json", "--config", str(config))
        assert [each["region"] for each in json.loads(asked.stdout)] == [EAST]
        shown = finished("regions", "status", "--data", str(data))
        assert shown.returncode == 0
        assert name in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--regions", "us-east-1"), "--regions names at least two regions, each of them once.\n"),
        (("--regions", "us-east-1,us-east-1"), "--regions names at least two regions, each of them once.\n"),
        (("--regions", NAMES, "--only", "x"), "Region x is not among those that --regions names.\n"),
        (("--only", EAST), "--only needs --regions.\n"),
        (("--regions", NAMES, "--region", EAST), "Use either --region or --regions.\n"),
        (("--regions", NAMES, "--tls"), "--tls does not go with --regions.\n"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(tmp_path: Path, arguments: tuple[str, ...], sentence: str) -> None:
    ended = finished("up", *arguments, "--port", "0", "--data", str(tmp_path / "data"))
    assert ended.returncode == 2
    assert ended.stderr == sentence


def test_status_without_regions_says_so(tmp_path: Path) -> None:
    ended = finished("regions", "status", "--data", str(tmp_path))
    assert ended.returncode == 2
    assert ended.stderr == f"There are no regions in {tmp_path}; name their folder with --data.\n"
