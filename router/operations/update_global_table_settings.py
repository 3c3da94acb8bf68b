"""UpdateGlobalTableSettings (version 2017.11.29): billing and write capacity, which all replicas share."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import orjson

from dynamo.errors import ApiError, validation
from dynamo.table import Table, Throughput
from router.context import RequestContext
from router.global_tables import describe_settings, find_global_table, replication_group
from router.plan import Plan, Work
from router.replicas import with_shared_changes
from router.table_changes import change_table
from router.table_checks import INVALID, refuse

NOT_SUPPORTED: Final = (
    "GlobalTableProvisionedWriteCapacityAutoScalingSettingsUpdate",
    "GlobalTableGlobalSecondaryIndexSettingsUpdate",
)
NOT_SUPPORTED_THERE: Final = (
    "ReplicaProvisionedReadCapacityUnits",
    "ReplicaProvisionedReadCapacityAutoScalingSettingsUpdate",
    "ReplicaGlobalSecondaryIndexSettingsUpdate",
    "ReplicaTableClass",
)
CHANGES: Final = ("GlobalTableBillingMode", "GlobalTableProvisionedWriteCapacityUnits", "ReplicaSettingsUpdate")


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """Change what all replicas share. Settings of single replicas are not supported."""
    name = body["GlobalTableName"]
    refuse(body, NOT_SUPPORTED)
    if not any(body.get(member) for member in CHANGES):
        raise validation(f"{INVALID}At least one setting of the global table must be specified")

    async def run() -> bytes:
        now = context.clock.wall()
        changed = await change_table(
            lambda: find_global_table(name, context),
            lambda table: with_shared_changes(table, _changed(table, body, now), now),
            context,
        )
        return orjson.dumps(describe_settings(changed))

    return Work(run)


def _changed(table: Table, body: dict[str, Any], now: float) -> Table:
    members = {region for region, _ in replication_group(table)}
    for update in body.get("ReplicaSettingsUpdate") or []:
        if update["RegionName"] not in members:
            raise ApiError(
                "ReplicaNotFoundException",
                f"Global table {table.name} has no replica in region {update['RegionName']}",
            )
        refuse(update, NOT_SUPPORTED_THERE)
    billing = body.get("GlobalTableBillingMode", table.billing)
    units = body.get("GlobalTableProvisionedWriteCapacityUnits")
    if billing == "PAY_PER_REQUEST":
        if units:
            raise validation(f"{INVALID}Write capacity units cannot be specified when BillingMode is PAY_PER_REQUEST")
        since = table.on_demand_since if table.billing == billing else now
        return msgspec.structs.replace(table, billing=billing, on_demand_since=since, throughput=Throughput())
    if table.billing != billing and not units:
        raise validation(f"{INVALID}Write capacity units must be specified when BillingMode is PROVISIONED")
    throughput = msgspec.structs.replace(
        table.throughput, write=units or table.throughput.write, read=table.throughput.read or units or 1
    )
    return msgspec.structs.replace(table, billing=billing, throughput=throughput)
