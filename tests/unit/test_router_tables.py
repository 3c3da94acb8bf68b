"""The other operations on tables: what they show, what they check, and what they have auto-admin do."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import orjson
import pytest

from cluster.wire import storage_pb2
from dynamo.errors import ApiError
from dynamo.table import KeySchema, Table, Throughput
from router import table_changes
from router.operations import REGISTRY, create_table, describe_table, list_tables
from router.plan import Call
from tests.unit.router_fakes import table
from tests.unit.router_tables import (
    ARN,
    HASH,
    INVALID,
    NOW,
    UNITS,
    Catalog,
    Executor,
    ask,
    context,
    error,
    new,
    on_demand,
    provisioned,
)

# --- DescribeTable, ListTables ---


async def test_describe_counts_all_partitions() -> None:
    shown = (await ask("DescribeTable", {"TableName": f"{ARN}abc"}, Catalog(on_demand())))["Table"]
    assert (shown["ItemCount"], shown["TableSizeBytes"]) == (20, 2_000)


async def test_describe_counts_on_other_replicas_when_leaders_are_silent() -> None:
    shown = await ask("DescribeTable", {"TableName": "abc"}, Catalog(on_demand()), Executor(leaders=False))
    assert shown["Table"]["ItemCount"] == 20


async def test_describe_does_not_hang_without_any_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(describe_table, "STATISTICS_SECONDS", 0.001)

    class Silent(Executor):
        async def call(self, call: Call) -> storage_pb2.Reply:  # noqa: ARG002
            await asyncio.Event().wait()
            raise AssertionError

    shown = await ask("DescribeTable", {"TableName": "abc"}, Catalog(on_demand()), Silent())
    assert shown["Table"]["ItemCount"] == 0


async def test_describe_asks_for_a_newer_catalog_before_it_says_no() -> None:
    shown = await ask("DescribeTable", {"TableName": "abc"}, Catalog(later=(on_demand(status="CREATING"),)))
    assert shown["Table"]["TableStatus"] == "CREATING"
    assert shown["Table"]["ItemCount"] == 0


@pytest.mark.parametrize("operation", ["DescribeTable", "DeleteTable", "UpdateTable"])
async def test_a_table_that_is_not_there(operation: str) -> None:
    found = await error(operation, {"TableName": "abc", "BillingMode": "PAY_PER_REQUEST"})
    text = "Requested resource not found: Table: abc not found"
    assert (found.type, found.message) == ("ResourceNotFoundException", text)


@pytest.mark.parametrize("operation", ["DescribeTable", "DeleteTable"])
@pytest.mark.parametrize(
    "arn", ["arn:aws:dynamodb:eu-west-1:000000000000:table/abc", "arn:aws:dynamodb:us-east-1:123456789012:table/abc"]
)
async def test_a_table_of_another_place(operation: str, arn: str) -> None:
    assert (await error(operation, {"TableName": arn}, on_demand())).type == "ValidationException"


async def test_list_pages() -> None:
    catalog = Catalog(*(table(name, id_=n) for n, name in enumerate(["b-2", "a-1", "c-3"], 1)))
    first = await ask("ListTables", {"Limit": 2}, catalog)
    assert first == {"TableNames": ["a-1", "b-2"], "LastEvaluatedTableName": "b-2"}
    assert await ask("ListTables", {"ExclusiveStartTableName": "b-2"}, catalog) == {"TableNames": ["c-3"]}
    assert await ask("ListTables", {"ExclusiveStartTableName": "a-2", "Limit": 1}, catalog) == {
        "TableNames": ["b-2"],
        "LastEvaluatedTableName": "b-2",
    }
    assert await ask("ListTables", {"ExclusiveStartTableName": "zzz"}, catalog) == {"TableNames": []}


def test_a_page_of_names_has_100_at_the_most() -> None:
    catalog = Catalog(*(table(f"t-{n:03}", id_=n) for n in range(1, 102)))
    body = list_tables.plan({}, context(catalog)).body  # type: ignore[union-attr]
    page = orjson.loads(body)
    assert (len(page["TableNames"]), page["LastEvaluatedTableName"]) == (100, "t-100")


# --- DeleteTable ---


async def test_delete_shows_the_table_as_it_goes() -> None:
    catalog = Catalog(on_demand())
    shown = (await ask("DeleteTable", {"TableName": "abc"}, catalog))["TableDescription"]
    assert (shown["TableStatus"], shown["ItemCount"], shown["KeySchema"][0]) == ("DELETING", 20, HASH)
    assert (await ask("ListTables", {}, catalog))["TableNames"] == []


async def test_delete_with_protection() -> None:
    found = await error("DeleteTable", {"TableName": "abc"}, on_demand(deletion_protection=True))
    assert found.message == (
        "Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first."
    )


@pytest.mark.parametrize("operation", ["DeleteTable", "UpdateTable"])
async def test_a_table_that_is_still_being_made(operation: str) -> None:
    request = {"TableName": "abc", "BillingMode": "PAY_PER_REQUEST"}
    found = await error(operation, request, on_demand(status="CREATING"))
    text = "Attempt to change a resource which is still in use: Table is being created: abc"
    assert (found.type, found.message) == ("ResourceInUseException", text)


# --- UpdateTable ---


async def update(start: Table, **members: Any) -> tuple[Any, Table]:
    """The description shown, and the table kept."""
    catalog = Catalog(start)
    shown = await ask("UpdateTable", {"TableName": "abc", **members}, catalog)
    return shown["TableDescription"], catalog.named("abc")


async def test_update_throughput() -> None:
    more_and_less = {"ReadCapacityUnits": 10, "WriteCapacityUnits": 2}
    shown, kept = await update(provisioned(), ProvisionedThroughput=more_and_less)
    assert kept.throughput == Throughput(10, 2, last_increase=NOW, last_decrease=NOW, decreases_today=1)
    assert shown["TableStatus"] == "UPDATING"
    assert shown["ProvisionedThroughput"] == {
        **more_and_less,
        "LastIncreaseDateTime": NOW,
        "LastDecreaseDateTime": NOW,
        "NumberOfDecreasesToday": 1,
    }


async def test_decreases_are_counted_by_day() -> None:
    yesterday = Throughput(5, 6, last_decrease=NOW - 86_400, decreases_today=3)
    less = {"ReadCapacityUnits": 4, "WriteCapacityUnits": 6}
    _, kept = await update(table("abc", throughput=yesterday), ProvisionedThroughput=less)
    assert kept.throughput.decreases_today == 1
    today = msgspec.structs.replace(yesterday, last_decrease=NOW)
    _, kept = await update(table("abc", throughput=today), ProvisionedThroughput=less)
    assert kept.throughput.decreases_today == 4


async def test_update_billing_mode_and_back() -> None:
    shown, kept = await update(provisioned(), BillingMode="PAY_PER_REQUEST")
    assert shown["BillingModeSummary"] == {
        "BillingMode": "PAY_PER_REQUEST",
        "LastUpdateToPayPerRequestDateTime": NOW,
    }
    assert kept.throughput == Throughput()
    shown, kept = await update(kept, BillingMode="PROVISIONED", ProvisionedThroughput=UNITS)
    assert shown["BillingModeSummary"]["BillingMode"] == "PROVISIONED"
    assert kept.throughput == Throughput(5, 6)


async def test_update_on_demand_to_itself_changes_nothing() -> None:
    start = on_demand(on_demand_since=5.0)
    _, kept = await update(start, BillingMode="PAY_PER_REQUEST")
    assert kept == start


async def test_update_ceilings_class_protection_and_warmth() -> None:
    _, kept = await update(on_demand(), OnDemandThroughput={"MaxReadRequestUnits": 7})
    assert (kept.on_demand_read, kept.on_demand_write) == (7, -1)
    _, kept = await update(kept, OnDemandThroughput={"MaxReadRequestUnits": -1})
    assert kept.on_demand_read == -1
    shown, _ = await update(on_demand(), TableClass="STANDARD_INFREQUENT_ACCESS")
    assert shown["TableClassSummary"] == {"TableClass": "STANDARD_INFREQUENT_ACCESS", "LastUpdateDateTime": NOW}
    shown, _ = await update(on_demand(), DeletionProtectionEnabled=True)
    assert shown["DeletionProtectionEnabled"] is True
    shown, _ = await update(on_demand(), WarmThroughput={"ReadUnitsPerSecond": 20_000})
    assert shown["WarmThroughput"] == {"ReadUnitsPerSecond": 20_000, "WriteUnitsPerSecond": 4_000, "Status": "ACTIVE"}


BAD_UPDATES = [
    (
        provisioned(),
        {},
        "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates or "
        "SSESpecification or ReplicaUpdates is required",
    ),
    (
        provisioned(),
        {"BillingMode": "PROVISIONED", "ProvisionedThroughput": UNITS},
        "The provisioned throughput for the table will not change. The requested value equals the current value. "
        "Current ReadCapacityUnits provisioned for the table: 5. Requested ReadCapacityUnits: 5. "
        "Current WriteCapacityUnits provisioned for the table: 6. Requested WriteCapacityUnits: 6. "
        "Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits.",
    ),
    (
        on_demand(),
        {"BillingMode": "PROVISIONED"},
        f"{INVALID}ProvisionedThroughput must be specified when BillingMode is PROVISIONED",
    ),
    (
        on_demand(),
        {"ProvisionedThroughput": UNITS},
        f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is "
        "PAY_PER_REQUEST",
    ),
    (
        provisioned(),
        {"BillingMode": "PAY_PER_REQUEST", "ProvisionedThroughput": UNITS},
        f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is "
        "PAY_PER_REQUEST",
    ),
    (
        provisioned(),
        {"OnDemandThroughput": {"MaxReadRequestUnits": 5}},
        f"{INVALID}MaxReadRequestUnits for OnDemandThroughput cannot be specified when the table BillingMode is "
        "PROVISIONED",
    ),
    (
        on_demand(),
        {"OnDemandThroughput": {"MaxReadRequestUnits": 0}},
        f"{INVALID}Requested MaxReadRequestUnits for OnDemandThroughput for table is outside of valid range",
    ),
    (
        on_demand(),
        {"WarmThroughput": {"WriteUnitsPerSecond": 3_999}},
        f"{INVALID}Requested WriteUnitsPerSecond for WarmThroughput for table is lower than current WarmThroughput, "
        "decreasing WarmThroughput is not supported",
    ),
    (
        on_demand(),
        {"StreamSpecification": {"StreamEnabled": True}},
        f"{INVALID}StreamViewType must be specified when StreamEnabled is true",
    ),
    (
        on_demand(),
        {"GlobalTableWitnessUpdates": [{}]},
        f"{INVALID}Trizone does not support GlobalTableWitnessUpdates yet",
    ),
]


@pytest.mark.parametrize(("start", "members", "text"), BAD_UPDATES)
async def test_an_update_that_cannot_be(start: Table, members: dict[str, Any], text: str) -> None:
    found = await error("UpdateTable", {"TableName": "abc", **members}, start)
    assert (found.type, found.message) == ("ValidationException", text)


async def test_an_update_that_another_came_before_is_computed_again() -> None:
    catalog = Catalog(on_demand(), conflicts=2)
    await ask("UpdateTable", {"TableName": "abc", "DeletionProtectionEnabled": True}, catalog)
    assert catalog.submitted == [(1, 2), (1, 3), (1, 4)]
    assert catalog.named("abc").deletion_protection


async def test_an_update_that_others_always_come_before_is_given_up() -> None:
    catalog = Catalog(on_demand(), conflicts=100)
    with pytest.raises(ApiError) as raised:
        await ask("UpdateTable", {"TableName": "abc", "DeletionProtectionEnabled": True}, catalog)
    assert (raised.value.type, len(catalog.submitted)) == ("InternalServerError", table_changes.ATTEMPTS_MAX)


# --- the rest ---


async def test_limits() -> None:
    assert await ask("DescribeLimits", {}, Catalog()) == {
        "AccountMaxReadCapacityUnits": 80_000,
        "AccountMaxWriteCapacityUnits": 80_000,
        "TableMaxReadCapacityUnits": 40_000,
        "TableMaxWriteCapacityUnits": 40_000,
    }


def test_endpoints() -> None:
    asked = context(Catalog())
    asked.host = "localhost:8000"
    body = REGISTRY["DescribeEndpoints"]({}, asked).body  # type: ignore[union-attr]
    assert orjson.loads(body) == {"Endpoints": [{"Address": "localhost:8000", "CachePeriodInMinutes": 1_440}]}


def test_a_key_may_have_any_name() -> None:
    schema = [{"AttributeName": "attrs", "KeyType": "HASH"}]
    definitions = [{"AttributeName": "attrs", "AttributeType": "B"}]
    made = create_table.table_of(new(KeySchema=schema, AttributeDefinitions=definitions), context(Catalog()))
    assert (made.keys, made.attribute_types) == (KeySchema(("attrs",)), {"attrs": "B"})
