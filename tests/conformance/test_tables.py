"""Tables: what can be asked of them, what is shown, and what tools read from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from tests.conformance.support import VALIDATION, Client, n, new_table, random_name, refused, s

HASH = [{"AttributeName": "p", "KeyType": "HASH"}]
ALL = {"ProjectionType": "ALL"}
UNITS = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 6}


@contextmanager
def made(client: Client, *keys: str, **members: Any) -> Iterator[str]:
    """A table for the block."""
    name = members.pop("TableName", random_name())
    request = new_table(name, *(keys or ("p:S",)), **members)
    client.create_table(**{member: value for member, value in request.items() if value is not None})
    try:
        client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
        yield name
    finally:
        client.update_table(TableName=name, DeletionProtectionEnabled=False)
        client.delete_table(TableName=name)


def provisioned(client: Client, **members: Any) -> Any:
    """A provisioned table for the block."""
    return made(client, BillingMode="PROVISIONED", ProvisionedThroughput=UNITS, **members)


def describe(client: Client, name: str) -> Any:
    """The table's description."""
    return client.describe_table(TableName=name)["Table"]


def refuse_table(client: Client, error: str, *texts: str, **members: Any) -> None:
    """CreateTable fails and makes nothing."""
    name = random_name()
    request = new_table(name, "p:S", **members)
    with refused(error, *texts):
        client.create_table(**{member: value for member, value in request.items() if value is not None})
    with refused("ResourceNotFoundException"):
        client.describe_table(TableName=name)


