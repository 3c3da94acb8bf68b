"""A global table over three regions: joined one after the other, written everywhere, one of them removed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.regions import Regions, until
from tests.integration.test_global_tables import add, create, replicas, scan

EAST, WEST, SOUTH = NAMES = ("us-east-1", "eu-west-1", "sa-east-1")


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    with Regions(tmp_path_factory.mktemp("regions"), *NAMES) as regions:
        yield {name: regions.client(name) for name in NAMES}


def joined(clients: dict[str, Any], name: str, *regions: str) -> bool:
    """Whether each of these regions knows all others as active."""
    return all(
        replicas(clients[region], name) == {other: "ACTIVE" for other in regions if other != region}
        for region in regions
    )


def alike(clients: dict[str, Any], name: str, *regions: str) -> bool:
    found = [scan(clients[region], name) for region in regions]
    return all(each == found[0] for each in found)


def test_three_regions_end_alike_and_two_go_on_without_the_third(clients: dict[str, Any]) -> None:
    name = create(clients[EAST])
    for n in range(30):
        clients[EAST].put_item(TableName=name, Item={"pk": {"S": f"old-{n}"}})
    add(clients[EAST], name, WEST)
    until("two are joined", lambda: joined(clients, name, EAST, WEST))
    for n in range(10):
        clients[WEST].put_item(TableName=name, Item={"pk": {"S": f"west-{n}"}})
        clients[EAST].delete_item(TableName=name, Key={"pk": {"S": f"old-{n}"}})
    add(clients[WEST], name, SOUTH)
    for round_ in range(3):
        for region in (EAST, WEST):
            item = {"pk": {"S": "contended"}, "by": {"S": region}, "n": {"N": str(round_)}}
            clients[region].put_item(TableName=name, Item=item)
    until("three are joined", lambda: joined(clients, name, *NAMES))
    clients[SOUTH].put_item(TableName=name, Item={"pk": {"S": "south"}})
    until("all hold the same", lambda: alike(clients, name, *NAMES))
    found = scan(clients[SOUTH], name)
    assert set(found) == {*(f"old-{n}" for n in range(10, 30)), *(f"west-{n}" for n in range(10)), "contended", "south"}
    assert found["contended"]["n"] == {"N": "2"}
    clients[EAST].update_table(TableName=name, ReplicaUpdates=[{"Delete": {"RegionName": SOUTH}}])
    until("it is gone", lambda: name not in clients[SOUTH].list_tables()["TableNames"])
    until("the others know", lambda: joined(clients, name, EAST, WEST))
    clients[EAST].put_item(TableName=name, Item={"pk": {"S": "after"}})
    until("they go on", lambda: alike(clients, name, EAST, WEST))
    assert "after" in scan(clients[WEST], name)
    assert "south" in scan(clients[EAST], name), "what a region wrote stays when it goes"
