"""UpdateTable."""

from __future__ import annotations

from typing import Any

import msgspec
import orjson

from dynamo.errors import validation
from dynamo.table import Table, Throughput
from router import table_checks as checks
from router.context import ACCOUNT_ID, RequestContext
from router.index_updates import being_updated, check_updates, with_updated_indexes
from router.plan import Plan, Work
from router.replicas import check_replica_updates, others, with_replica_updates, with_shared_changes
from router.stream_definitions import changed_streams
from router.table_changes import change_table
from router.table_checks import INVALID
from router.table_description import describe, warm_units
from router.table_lookup import find_table
from router.throughput_changes import changed_throughput, switches_with

CHANGES = (
    "ProvisionedThroughput",
    "BillingMode",
    "SSESpecification",
    "TableClass",
    "DeletionProtectionEnabled",
    "OnDemandThroughput",
    "WarmThroughput",
    "GlobalSecondaryIndexUpdates",
    "StreamSpecification",
    "ReplicaUpdates",
)
NOT_SUPPORTED = (
    "MultiRegionConsistency",
    "GlobalTableWitnessUpdates",
    "GlobalTableSettingsReplicationMode",
    "DisassociationProtectionEnabled",
    "VectorIndexUpdates",
)


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """Check the request, compute the table as it will be, and have auto-admin put it in place of the old."""
    check_request(body)
    check_replica_updates(body.get("ReplicaUpdates") or [], context.region)

    async def run() -> bytes:
        before: list[Table] = []

        def change(table: Table) -> Table:
            before[:] = [table]
            return changed_table(table, body, context)

        changed = await change_table(lambda: find_table(body["TableName"], context), change, context)
        description = describe(being_updated(before[0], changed), context.region, context.clock.wall())
        return orjson.dumps({"TableDescription": description})

    return Work(run)


def check_request(body: dict[str, Any]) -> None:
    """What can be said without the table. Raises ApiError."""
    billing, throughput = body.get("BillingMode"), body.get("ProvisionedThroughput")
    checks.check_on_demand_without_units(billing, throughput)
    checks.check_throughput_bounds(throughput)
    if not any(body.get(member) not in (None, []) for member in (*CHANGES, *NOT_SUPPORTED)):
        raise validation(
            "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates or "
            "SSESpecification or ReplicaUpdates is required"
        )
    checks.refuse(body, NOT_SUPPORTED)
    check_updates(body.get("GlobalSecondaryIndexUpdates") or [])


def changed_table(table: Table, body: dict[str, Any], context: RequestContext) -> Table:
    """The table once the request is done. Raises ApiError."""
    now = context.clock.wall()
    before = table
    table = _with_billing(table, body, now)
    table = _with_ceilings(table, body.get("OnDemandThroughput") or {})
    table = _with_warm_throughput(table, body.get("WarmThroughput") or {})
    table = with_updated_indexes(table, body, now)
    changes: dict[str, Any] = {}
    if "StreamSpecification" in body:
        if others(table):
            raise validation(f"{INVALID}The stream of a table with replicas cannot be changed")
        changes["streams"] = changed_streams(table, body["StreamSpecification"], now)
    if "DeletionProtectionEnabled" in body:
        changes["deletion_protection"] = body["DeletionProtectionEnabled"]
    if "TableClass" in body:
        changes |= {"table_class": body["TableClass"], "table_class_changed": now}
    if "SSESpecification" in body:
        changes["sse_key"] = checks.sse_key(body["SSESpecification"], context.region, ACCOUNT_ID)
    changed = msgspec.structs.replace(table, **changes)
    changed = with_replica_updates(
        changed, body.get("ReplicaUpdates") or [], context.region, context.catalog.regions, now
    )
    return with_shared_changes(before, changed, now)


def _with_billing(table: Table, body: dict[str, Any], now: float) -> Table:
    billing, wanted = body.get("BillingMode", table.billing), body.get("ProvisionedThroughput")
    checks.check_on_demand_without_units(billing, wanted)
    if body.get("BillingMode") == "PROVISIONED" and not wanted:
        raise validation(f"{INVALID}ProvisionedThroughput must be specified when BillingMode is PROVISIONED")
    if billing == "PAY_PER_REQUEST":
        if table.billing == billing:
            return table
        return msgspec.structs.replace(
            table,
            billing=billing,
            on_demand_since=now,
            on_demand_switches=switches_with(now, table.on_demand_switches),
            throughput=Throughput(),
        )
    if not wanted:
        return table
    if table.billing != billing:
        throughput = Throughput(wanted["ReadCapacityUnits"], wanted["WriteCapacityUnits"])
        return msgspec.structs.replace(
            table, billing=billing, throughput=throughput, on_demand_read=-1, on_demand_write=-1
        )
    throughput = changed_throughput(table.throughput, wanted["ReadCapacityUnits"], wanted["WriteCapacityUnits"], now)
    return msgspec.structs.replace(table, throughput=throughput)


def _with_ceilings(table: Table, wanted: dict[str, int]) -> Table:
    provisioned = "" if table.billing == "PAY_PER_REQUEST" else "the table BillingMode is PROVISIONED"
    checks.check_on_demand_ceilings(wanted, provisioned=provisioned, lowest=-1)
    return msgspec.structs.replace(
        table,
        on_demand_read=wanted.get("MaxReadRequestUnits", table.on_demand_read),
        on_demand_write=wanted.get("MaxWriteRequestUnits", table.on_demand_write),
    )


def _with_warm_throughput(table: Table, wanted: dict[str, int]) -> Table:
    checks.check_warm_throughput(wanted, warm_units(table))
    return msgspec.structs.replace(
        table,
        warm_read=wanted.get("ReadUnitsPerSecond", table.warm_read),
        warm_write=wanted.get("WriteUnitsPerSecond", table.warm_write),
    )
