"""CreateTable: what it checks, in DynamoDB's words and order, what it has auto-admin make, and what it shows."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo.errors import ApiError
from router.operations import create_table
from tests.unit.router_tables import (
    ALL,
    ARN,
    COMPOSITE,
    HASH,
    INVALID,
    NOW,
    PK,
    RANGE,
    SK,
    UNITS,
    Catalog,
    ask,
    context,
    new,
)

# --- CreateTable ---


async def test_create_shows_the_table_as_it_is_being_made() -> None:
    catalog = Catalog()
    request = new(TableName=f"{ARN}abc", BillingMode="PROVISIONED", ProvisionedThroughput=UNITS, **COMPOSITE)
    shown = (await ask("CreateTable", request, catalog))["TableDescription"]
    assert shown == {
        "AttributeDefinitions": [PK, SK],
        "TableName": "abc",
        "KeySchema": [HASH, RANGE],
        "TableStatus": "CREATING",
        "CreationDateTime": NOW,
        "ProvisionedThroughput": {"NumberOfDecreasesToday": 0, **UNITS},
        "TableSizeBytes": 0,
        "ItemCount": 0,
        "TableArn": f"{ARN}abc",
        "TableId": catalog.named("abc").table_id,
        "DeletionProtectionEnabled": False,
        "WarmThroughput": {"ReadUnitsPerSecond": 5, "WriteUnitsPerSecond": 6, "Status": "ACTIVE"},
    }


async def test_create_keeps_what_was_asked_for() -> None:
    catalog = Catalog()
    request = new(
        TableClass="STANDARD_INFREQUENT_ACCESS",
        DeletionProtectionEnabled=True,
        OnDemandThroughput={"MaxReadRequestUnits": 10},
        WarmThroughput={"ReadUnitsPerSecond": 15_000, "WriteUnitsPerSecond": 5_000},
        SSESpecification={"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": "k-1"},
        Tags=[{"Key": "a", "Value": "b"}],
    )
    await ask("CreateTable", request, catalog)
    shown = (await ask("DescribeTable", {"TableName": "abc"}, catalog))["Table"]
    assert shown["TableStatus"] == "ACTIVE"
    assert shown["BillingModeSummary"] == {"BillingMode": "PAY_PER_REQUEST", "LastUpdateToPayPerRequestDateTime": NOW}
    assert shown["ProvisionedThroughput"] == {
        "NumberOfDecreasesToday": 0,
        "ReadCapacityUnits": 0,
        "WriteCapacityUnits": 0,
    }
    assert shown["TableClassSummary"] == {"TableClass": "STANDARD_INFREQUENT_ACCESS"}
    assert shown["DeletionProtectionEnabled"] is True
    assert shown["OnDemandThroughput"] == {"MaxReadRequestUnits": 10, "MaxWriteRequestUnits": -1}
    assert shown["WarmThroughput"]["ReadUnitsPerSecond"] == 15_000
    assert shown["SSEDescription"] == {
        "Status": "ENABLED",
        "SSEType": "KMS",
        "KMSMasterKeyArn": "arn:aws:kms:us-east-1:000000000000:key/k-1",
    }
    assert catalog.named("abc").tags == {"a": "b"}


async def test_encryption_that_is_not_enabled_is_the_default() -> None:
    catalog = Catalog()
    await ask("CreateTable", new(SSESpecification={"Enabled": False}), catalog)
    assert catalog.named("abc").sse_key == ""


async def test_names_that_differ_in_case_are_two_tables() -> None:
    catalog = Catalog()
    await ask("CreateTable", new(TableName="Authors"), catalog)
    await ask("CreateTable", new(TableName="authors"), catalog)
    assert (await ask("ListTables", {}, catalog))["TableNames"] == ["Authors", "authors"]


def lsi(name: str = "lsi", range_: str = "sk", **members: Any) -> dict[str, Any]:
    keys = [HASH, {"AttributeName": range_, "KeyType": "RANGE"}]
    return {"IndexName": name, "KeySchema": keys, "Projection": ALL, **members}


def gsi(name: str = "gsi", **members: Any) -> dict[str, Any]:
    keys = [{"AttributeName": "sk", "KeyType": "HASH"}]
    return {"IndexName": name, "KeySchema": keys, "Projection": ALL, **members}


BAD_TABLES = [
    (
        {"ProvisionedThroughput": UNITS},
        f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is "
        "PAY_PER_REQUEST",
    ),
    (
        {"BillingMode": "PROVISIONED"},
        f"{INVALID}ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED",
    ),
    (
        {"BillingMode": "PROVISIONED", "ProvisionedThroughput": {"ReadCapacityUnits": 10**13, "WriteCapacityUnits": 1}},
        "Given value 10000000000000 for ReadCapacityUnits is out of bounds",
    ),
    ({"AttributeDefinitions": []}, "Invalid KeySchema: Some index key attribute have no definition"),
    (
        {"AttributeDefinitions": [SK]},
        f"{INVALID}Some index key attributes are not defined in AttributeDefinitions. "
        "Keys: [pk], AttributeDefinitions: [sk]",
    ),
    (
        {"KeySchema": [HASH, {**HASH, "KeyType": "RANGE"}]},
        "Invalid KeySchema: Some index key attribute have no definition",
    ),
    (
        {"AttributeDefinitions": [PK, SK], "KeySchema": [HASH, {**HASH, "KeyType": "RANGE"}]},
        "Both the Hash Key and the Range Key element in the KeySchema have the same name",
    ),
    (
        {"KeySchema": [{**HASH, "KeyType": "RANGE"}]},
        "Invalid KeySchema: The first KeySchemaElement is not a HASH key type",
    ),
    (
        {**COMPOSITE, "KeySchema": [HASH, {**RANGE, "KeyType": "HASH"}]},
        "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type",
    ),
    ({"AttributeDefinitions": [PK, PK]}, f"{INVALID}Duplicate AttributeName in AttributeDefinitions: pk"),
    (
        {"AttributeDefinitions": [PK, SK]},
        f"{INVALID}Number of attributes in KeySchema does not exactly match number of attributes defined in "
        "AttributeDefinitions",
    ),
    ({"LocalSecondaryIndexes": []}, f"{INVALID}List of LocalSecondaryIndexes is empty"),
    ({"GlobalSecondaryIndexes": []}, f"{INVALID}List of GlobalSecondaryIndexes is empty"),
    (
        {"AttributeDefinitions": [PK, SK], "LocalSecondaryIndexes": [lsi()]},
        f"{INVALID}Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex",
    ),
    (
        {**COMPOSITE, "LocalSecondaryIndexes": [lsi(KeySchema=[HASH])]},
        f"{INVALID}Index KeySchema does not have a range key for index: lsi",
    ),
    (
        {
            **COMPOSITE,
            "LocalSecondaryIndexes": [lsi(KeySchema=[{**RANGE, "KeyType": "HASH"}, {**HASH, "KeyType": "RANGE"}])],
        },
        f"{INVALID}Index KeySchema does not have the same leading hash key as table KeySchema for index: lsi. "
        "index hash key: sk, table hash key: pk",
    ),
    (
        {**COMPOSITE, "LocalSecondaryIndexes": [lsi(), lsi()]},
        f"{INVALID}Duplicate index name: lsi",
    ),
    (
        {**COMPOSITE, "LocalSecondaryIndexes": [lsi(f"lsi{n}") for n in range(6)]},
        f"{INVALID}Number of LocalSecondaryIndexes exceeds per-table limit of 5",
    ),
    (
        {**COMPOSITE, "LocalSecondaryIndexes": [lsi("same")], "GlobalSecondaryIndexes": [gsi("same")]},
        f"{INVALID}Duplicate index name: same",
    ),
    (
        {**COMPOSITE, "GlobalSecondaryIndexes": [gsi(f"gsi{n}") for n in range(21)]},
        f"{INVALID}GlobalSecondaryIndex count exceeds the per-table limit of 20",
    ),
    (
        {**COMPOSITE, "GlobalSecondaryIndexes": [gsi(ProvisionedThroughput=UNITS)]},
        f"{INVALID}ProvisionedThroughput should not be specified for index: gsi when BillingMode is PAY_PER_REQUEST",
    ),
    (
        {"GlobalSecondaryIndexes": [gsi()]},
        f"{INVALID}Some index key attributes are not defined in AttributeDefinitions. "
        "Keys: [sk], AttributeDefinitions: [pk]",
    ),
    (
        {**COMPOSITE, "GlobalSecondaryIndexes": [gsi(Projection={"ProjectionType": "INCLUDE"})]},
        f"{INVALID}ProjectionType is INCLUDE, but NonKeyAttributes is not specified",
    ),
    (
        {**COMPOSITE, "GlobalSecondaryIndexes": [gsi(Projection={**ALL, "NonKeyAttributes": ["a"]})]},
        f"{INVALID}ProjectionType is ALL, but NonKeyAttributes is specified",
    ),
    ({**COMPOSITE, "GlobalSecondaryIndexes": [gsi(Projection={})]}, f"{INVALID}Unknown ProjectionType: null"),
    (
        {
            **COMPOSITE,
            "GlobalSecondaryIndexes": [gsi(Projection={"ProjectionType": "INCLUDE", "NonKeyAttributes": ["a", "a"]})],
        },
        f"{INVALID}Duplicate NonKeyAttributes: [a, a]",
    ),
    (
        {"StreamSpecification": {"StreamEnabled": False, "StreamViewType": "KEYS_ONLY"}},
        f"{INVALID}Table is being created with a stream disabled, UpdateViewType should not be specified",
    ),
    (
        {
            "BillingMode": "PROVISIONED",
            "ProvisionedThroughput": UNITS,
            "OnDemandThroughput": {"MaxReadRequestUnits": 1},
        },
        f"{INVALID}MaxReadRequestUnits for OnDemandThroughput cannot be specified when table BillingMode is "
        "PROVISIONED.",
    ),
    (
        {"OnDemandThroughput": {"MaxWriteRequestUnits": -1}},
        f"{INVALID}Requested MaxWriteRequestUnits for OnDemandThroughput for table is outside of valid range",
    ),
    (
        {"TableName": "arn:aws:sqs:us-east-1:000000000000:abc"},
        f"{INVALID}Invalid ResourceArn provided as input arn:aws:sqs:us-east-1:000000000000:abc",
    ),
    (
        {"WarmThroughput": {"ReadUnitsPerSecond": 11_999}},
        f"{INVALID}Requested ReadUnitsPerSecond for WarmThroughput for table is lower than current WarmThroughput, "
        "decreasing WarmThroughput is not supported",
    ),
    # What is not built is refused, and not taken in silence.
    ({"GlobalTableSourceArn": ARN + "x"}, f"{INVALID}Trizone does not support GlobalTableSourceArn yet"),
    (
        {"StreamSpecification": {"StreamEnabled": True}},
        f"{INVALID}StreamViewType must be specified when StreamEnabled is true",
    ),
    ({"ResourcePolicy": "{}"}, "Invalid policy document: it has no Statement"),
]


@pytest.mark.parametrize(("members", "text"), BAD_TABLES)
def test_a_table_that_cannot_be(members: dict[str, Any], text: str) -> None:
    with pytest.raises(ApiError) as raised:
        create_table.plan(new(**members), context(Catalog()))
    assert (raised.value.type, raised.value.message) == ("ValidationException", text)
