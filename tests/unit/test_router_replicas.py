"""ReplicaUpdates, what descriptions tell of replicas, and the calls of 2017, without any region."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dynamo.errors import ApiError
from dynamo.regions import made_global, replica_of, with_entry, with_state
from dynamo.table import Replica, Stream, Table
from tests.unit.router_tables import INVALID, NOW, Catalog, ask, error, on_demand, provisioned

EAST, WEST, SOUTH = "us-east-1", "eu-west-1", "sa-east-1"
BOTH = Stream("2026-01-01", "NEW_AND_OLD_IMAGES", 1.0)


def create(region: str) -> dict[str, Any]:
    return {"TableName": "abc", "ReplicaUpdates": [{"Create": {"RegionName": region}}]}


def delete(region: str) -> dict[str, Any]:
    return {"TableName": "abc", "ReplicaUpdates": [{"Delete": {"RegionName": region}}]}


def global_table(state: str = "ACTIVE", since: int = 1, by: str = EAST, **members: Any) -> Table:
    """A table with a replica in WEST in this state."""
    table = on_demand(streams=(BOTH,), global_version="2019.11.21", **members)
    table = with_entry(made_global(table, EAST, 1), Replica(WEST, 0, since, "CREATING", by))
    return with_state(table, WEST, since, state)


async def test_a_replica_is_wanted_in_the_catalog_and_shown_as_being_made() -> None:
    catalog = Catalog(on_demand())
    answer = (await ask("UpdateTable", create(WEST), catalog))["TableDescription"]
    assert answer["Replicas"] == [{"RegionName": WEST, "ReplicaStatus": "CREATING"}]
    assert answer["GlobalTableVersion"] == "2019.11.21"
    assert answer["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    made = catalog.named("abc")
    assert made.region == EAST
    entry = replica_of(made, WEST)
    assert entry is not None
    assert (entry.state, entry.by, entry.number) == ("CREATING", EAST, 2)
    assert entry.since >= int(NOW * 1000)


async def test_a_stream_that_is_there_stays() -> None:
    catalog = Catalog(on_demand(streams=(BOTH,)))
    await ask("UpdateTable", create(WEST), catalog)
    assert catalog.named("abc").streams == (BOTH,)


async def test_a_replica_that_goes_is_shown_until_it_is_gone() -> None:
    catalog = Catalog(global_table())
    answer = (await ask("UpdateTable", delete(WEST), catalog))["TableDescription"]
    assert answer["Replicas"] == [{"RegionName": WEST, "ReplicaStatus": "DELETING"}]
    table = catalog.named("abc")
    entry = replica_of(table, WEST)
    assert entry is not None
    gone = Catalog(with_state(table, WEST, entry.since, "REMOVED"))
    assert "Replicas" not in (await ask("DescribeTable", {"TableName": "abc"}, gone))["Table"]


@pytest.mark.parametrize(
    ("state", "shown"), [("CREATING", "CREATING"), ("FILLING", "CREATING"), ("ACTIVE", "ACTIVE"), ("CUT_OFF", None)]
)
async def test_states_as_they_are_shown(state: str, shown: str | None) -> None:
    found = (await ask("DescribeTable", {"TableName": "abc"}, Catalog(global_table(state))))["Table"]
    assert [each["ReplicaStatus"] for each in found.get("Replicas", [])] == ([shown] if shown else [])


async def test_a_replica_that_could_not_be_made_says_why() -> None:
    (found,) = (await ask("DescribeTable", {"TableName": "abc"}, Catalog(global_table("CREATION_FAILED"))))["Table"][
        "Replicas"
    ]
    assert found["ReplicaStatus"] == "CREATION_FAILED"
    assert "exists" in found["ReplicaStatusDescription"]
    catalog = Catalog(global_table("CREATION_FAILED"))
    await ask("UpdateTable", create(WEST), catalog)
    entry = replica_of(catalog.named("abc"), WEST)
    assert entry is not None
    assert entry.state == "CREATING", "it can be tried again"


LOCAL = (
    "Cannot add, delete, or update the local region through ReplicaUpdates. Use CreateTable, DeleteTable, or "
    "UpdateTable as required."
)
EXISTS = (
    "Failed to create a the new replica of table with name: 'abc' because one or more replicas "
    "already existed as tables."
)
NOT_FOUND = "Replica specified in the Replica Update or Replica Delete action of the request was not found."
SOURCE = (
    "Replica cannot be deleted because it has acted as a source region for new replica(s) being added to the table in "
    "the last 24 hours."
)
LATELY = int(NOW * 1000) - 1_000
REFUSED = [
    (on_demand(), create(EAST), LOCAL),
    (on_demand(), delete(EAST), LOCAL),
    (on_demand(), create("mars-1"), f"{INVALID}Region mars-1 is not a region that replicas can be in"),
    (on_demand(), delete(WEST), NOT_FOUND),
    (global_table(), create(WEST), EXISTS),
    (global_table("DELETING"), delete(WEST), NOT_FOUND),
    (global_table(since=LATELY, by=WEST), delete(WEST), None),
    (
        on_demand(streams=(Stream("x", "KEYS_ONLY", 1.0),)),
        create(WEST),
        f"{INVALID}Table abc must have its stream enabled with the view type NEW_AND_OLD_IMAGES to have replicas",
    ),
    (
        on_demand(),
        {"TableName": "abc", "ReplicaUpdates": [{}]},
        f"{INVALID}Exactly one of Create, Update or Delete must be specified in each ReplicaUpdate",
    ),
    (
        on_demand(),
        {"TableName": "abc", "ReplicaUpdates": [{"Create": {"RegionName": WEST, "KMSMasterKeyId": "k"}}]},
        f"{INVALID}Trizone does not support KMSMasterKeyId yet",
    ),
    (
        on_demand(),
        {"TableName": "abc", "ReplicaUpdates": [{"Create": {"RegionName": WEST}}, {"Delete": {"RegionName": WEST}}]},
        f"{INVALID}Only one replica update per region is allowed simultaneously. Region: {WEST}",
    ),
    (
        global_table(),
        {"TableName": "abc", "StreamSpecification": {"StreamEnabled": False}},
        f"{INVALID}The stream of a table with replicas cannot be changed",
    ),
]


@pytest.mark.parametrize(("table", "body", "text"), REFUSED)
async def test_what_is_refused(table: Table, body: dict[str, Any], text: str | None) -> None:
    if text is None:
        await ask("UpdateTable", body, Catalog(table))
        return
    found = await error("UpdateTable", body, table)
    assert (found.type, found.message) == ("ValidationException", text)


async def test_a_region_that_others_were_added_from_lately_cannot_go() -> None:
    found = await error("DeleteTable", {"TableName": "abc"}, global_table(since=LATELY))
    assert (found.type, found.message) == ("ValidationException", SOURCE)
    three = with_entry(global_table(since=LATELY, by=WEST), Replica(SOUTH, 0, LATELY + 1, "CREATING", WEST))
    found = await error("UpdateTable", delete(WEST), three)
    assert found.message == SOURCE


async def test_a_region_tells_the_others_before_its_table_goes() -> None:
    catalog = Catalog(global_table())
    answer = await ask("DeleteTable", {"TableName": "abc"}, catalog)
    assert answer["TableDescription"]["TableStatus"] == "DELETING"
    own = replica_of(catalog.named("abc"), EAST)
    assert own is not None
    assert own.state == "DELETING"
    shown = (await ask("DescribeTable", {"TableName": "abc"}, catalog))["Table"]
    assert shown["TableStatus"] == "DELETING"


async def test_a_table_that_is_no_replica_any_more_goes_at_once() -> None:
    table = global_table()
    own = Replica(EAST, 0, 99, "CUT_OFF", WEST)
    catalog = Catalog(with_entry(table, own))
    await ask("DeleteTable", {"TableName": "abc"}, catalog)
    assert catalog.tables == ()


async def test_what_all_regions_share_is_marked_when_it_changes() -> None:
    catalog = Catalog(global_table())
    await ask("UpdateTable", {"TableName": "abc", "DeletionProtectionEnabled": True}, catalog)
    assert catalog.named("abc").settings_changed == 0, "that is each region's own"
    body = {"TableName": "abc", "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "t"}}
    await ask("UpdateTimeToLive", body, catalog)
    first = catalog.named("abc").settings_changed
    assert first >= int(NOW * 1000)
    units = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    await ask(
        "UpdateTable", {"TableName": "abc", "BillingMode": "PROVISIONED", "ProvisionedThroughput": units}, catalog
    )
    assert catalog.named("abc").settings_changed > first


# --- 2017.11.29 ---


def group(*regions: str) -> list[dict[str, str]]:
    return [{"RegionName": region} for region in regions]


def of_2017() -> Table:
    return msgspec.structs.replace(global_table(), global_version="2017.11.29")


async def test_a_global_table_of_2017_is_described_and_listed() -> None:
    catalog = Catalog(of_2017())
    found = (await ask("DescribeGlobalTable", {"GlobalTableName": "abc"}, catalog))["GlobalTableDescription"]
    assert found == {
        "ReplicationGroup": [
            {"RegionName": WEST, "ReplicaStatus": "ACTIVE"},
            {"RegionName": EAST, "ReplicaStatus": "ACTIVE"},
        ],
        "GlobalTableArn": "arn:aws:dynamodb::000000000000:global-table/abc",
        "CreationDateTime": 0.001,
        "GlobalTableStatus": "ACTIVE",
        "GlobalTableName": "abc",
    }
    listed = await ask("ListGlobalTables", {}, catalog)
    assert listed == {"GlobalTables": [{"GlobalTableName": "abc", "ReplicationGroup": group(WEST, EAST)}]}
    assert await ask("ListGlobalTables", {"RegionName": SOUTH}, catalog) == {"GlobalTables": []}
    assert "Replicas" not in (await ask("DescribeTable", {"TableName": "abc"}, catalog))["Table"]


async def test_pages_of_global_tables() -> None:
    tables = [msgspec.structs.replace(of_2017(), id=n, name=f"t{n}") for n in range(3)]
    first = await ask("ListGlobalTables", {"Limit": 2}, Catalog(*tables))
    assert [each["GlobalTableName"] for each in first["GlobalTables"]] == ["t0", "t1"]
    body = {"ExclusiveStartGlobalTableName": first["LastEvaluatedGlobalTableName"]}
    rest = await ask("ListGlobalTables", body, Catalog(*tables))
    assert [each["GlobalTableName"] for each in rest["GlobalTables"]] == ["t2"]
    assert "LastEvaluatedGlobalTableName" not in rest


async def refused(operation: str, body: dict[str, Any], *tables: Table) -> str:
    return (await error(operation, {"GlobalTableName": "abc", **body}, *tables)).type


async def test_what_the_calls_of_2017_refuse() -> None:
    create_group = {"ReplicationGroup": group(EAST, WEST)}
    assert await refused("CreateGlobalTable", create_group) == "TableNotFoundException"
    assert await refused("CreateGlobalTable", create_group, of_2017()) == "GlobalTableAlreadyExistsException"
    assert await refused("CreateGlobalTable", create_group, on_demand(streams=(BOTH,))) == "ValidationException", "full"
    assert await refused("CreateGlobalTable", {"ReplicationGroup": group(WEST)}, on_demand()) == "ValidationException"
    assert await refused("DescribeGlobalTable", {}, global_table()) == "GlobalTableNotFoundException"
    add = {"ReplicaUpdates": [{"Create": {"RegionName": WEST}}]}
    assert await refused("UpdateGlobalTable", add, of_2017()) == "ReplicaAlreadyExistsException"
    assert await refused("UpdateGlobalTable", add, global_table()) == "GlobalTableNotFoundException"
    remove = {"ReplicaUpdates": [{"Delete": {"RegionName": SOUTH}}]}
    assert await refused("UpdateGlobalTable", remove, of_2017()) == "ReplicaNotFoundException"
    there = {"ReplicaSettingsUpdate": [{"RegionName": SOUTH}]}
    assert await refused("UpdateGlobalTableSettings", there, of_2017()) == "ReplicaNotFoundException"
    assert await refused("UpdateGlobalTableSettings", {}, of_2017()) == "ValidationException"


async def test_settings_of_all_replicas_change_together() -> None:
    catalog = Catalog(of_2017())
    body = {
        "GlobalTableName": "abc",
        "GlobalTableBillingMode": "PROVISIONED",
        "GlobalTableProvisionedWriteCapacityUnits": 7,
    }
    answer = await ask("UpdateGlobalTableSettings", body, catalog)
    assert [each["ReplicaProvisionedWriteCapacityUnits"] for each in answer["ReplicaSettings"]] == [7, 7]
    assert catalog.named("abc").settings_changed >= int(NOW * 1000)
    assert await ask("DescribeGlobalTableSettings", {"GlobalTableName": "abc"}, catalog) == answer


async def test_a_region_without_any_other_has_no_replicas() -> None:
    catalog = Catalog(provisioned())
    catalog.regions = ()
    with pytest.raises(ApiError, match="is not a region that replicas can be in"):
        await ask("UpdateTable", create(WEST), catalog)
