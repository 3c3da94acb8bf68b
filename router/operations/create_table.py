"""CreateTable."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
import orjson

from dynamo.errors import validation
from dynamo.table import KeySchema, Table, Throughput
from router import table_checks as checks
from router.context import ACCOUNT_ID, RequestContext
from router.index_checks import check_indexes
from router.index_definitions import index_of
from router.plan import Plan, Work
from router.resource_policies import check_policy
from router.stream_definitions import new_stream
from router.table_checks import INVALID
from router.table_description import being_created, describe, warm_units
from router.table_lookup import own_table_name
from router.tags import tags_of

NOT_SUPPORTED = (
    "VectorIndexes",
    "GlobalTableSourceArn",
    "GlobalTableSettingsReplicationMode",
)


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """Check everything that can be checked here, then have auto-admin make the table."""
    table = table_of(body, context)

    async def run() -> bytes:
        made = await context.catalog.create_table(table)
        description = describe(being_created(made), context.region, context.clock.wall())
        return orjson.dumps({"TableDescription": description})

    return Work(run)


def table_of(body: dict[str, Any], context: RequestContext) -> Table:
    """The table that a request describes; auto-admin gives it its id. Raises ApiError, in DynamoDB's order."""
    name = own_table_name(body["TableName"], context.region)
    _check_billing(body)
    defined = _check_keys(body)
    stream = new_stream(body.get("StreamSpecification"), now := context.clock.wall())
    tags = tags_of(body.get("Tags") or ())
    ceilings = _check_ceilings(body)
    key = checks.sse_key(body.get("SSESpecification"), context.region, ACCOUNT_ID)
    policy = check_policy(body["ResourcePolicy"]) if "ResourcePolicy" in body else ""
    checks.refuse(body, NOT_SUPPORTED)
    throughput = body.get("ProvisionedThroughput") or {}
    warm = body.get("WarmThroughput") or {}
    schema = body["KeySchema"]
    billing = body.get("BillingMode", "PROVISIONED")
    table = Table(
        id=0,
        name=name,
        schema_version=1,
        attribute_types=defined,
        keys=KeySchema(
            hash=tuple(element["AttributeName"] for element in schema[:1]),
            range=tuple(element["AttributeName"] for element in schema[1:]),
        ),
        created=now,
        table_id=str(uuid.UUID(bytes=context.random.bytes(16), version=4)),
        billing=billing,
        on_demand_since=now if billing == "PAY_PER_REQUEST" else 0.0,
        throughput=Throughput(throughput.get("ReadCapacityUnits", 0), throughput.get("WriteCapacityUnits", 0)),
        on_demand_read=ceilings.get("MaxReadRequestUnits", -1),
        on_demand_write=ceilings.get("MaxWriteRequestUnits", -1),
        local_indexes=tuple(index_of(element) for element in body.get("LocalSecondaryIndexes") or ()),
        global_indexes=tuple(index_of(element) for element in body.get("GlobalSecondaryIndexes") or ()),
        streams=(stream,) if stream is not None else (),
        deletion_protection=body.get("DeletionProtectionEnabled", False),
        table_class=body.get("TableClass", ""),
        sse_key=key,
        tags=tags,
        resource_policy=policy,
    )
    checks.check_warm_throughput(warm, warm_units(table))
    return msgspec.structs.replace(
        table, warm_read=warm.get("ReadUnitsPerSecond", 0), warm_write=warm.get("WriteUnitsPerSecond", 0)
    )


def _check_billing(body: dict[str, Any]) -> None:
    billing, throughput = body.get("BillingMode"), body.get("ProvisionedThroughput")
    checks.check_on_demand_without_units(billing, throughput)
    checks.check_throughput_bounds(throughput)
    if billing != "PAY_PER_REQUEST" and not throughput:
        raise validation(
            f"{INVALID}ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED"
        )


def _check_keys(body: dict[str, Any]) -> dict[str, Any]:
    """The attribute definitions as a dict, once keys and indexes are found to agree with them."""
    definitions = body["AttributeDefinitions"]
    names = [definition["AttributeName"] for definition in definitions]
    checks.check_keys_are_defined(body["KeySchema"], names)
    checks.check_key_order(body["KeySchema"])
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise validation(f"{INVALID}Duplicate AttributeName in AttributeDefinitions: {twice}")
    check_indexes(body, names)
    indexes = [*(body.get("LocalSecondaryIndexes") or ()), *(body.get("GlobalSecondaryIndexes") or ())]
    used = {element["AttributeName"] for keyed in (body, *indexes) for element in keyed["KeySchema"]}
    if used != set(names):
        if indexes:
            unused = [name for name in names if name not in used]
            raise validation(
                f"{INVALID}Some AttributeDefinitions are not used. AttributeDefinitions: [{', '.join(names)}], "
                f"unused: [{', '.join(unused)}]"
            )
        raise validation(
            f"{INVALID}Number of attributes in KeySchema does not exactly match number of attributes defined in "
            "AttributeDefinitions"
        )
    return {definition["AttributeName"]: definition["AttributeType"] for definition in definitions}


def _check_ceilings(body: dict[str, Any]) -> dict[str, int]:
    ceilings: dict[str, int] = body.get("OnDemandThroughput") or {}
    provisioned = "" if body.get("BillingMode") == "PAY_PER_REQUEST" else "table BillingMode is PROVISIONED."
    checks.check_on_demand_ceilings(ceilings, provisioned=provisioned, lowest=1)
    return ceilings
