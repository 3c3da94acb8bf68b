"""UpdateTable's GlobalSecondaryIndexUpdates: what is checked, what becomes of the table, what is shown."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dynamo.table import Index, KeySchema, Table, Throughput
from tests.unit.router_tables import ALL, INVALID, UNITS, Catalog, ask, error, on_demand, provisioned

BY_G = Index("by_g", KeySchema(("g",)), "ALL", table=2)
TYPES: dict[str, Any] = {"pk": "S", "sk": "S", "g": "N"}
PLAIN = on_demand(attribute_types={"pk": "S", "sk": "S"})
WITH_INDEX = on_demand(attribute_types=TYPES, global_indexes=(BY_G,))
ONLY_ONE = "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table"


def definitions(**types: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]


def create(name: str = "by_h", key: str = "h", **members: Any) -> dict[str, Any]:
    schema = [{"AttributeName": key, "KeyType": "HASH"}]
    return {"Create": {"IndexName": name, "KeySchema": schema, "Projection": ALL, **members}}


def delete(name: str = "by_g") -> dict[str, Any]:
    return {"Delete": {"IndexName": name}}


def update(name: str = "by_g", **members: Any) -> dict[str, Any]:
    return {"Update": {"IndexName": name, **members}}


def request(*updates: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"TableName": "abc", "GlobalSecondaryIndexUpdates": list(updates), **members}


async def changed(table: Table, *updates: dict[str, Any], **members: Any) -> Table:
    catalog = Catalog(table)
    await ask("UpdateTable", request(*updates, **members), catalog)
    return catalog.named("abc")


async def test_an_index_is_created_and_shown_as_it_begins() -> None:
    catalog = Catalog(WITH_INDEX)
    shown = (await ask("UpdateTable", request(create(), AttributeDefinitions=definitions(h="S")), catalog))[
        "TableDescription"
    ]
    assert shown["TableStatus"] == "UPDATING"
    states = {
        index["IndexName"]: (index["IndexStatus"], index.get("Backfilling"))
        for index in shown["GlobalSecondaryIndexes"]
    }
    assert states == {"by_g": ("ACTIVE", None), "by_h": ("CREATING", False)}
    made = catalog.named("abc").global_indexes[1]
    assert made == Index("by_h", KeySchema(("h",)), "ALL", status="CREATING")


async def test_definitions_are_a_union_in_which_the_old_type_stays() -> None:
    """Case 24: declared again with another type, and declared without being used."""
    table = await changed(WITH_INDEX, create(), AttributeDefinitions=definitions(h="S", g="S", unused="B"))
    assert table.attribute_types == {**TYPES, "h": "S"}
    assert list(table.attribute_types) == ["pk", "sk", "g", "h"]


async def test_deleting_an_index_prunes_definitions() -> None:
    """Case 24."""
    catalog = Catalog(WITH_INDEX)
    shown = (await ask("UpdateTable", request(delete()), catalog))["TableDescription"]
    assert [(index["IndexName"], index["IndexStatus"]) for index in shown["GlobalSecondaryIndexes"]] == [
        ("by_g", "DELETING")
    ]
    assert catalog.named("abc").attribute_types == {"pk": "S", "sk": "S"}
    assert catalog.named("abc").global_indexes == ()


async def test_an_attribute_that_the_table_knows_is_to_be_defined_again() -> None:
    """Case 25."""
    refused = await error("UpdateTable", request(create(key="g")), WITH_INDEX)
    assert refused.message.startswith(f"{INVALID}Some index key attributes are not defined in AttributeDefinitions.")


async def test_throughput_of_an_index_changes() -> None:
    index = msgspec.structs.replace(BY_G, throughput=Throughput(5, 6))
    table = provisioned(attribute_types=TYPES, global_indexes=(index,))
    after = await changed(table, update(ProvisionedThroughput={"ReadCapacityUnits": 7, "WriteCapacityUnits": 6}))
    throughput = after.global_indexes[0].throughput
    assert (throughput.read, throughput.write) == (7, 6)
    assert throughput.last_increase > 0
    after = await changed(WITH_INDEX, update(OnDemandThroughput={"MaxReadRequestUnits": 9}))
    assert (after.global_indexes[0].on_demand_read, after.global_indexes[0].on_demand_write) == (9, -1)
    after = await changed(WITH_INDEX, update(WarmThroughput={"ReadUnitsPerSecond": 13_000}))
    assert after.global_indexes[0].warm_read == 13_000


async def test_indexes_follow_the_billing_mode() -> None:
    index = msgspec.structs.replace(BY_G, throughput=Throughput(5, 6))
    table = provisioned(attribute_types=TYPES, global_indexes=(index,))
    catalog = Catalog(table)
    await ask("UpdateTable", {"TableName": "abc", "BillingMode": "PAY_PER_REQUEST"}, catalog)
    assert catalog.named("abc").global_indexes[0].throughput == Throughput()
    back = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": UNITS}
    refused = await error("UpdateTable", {"TableName": "abc", **back}, WITH_INDEX)
    assert refused.message == f"{INVALID}ProvisionedThroughput is not specified for index: by_g"
    after = await changed(WITH_INDEX, update(ProvisionedThroughput=UNITS), **back)
    assert after.global_indexes[0].throughput == Throughput(5, 6)


CREATING = on_demand(
    attribute_types=TYPES,
    global_indexes=(msgspec.structs.replace(BY_G, status="CREATING", backfilling=True),),
)
H = definitions(h="S")

WRONG: list[tuple[Table, dict[str, Any], str, str]] = [
    (
        WITH_INDEX,
        request(create("by_g"), AttributeDefinitions=H),
        "ValidationException",
        f"{INVALID}Attempting to create an index which already exists",
    ),
    (PLAIN, request(delete("none")), "ResourceNotFoundException", "Requested resource not found"),
    (PLAIN, request(update("none")), "ResourceNotFoundException", "Requested resource not found"),
    (WITH_INDEX, request(create(), delete(), AttributeDefinitions=H), "LimitExceededException", ONLY_ONE),
    (CREATING, request(create(), AttributeDefinitions=H), "LimitExceededException", ONLY_ONE),
    (
        CREATING,
        request(update(OnDemandThroughput={"MaxReadRequestUnits": 9})),
        "ResourceInUseException",
        "Attempt to change a resource which is still in use: Index is being created: by_g",
    ),
    (
        WITH_INDEX,
        request(update(), update()),
        "ValidationException",
        f"{INVALID}Only one global secondary index update per index is allowed simultaneously. Index: by_g",
    ),
    (
        WITH_INDEX,
        request({**create(), **delete()}, AttributeDefinitions=H),
        "ValidationException",
        f"{INVALID}Exactly one of Create, Update or Delete must be specified in each GlobalSecondaryIndexUpdate",
    ),
    (
        PLAIN,
        request(create(ProvisionedThroughput=UNITS), AttributeDefinitions=H),
        "ValidationException",
        f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index: by_h when BillingMode "
        "is PAY_PER_REQUEST",
    ),
    (
        provisioned(),
        request(create(), AttributeDefinitions=H),
        "ValidationException",
        f"{INVALID}Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: by_h",
    ),
    (
        PLAIN,
        request(create(Projection={"ProjectionType": "INCLUDE"}), AttributeDefinitions=H),
        "ValidationException",
        f"{INVALID}ProjectionType is INCLUDE, but NonKeyAttributes is not specified",
    ),
    (
        PLAIN,
        {"TableName": "abc", "GlobalSecondaryIndexUpdates": []},
        "ValidationException",
        "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates or "
        "SSESpecification or ReplicaUpdates is required",
    ),
]


@pytest.mark.parametrize(("table", "body", "type_", "text"), WRONG)
async def test_what_cannot_be(table: Table, body: dict[str, Any], type_: str, text: str) -> None:
    refused = await error("UpdateTable", body, table)
    assert (refused.type, refused.message) == (type_, text)


async def test_an_index_that_is_being_filled_can_be_given_up() -> None:
    assert (await changed(CREATING, delete())).global_indexes == ()


async def test_there_is_a_bound_of_indexes() -> None:
    many = tuple(Index(f"i{n}", KeySchema(("g",)), "ALL", table=n) for n in range(2, 22))
    table = on_demand(attribute_types=TYPES, global_indexes=many)
    refused = await error("UpdateTable", request(create(), AttributeDefinitions=H), table)
    assert refused.message == f"{INVALID}GlobalSecondaryIndex count exceeds the per-table limit of 20"
