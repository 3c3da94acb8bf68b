"""A table in two regions, and what becomes of writes to the same item in both.

    trizone up --regions us-east-1,eu-west-1
    python examples/two_regions.py http://127.0.0.1:8000 http://127.0.0.1:8001

Makes a table in the first region, gives it a replica in the second, and writes the same item in both at once: for a
moment each region shows its own, then both show the last writer's. A write by someone who has seen that one wins over
it, and so does a delete. Exit code 1 if anything comes out otherwise. The table goes at the end.
"""

from __future__ import annotations

import argparse
import sys
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3

WAIT_SECONDS = 30.0
PAUSE_SECONDS = 0.05
FIRST, SECOND = "us-east-1", "eu-west-1"


def connect(endpoint: str, region: str) -> Any:
    """A boto3 client. Any credentials will do while the cluster does not check them."""
    return boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name=region,
        aws_access_key_id="any",
        aws_secret_access_key="any",
    )


def until(what: str, found: Callable[[], bool]) -> float:
    """Wait for something to be so, and say it; the seconds that it took. Ends the program if it does not come."""
    began = time.monotonic()
    while not found():
        if time.monotonic() - began > WAIT_SECONDS:
            sys.exit(f"WRONG  it never came that {what}")
        time.sleep(PAUSE_SECONDS)
    took = time.monotonic() - began
    print(f"   ok  {what}, after {took:.2f} s")
    return took


def make_table(first: Any, second: Any, name: str) -> None:
    """A table in the first region, then its replica in the second."""
    first.create_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    first.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
    first.put_item(TableName=name, Item={"id": {"S": "old"}, "by": {"S": "before there was a replica"}})
    first.update_table(TableName=name, ReplicaUpdates=[{"Create": {"RegionName": SECOND}}])
    until("the second region has the table, with what was in it", lambda: read(second, name, "old") is not None)


def read(client: Any, name: str, key: str) -> str | None:
    """Who wrote the item; None if there is none, or no table yet."""
    try:
        item = client.get_item(TableName=name, Key={"id": {"S": key}}).get("Item")
    except client.exceptions.ResourceNotFoundException:
        return None
    return None if item is None else str(item["by"]["S"])


def conflict(clients: dict[str, Any], name: str) -> str:
    """Write one item in both regions at once; whose item both end with."""

    def write(region: str) -> None:
        clients[region].put_item(TableName=name, Item={"id": {"S": "contested"}, "by": {"S": region}})

    with ThreadPoolExecutor(len(clients)) as writers:
        list(writers.map(write, clients))
    until(
        "both regions show the same writer's item",
        lambda: len({read(client, name, "contested") for client in clients.values()}) == 1,
    )
    winner = read(clients[FIRST], name, "contested")
    assert winner is not None
    print(f"       the last writer was {winner}")
    return winner


def run(first_endpoint: str, second_endpoint: str) -> None:
    """Everything above. Ends the program when something is wrong."""
    first, second = connect(first_endpoint, FIRST), connect(second_endpoint, SECOND)
    clients = {FIRST: first, SECOND: second}
    name = f"two-regions-{uuid.uuid4()}"
    try:
        make_table(first, second, name)
        winner = conflict(clients, name)
        loser = SECOND if winner == FIRST else FIRST
        clients[loser].put_item(
            TableName=name, Item={"id": {"S": "contested"}, "by": {"S": f"{loser}, who had seen {winner}'s"}}
        )
        until(
            "a write by someone who has seen the winner wins over it",
            lambda: all((read(client, name, "contested") or "").startswith(f"{loser},") for client in clients.values()),
        )
        second.delete_item(TableName=name, Key={"id": {"S": "contested"}})
        until("a delete in one region deletes in both", lambda: read(first, name, "contested") is None)
    finally:
        first.update_table(TableName=name, ReplicaUpdates=[{"Delete": {"RegionName": SECOND}}])
        until("the second region has left the table", lambda: len(_replicas(first, name)) <= 1)
        first.delete_table(TableName=name)


def _replicas(client: Any, name: str) -> list[Any]:
    """The table's replicas as DescribeTable tells them."""
    replicas: list[Any] = client.describe_table(TableName=name)["Table"].get("Replicas", [])
    return replicas


def main() -> None:
    """Run against two endpoints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", help=f"endpoint of {FIRST}")
    parser.add_argument("second", help=f"endpoint of {SECOND}")
    arguments = parser.parse_args()
    run(arguments.first, arguments.second)


if __name__ == "__main__":
    main()