def index(name: str, *keys: str, **projection: Any) -> dict[str, Any]:
    """A global secondary index on these attributes."""
    schema = [{"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)]
    return {"IndexName": name, "KeySchema": schema, "Projection": projection or ALL}


# --- cases 22, 26, 29, 30: definitions that contradict themselves ---


def test_one_attribute_defined_twice(client: Client) -> None:  # case 22
    for second in ("S", "N"):
        definitions = [{"AttributeName": "p", "AttributeType": type_} for type_ in ("S", second)]
        refuse_table(client, VALIDATION, AttributeDefinitions=definitions)


def test_two_indexes_that_take_one_attribute_for_two_types(client: Client) -> None:  # case 22
    definitions = [
        {"AttributeName": name, "AttributeType": type_} for name, type_ in (("p", "S"), ("x", "S"), ("x", "N"))
    ]
    indexes = [index("first", "x"), index("second", "x")]
    refuse_table(client, VALIDATION, AttributeDefinitions=definitions, GlobalSecondaryIndexes=indexes)


@pytest.mark.parametrize("definitions", [None, []])
def test_no_attribute_definitions(client: Client, definitions: Any) -> None:  # case 26
    refuse_table(client, VALIDATION, AttributeDefinitions=definitions)


@pytest.mark.parametrize(
    "projection",
    [
        {"ProjectionType": "INCLUDE"},
        {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["a", "a"]},
        {"ProjectionType": "INCLUDE", "NonKeyAttributes": []},
        {"ProjectionType": "ALL", "NonKeyAttributes": ["a"]},
        {"ProjectionType": "KEYS_ONLY", "NonKeyAttributes": ["a"]},
        {"NonKeyAttributes": ["a"]},
        {"ProjectionType": "SOME"},
    ],
)
@pytest.mark.parametrize("kind", ["GlobalSecondaryIndexes", "LocalSecondaryIndexes"])
def test_projections_that_contradict_themselves(client: Client, kind: str, projection: Any) -> None:  # case 29
    request = new_table(random_name(), "p:S", "c:S", **{kind: [index("i", "p", "c", **projection)]})
    with refused(VALIDATION):
        client.create_table(**request)


def test_two_indexes_of_one_name(client: Client) -> None:  # case 30
    one = [index("same", "p", "c")]
    for indexes in (
        {"GlobalSecondaryIndexes": one, "LocalSecondaryIndexes": one},
        {"GlobalSecondaryIndexes": one * 2},
        {"LocalSecondaryIndexes": one * 2},
    ):
        with refused(VALIDATION, "Duplicate index name: same"):
            client.create_table(**new_table(random_name(), "p:S", "c:S", **indexes))


@pytest.mark.parametrize(
    ("members", "texts"),
    [
        ({"KeySchema": []}, ["keySchema"]),
        ({"KeySchema": None}, ["keySchema"]),
        ({"KeySchema": [{"AttributeName": "x", "KeyType": "HASH"}]}, ["AttributeDefinitions"]),
        (
            {"KeySchema": [{"AttributeName": "p", "KeyType": "RANGE"}]},
            ["first KeySchemaElement is not a HASH key"],
        ),
        ({"KeySchema": HASH * 2}, ["Invalid KeySchema"]),
        ({"BillingMode": "PROVISIONED"}, ["ReadCapacityUnits and WriteCapacityUnits must both be specified"]),
        ({"BillingMode": None}, ["ReadCapacityUnits and WriteCapacityUnits must both be specified"]),
        ({"ProvisionedThroughput": UNITS}, ["when BillingMode is PAY_PER_REQUEST"]),
        (
            {"BillingMode": None, "ProvisionedThroughput": {"ReadCapacityUnits": 0, "WriteCapacityUnits": 1}},
            ["Value '0' at 'provisionedThroughput.readCapacityUnits' failed to satisfy constraint"],
        ),
        ({"TableClass": "CHEAP"}, ["Member must satisfy enum value set"]),
        ({"Tags": [{"Key": "a", "Value": "b"}] * 2}, []),
        ({"OnDemandThroughput": {"MaxReadRequestUnits": 0}}, ["OnDemandThroughput"]),
        (
            {"AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "SS"}]},
            ["Member must satisfy enum value set"],
        ),
        ({"AttributeDefinitions": [{"AttributeName": "p" * 256, "AttributeType": "S"}]}, []),
    ],
)
def test_tables_that_are_refused(client: Client, members: Any, texts: list[str]) -> None:
    refuse_table(client, VALIDATION, *texts, **members)


# --- cases 28, 45: encryption ---


@pytest.mark.parametrize("specification", [{"Enabled": False}, {}])
def test_the_default_encryption(client: Client, specification: Any) -> None:  # case 28
    with made(client, SSESpecification=specification) as name:
        assert "SSEDescription" not in describe(client, name)


def test_encryption_with_a_key(client: Client) -> None:  # case 45
    with made(client, SSESpecification={"Enabled": True, "SSEType": "KMS"}) as name:
        shown = describe(client, name)["SSEDescription"]
        assert (shown["Status"], shown["SSEType"]) == ("ENABLED", "KMS")
        assert shown["KMSMasterKeyArn"].startswith("arn:aws:kms:us-east-1:")
        client.update_table(TableName=name, SSESpecification={"Enabled": False})
        assert "SSEDescription" not in describe(client, name)


# --- cases 34, 36, 38, 44: changes ---


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (
            {"TableClass": "STANDARD_INFREQUENT_ACCESS"},
            {"TableClassSummary": {"TableClass": "STANDARD_INFREQUENT_ACCESS"}},
        ),
        (
            {"OnDemandThroughput": {"MaxReadRequestUnits": 100, "MaxWriteRequestUnits": 50}},
            {"OnDemandThroughput": {"MaxReadRequestUnits": 100, "MaxWriteRequestUnits": 50}},
        ),
        (
            {"OnDemandThroughput": {"MaxReadRequestUnits": 100}},
            {"OnDemandThroughput": {"MaxReadRequestUnits": 100, "MaxWriteRequestUnits": -1}},
        ),
        ({"DeletionProtectionEnabled": True}, {"DeletionProtectionEnabled": True}),
        (
            {"WarmThroughput": {"ReadUnitsPerSecond": 13_000, "WriteUnitsPerSecond": 5_000}},
            {"WarmThroughput": {"ReadUnitsPerSecond": 13_000, "WriteUnitsPerSecond": 5_000, "Status": "ACTIVE"}},
        ),
    ],
)
def test_one_change_alone(client: Client, change: Any, shown: Any) -> None:  # case 34
    with made(client) as name:
        client.update_table(TableName=name, **change)
        described = describe(client, name)
        for member, value in shown.items():
            found = described[member]
            assert ({key: found[key] for key in value} if isinstance(value, dict) else found) == value


def test_ceilings_are_taken_away(client: Client) -> None:
    with made(client, OnDemandThroughput={"MaxReadRequestUnits": 10, "MaxWriteRequestUnits": 10}) as name:
        none = {"MaxReadRequestUnits": -1, "MaxWriteRequestUnits": -1}
        client.update_table(TableName=name, OnDemandThroughput=none)
        assert describe(client, name).get("OnDemandThroughput", none) == none


def test_ceilings_of_a_provisioned_table(client: Client) -> None:
    with provisioned(client) as name, refused(VALIDATION, "OnDemandThroughput cannot be specified"):
        client.update_table(TableName=name, OnDemandThroughput={"MaxReadRequestUnits": 10})


def test_warm_throughput_is_not_lowered(client: Client) -> None:
    with made(client) as name, refused(VALIDATION, "WarmThroughput"):
        client.update_table(TableName=name, WarmThroughput={"ReadUnitsPerSecond": 1, "WriteUnitsPerSecond": 1})


def test_deletion_protection(client: Client) -> None:  # case 36
    with made(client, DeletionProtectionEnabled=True) as name:
        text = "Resource cannot be deleted as it is currently protected against deletion. "
        with refused(VALIDATION, text + "Disable deletion protection first."):
            client.delete_table(TableName=name)
        assert describe(client, name)["TableStatus"] == "ACTIVE"


def test_the_answer_to_a_deletion(client: Client) -> None:  # case 38
    name = random_name()
    client.create_table(**new_table(name, "p:S"))
    before = describe(client, name)
    after = client.delete_table(TableName=name)["TableDescription"]
    assert after["TableStatus"] == "DELETING"
    for member in ("TableName", "TableArn", "TableId", "ItemCount", "ProvisionedThroughput", "BillingModeSummary"):
        assert after[member] == before[member]
    client.get_waiter("table_not_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
    with refused("ResourceNotFoundException", f"Requested resource not found: Table: {name} not found"):
        client.delete_table(TableName=name)


def test_throughput_that_does_not_change(client: Client) -> None:  # case 44
    with provisioned(client) as name:
        for members in ({}, {"BillingMode": "PROVISIONED"}):
            with refused(VALIDATION, "The requested value equals the current value"):
                client.update_table(TableName=name, ProvisionedThroughput=UNITS, **members)
    with made(client) as name:
        client.update_table(TableName=name, BillingMode="PAY_PER_REQUEST")


def test_throughput_and_its_history(client: Client) -> None:
    with provisioned(client) as name:
        client.update_table(TableName=name, ProvisionedThroughput={"ReadCapacityUnits": 7, "WriteCapacityUnits": 2})
        shown = describe(client, name)["ProvisionedThroughput"]
        assert (shown["ReadCapacityUnits"], shown["WriteCapacityUnits"]) == (7, 2)
        assert shown["NumberOfDecreasesToday"] == 1
        assert shown["LastIncreaseDateTime"] == shown["LastDecreaseDateTime"]


def test_the_fifth_decrease_of_an_hour(client: Client) -> None:
    with provisioned(client) as name:
        for units in (5, 4, 3, 2):
            client.update_table(
                TableName=name, ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": units}
            )
        with refused("LimitExceededException", "Number of decreases today: 4"):
            client.update_table(TableName=name, ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 1})


def test_the_fifth_switch_to_on_demand_of_a_day(client: Client) -> None:
    with provisioned(client) as name:
        for _ in range(4):
            client.update_table(TableName=name, BillingMode="PAY_PER_REQUEST")
            client.update_table(TableName=name, BillingMode="PROVISIONED", ProvisionedThroughput=UNITS)
        with refused("LimitExceededException", "Update to PayPerRequest mode are limited"):
            client.update_table(TableName=name, BillingMode="PAY_PER_REQUEST")


# --- cases 40, 41, 42: names ---


@pytest.mark.parametrize("names", [("attrs", "position"), ("key", "value"), ("#p", "a.b"), (":v", " ")])
def test_names_of_key_attributes(client: Client, names: tuple[str, str]) -> None:  # case 40
    p, c = names
    with made(client, f"{p}:S", f"{c}:S") as name:
        item = {p: s(), c: s("x"), "v": n(1), "item": s("y"), "hash": s("z")}
        client.put_item(TableName=name, Item=item)
        assert client.scan(TableName=name, ConsistentRead=True)["Items"] == [item]


def test_key_attributes_without_a_name(client: Client) -> None:
    with refused(VALIDATION):
        client.create_table(**new_table(random_name(), ":S"))


def test_key_names_of_255_characters(client: Client) -> None:  # case 68
    with made(client, f"{'p' * 255}:S", f"{'é' * 127}c:S") as name:
        item = {"p" * 255: s(), "é" * 127 + "c": s()}
        client.put_item(TableName=name, Item=item)
        assert client.get_item(TableName=name, Key=item, ConsistentRead=True)["Item"] == item
    with refused(VALIDATION):
        client.create_table(**new_table(random_name(), f"{'p' * 256}:S"))


def test_the_longest_names(client: Client) -> None:  # case 41
    name = random_name()
    name = name + "n" * (255 - len(name))
    with made(client, TableName=name):
        item = {"p": s()}
        client.put_item(TableName=name, Item=item)
        assert client.get_item(TableName=name, Key=item, ConsistentRead=True)["Item"] == item
    with refused(VALIDATION):
        client.create_table(**new_table(name + "n", "p:S"))


def test_case_counts(client: Client) -> None:  # case 42
    name = f"Authors-{random_name()}"
    with made(client, TableName=name), made(client, TableName=name.lower()):
        client.put_item(TableName=name, Item={"p": s("x")})
        assert client.scan(TableName=name.lower(), ConsistentRead=True)["Items"] == []
        assert client.scan(TableName=name, ConsistentRead=True)["Count"] == 1


def test_arns_are_names(client: Client, simple: str) -> None:
    arn = describe(client, simple)["TableArn"]
    assert describe(client, arn)["TableName"] == simple
    item = {"p": s(), "v": n(1)}
    key = {"p": item["p"]}
    client.put_item(TableName=arn, Item=item)
    client.update_item(TableName=arn, Key=key)
    assert client.get_item(TableName=arn, Key=key, ConsistentRead=True)["Item"] == item
    values = {":p": item["p"]}
    asked = {"KeyConditionExpression": "p = :p", "ExpressionAttributeValues": values}
    assert client.query(TableName=arn, ConsistentRead=True, **asked)["Items"] == [item]
    assert client.batch_get_item(RequestItems={arn: {"Keys": [key], "ConsistentRead": True}})["Responses"]
    client.batch_write_item(RequestItems={arn: [{"DeleteRequest": {"Key": key}}]})
    assert client.scan(TableName=arn, Limit=1)["ScannedCount"] >= 0
    client.delete_item(TableName=arn, Key=key)
    with made(client) as name:
        own = describe(client, name)["TableArn"]
        changed = client.update_table(TableName=own, TableClass="STANDARD")["TableDescription"]
        assert changed["TableName"] == name


# --- counts ---


def test_counts_are_kept_true(client: Client) -> None:
    with made(client) as name:
        items = [{"p": s("k" * 10 + str(number)), "v": s("x" * number)} for number in range(30)]
        for item in items:
            client.put_item(TableName=name, Item=item)
        client.put_item(TableName=name, Item={**items[0], "v": s("replaced")})
        for item in items[20:]:
            client.delete_item(TableName=name, Key={"p": item["p"]})
        stored = client.scan(TableName=name, ConsistentRead=True)["Items"]
        size = sum(len(name) + len(value["S"]) for item in stored for name, value in item.items())
        shown = describe(client, name)
        assert (shown["ItemCount"], shown["TableSizeBytes"]) == (20, size)


def test_list_tables_pages(client: Client) -> None:
    prefix = random_name()
    with made(client, TableName=f"{prefix}-1"), made(client, TableName=f"{prefix}-2"):
        first = client.list_tables(ExclusiveStartTableName=prefix, Limit=1)
        assert first["TableNames"] == [f"{prefix}-1"]
        assert first["LastEvaluatedTableName"] == f"{prefix}-1"
        second = client.list_tables(ExclusiveStartTableName=f"{prefix}-1", Limit=1)
        assert second["TableNames"] == [f"{prefix}-2"]
    for limit in (0, 101, -1):
        with refused(VALIDATION, "at 'limit' failed to satisfy constraint"):
            client.list_tables(Limit=limit)


# --- case 37: descriptions fed back ---

INDEXES: list[dict[str, Any]] = [
    {"GlobalSecondaryIndexes": [index("byC", "c"), index("byCP", "c", "p", ProjectionType="KEYS_ONLY")]},
    {
        "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": UNITS,
        "GlobalSecondaryIndexes": [{**index("byC", "c"), "ProvisionedThroughput": UNITS}],
    },
    {
        "GlobalSecondaryIndexes": [
            index("some", "c", "p", ProjectionType="INCLUDE", NonKeyAttributes=["y", "x"]),
        ],
    },
]
TABLES: list[dict[str, Any]] = [
    *INDEXES,
    {},
    {"TableClass": "STANDARD_INFREQUENT_ACCESS"},
    {"BillingMode": "PROVISIONED", "ProvisionedThroughput": UNITS, "TableClass": "STANDARD"},
    {"BillingMode": None, "ProvisionedThroughput": UNITS, "DeletionProtectionEnabled": True},
    {"OnDemandThroughput": {"MaxReadRequestUnits": 10, "MaxWriteRequestUnits": 20}},
    {"SSESpecification": {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": "alias/mine"}},
    {"WarmThroughput": {"ReadUnitsPerSecond": 20_000, "WriteUnitsPerSecond": 8_000}},
]
OF_ONE_TABLE = ("TableName", "TableArn", "TableId", "CreationDateTime")


def request_of(shown: dict[str, Any]) -> dict[str, Any]:
    """The CreateTable request that tools make of a description."""
    request: dict[str, Any] = {
        member: shown[member]
        for member in ("AttributeDefinitions", "KeySchema", "DeletionProtectionEnabled", "OnDemandThroughput")
        if member in shown
    }
    billing = shown.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED")
    request["BillingMode"] = billing
    if billing == "PROVISIONED":
        units = shown["ProvisionedThroughput"]
        request["ProvisionedThroughput"] = {member: units[member] for member in UNITS}
    for described in shown.get("GlobalSecondaryIndexes", ()):
        members = {member: described[member] for member in ("IndexName", "KeySchema", "Projection")}
        if billing == "PROVISIONED":
            units = described["ProvisionedThroughput"]
            members["ProvisionedThroughput"] = {member: units[member] for member in UNITS}
        request.setdefault("GlobalSecondaryIndexes", []).append(members)
    if "TableClassSummary" in shown:
        request["TableClass"] = shown["TableClassSummary"]["TableClass"]
    if "SSEDescription" in shown:
        key = shown["SSEDescription"]["KMSMasterKeyArn"]
        request["SSESpecification"] = {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": key}
    warm = shown["WarmThroughput"]
    request["WarmThroughput"] = {member: value for member, value in warm.items() if member != "Status"}
    return request


def comparable(shown: dict[str, Any]) -> dict[str, Any]:
    """What two equal tables show alike."""
    kept = {member: value for member, value in shown.items() if member not in OF_ONE_TABLE}
    if "GlobalSecondaryIndexes" in kept:
        indexes = [{**index, "IndexArn": ""} for index in kept["GlobalSecondaryIndexes"]]
        kept["GlobalSecondaryIndexes"] = sorted(indexes, key=lambda index: str(index["IndexName"]))
    summary = kept.get("BillingModeSummary")
    if summary:
        kept["BillingModeSummary"] = {**summary, "LastUpdateToPayPerRequestDateTime": None}
    return kept


@pytest.mark.parametrize("members", TABLES)
def test_a_description_makes_an_equal_table(client: Client, members: Any) -> None:  # case 37
    with made(client, "p:S", "c:N", **members) as name:
        shown = describe(client, name)
        with made(client, "p:S", **request_of(shown)) as other:
            assert comparable(describe(client, other)) == comparable(shown)


def test_what_an_on_demand_table_shows(client: Client) -> None:  # case 37
    with made(client, TableClass="STANDARD_INFREQUENT_ACCESS") as name:
        shown = describe(client, name)
        assert shown["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
        assert shown["TableClassSummary"]["TableClass"] == "STANDARD_INFREQUENT_ACCESS"
        units = shown["ProvisionedThroughput"]
        assert (units["ReadCapacityUnits"], units["WriteCapacityUnits"]) == (0, 0)
        assert units["NumberOfDecreasesToday"] == 0


def test_indexes_of_an_on_demand_table(client: Client) -> None:  # cases 32, 33
    with made(client, "p:S", "c:N", GlobalSecondaryIndexes=[index("byC", "c")]) as name:
        (shown,) = describe(client, name)["GlobalSecondaryIndexes"]
        units = shown["ProvisionedThroughput"]
        assert (units["ReadCapacityUnits"], units["WriteCapacityUnits"]) == (0, 0)
        assert units["NumberOfDecreasesToday"] == 0
        assert (shown["IndexName"], shown["IndexStatus"], shown["Projection"]) == ("byC", "ACTIVE", ALL)


# --- Terraform ---


def what_terraform_reads(client: Client, name: str) -> dict[str, Any]:
    """The calls of the provider's refresh of an `aws_dynamodb_table`, in its order."""
    table = describe(client, name)
    backups = client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
    expiry = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    tags = client.list_tags_of_resource(ResourceArn=table["TableArn"])["Tags"]
    return {"table": table, "backups": backups, "expiry": expiry, "tags": tags}


@pytest.mark.parametrize("members", TABLES)
def test_terraform_would_plan_no_change(client: Client, members: Any) -> None:
    tags = [{"Key": "Name", "Value": "x"}, {"Key": "env", "Value": "test"}]
    with made(client, "p:S", "c:N", Tags=tags, **members) as name:
        first, second = what_terraform_reads(client, name), what_terraform_reads(client, name)
        assert first == second
        assert first["table"]["TableStatus"] == "ACTIVE"
        assert first["backups"]["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "DISABLED"
        assert first["expiry"]["TimeToLiveStatus"] == "DISABLED"
        assert sorted(first["tags"], key=str) == sorted(tags, key=str)
        client.put_item(TableName=name, Item={"p": s(), "c": n(1)})
        third = what_terraform_reads(client, name)["table"]
        assert without_counts(third) == without_counts(first["table"])


def without_counts(shown: Any) -> Any:
    """A description without what changes as items come and go."""
    if isinstance(shown, list):
        return [without_counts(element) for element in shown]
    if isinstance(shown, dict):
        counts = ("ItemCount", "TableSizeBytes", "IndexSizeBytes")
        return {member: without_counts(value) for member, value in shown.items() if member not in counts}
    return shown


# --- cases 20, 21: tags ---


def test_tags_of_concurrent_requests(client: Client) -> None:  # case 20
    with made(client) as name:
        arn = describe(client, name)["TableArn"]
        keys = [f"k{number}" for number in range(16)]
        with ThreadPoolExecutor(len(keys)) as threads:
            calls = [
                threads.submit(client.tag_resource, ResourceArn=arn, Tags=[{"Key": key, "Value": key}]) for key in keys
            ]
            for call in calls:
                call.result()
        tags = client.list_tags_of_resource(ResourceArn=arn)["Tags"]
        assert sorted(tag["Key"] for tag in tags) == sorted(keys)


def test_tags_of_what_is_no_table(client: Client, simple: str) -> None:  # case 21
    arn = describe(client, simple)["TableArn"]
    for wrong in (simple, f"{arn}/index/i", "arn:aws:sns:us-east-1:000000000000:table/x", f"{arn}/"):
        with refused(VALIDATION, "Invalid TableArn"):
            client.list_tags_of_resource(ResourceArn=wrong)
    calls: list[Callable[[], Any]] = [
        lambda: client.list_tags_of_resource(ResourceArn=f"{arn}x"),
        lambda: client.tag_resource(ResourceArn=f"{arn}x", Tags=[{"Key": "a", "Value": "b"}]),
        lambda: client.untag_resource(ResourceArn=f"{arn}x", TagKeys=["a"]),
    ]
    for call in calls:
        with refused("ResourceNotFoundException", f"{arn}x not found"):
            call()


def test_resource_policies(client: Client) -> None:
    policy = '{"Version": "2012-10-17", "Statement": []}'
    with made(client, ResourcePolicy=policy) as name:
        arn = describe(client, name)["TableArn"]
        first = client.get_resource_policy(ResourceArn=arn)
        assert first["Policy"] == policy
        put = client.put_resource_policy(ResourceArn=arn, Policy=policy + " ", ExpectedRevisionId=first["RevisionId"])
        assert client.get_resource_policy(ResourceArn=arn)["RevisionId"] == put["RevisionId"]
        client.delete_resource_policy(ResourceArn=arn)
        with refused("PolicyNotFoundException"):
            client.get_resource_policy(ResourceArn=arn)
