"""What the calls of global tables' version 2017.11.29 share: finding such a table, and how it is shown.

They work over the same machinery as ReplicaUpdates. What is different about these tables: every region makes its own
table first, empty; a region that is removed keeps its table; and they are shown by these calls only.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import msgspec

from dynamo.errors import ApiError, validation
from dynamo.regions import made_global, replica_of
from dynamo.table import Table
from router.context import ACCOUNT_ID, RequestContext
from router.replicas import VIEW, is_replica, others, status_of, with_replica
from router.table_checks import INVALID

VERSION: Final = "2017.11.29"


def global_table_not_found(name: str) -> ApiError:
    """`GlobalTableNotFoundException`."""
    return ApiError("GlobalTableNotFoundException", f"Global table with name: '{name}' not found")


def table_not_there(name: str) -> ApiError:
    """`TableNotFoundException`."""
    return ApiError(
        "TableNotFoundException", f"Table not found: Table with name: '{name}' does not exist in this Region"
    )


async def find_global_table(name: str, context: RequestContext) -> Table:
    """The global table of this name. Raises `GlobalTableNotFoundException`."""
    table = context.catalog.topology.table_named(name)
    if table is None or table.global_version != VERSION:
        await context.catalog.refresh()
        table = context.catalog.topology.table_named(name)
    if table is None or not is_shown(table):
        raise global_table_not_found(name)
    return table


def is_shown(table: Table) -> bool:
    """Whether these calls know the table."""
    return table.global_version == VERSION and is_replica(table, table.region)


def check_empty_with_stream(table: Table, items: int) -> None:
    """What a table must be to become a replica. Raises ApiError."""
    if table.stream is None or table.stream.view != VIEW:
        raise validation(f"{INVALID}Table {table.name} must have its stream enabled with the view type {VIEW}")
    if items:
        raise validation(f"{INVALID}Table {table.name} must be empty to become a replica of a global table")


def made_global_table(table: Table, group: Collection[str], region: str, regions: Collection[str], now: float) -> Table:
    """The table as a global table with replicas in all regions of `group`. Raises ApiError."""
    if is_shown(table) or others(table):
        raise ApiError("GlobalTableAlreadyExistsException", f"Global table with name: '{table.name}' already exists")
    if region not in group:
        raise validation(f"{INVALID}The replication group must include the region {region}")
    table = msgspec.structs.replace(made_global(table, region, int(now * 1000)), global_version=VERSION)
    for name in dict.fromkeys(group):
        if name != region:
            table = with_replica(table, name, region, regions, now)
    return table


def replication_group(table: Table) -> list[tuple[str, str]]:
    """Name and status of every region that takes part, in order."""
    own = replica_of(table, table.region)
    shown = [(replica.region, status_of(replica)) for replica in others(table)]
    if own is not None:
        shown.append((own.region, "ACTIVE"))
    return sorted(shown)


def describe_global_table(table: Table) -> dict[str, Any]:
    """The GlobalTableDescription."""
    group = replication_group(table)
    statuses = {status for _, status in group}
    return {
        "ReplicationGroup": [{"RegionName": region, "ReplicaStatus": status} for region, status in group],
        "GlobalTableArn": f"arn:aws:dynamodb::{ACCOUNT_ID}:global-table/{table.name}",
        "CreationDateTime": round(min(replica.since for replica in table.replicas) / 1000, 3),
        "GlobalTableStatus": "ACTIVE" if statuses <= {"ACTIVE"} else "UPDATING",
        "GlobalTableName": table.name,
    }


def describe_settings(table: Table) -> dict[str, Any]:
    """The settings of all replicas, which are the same."""
    return {
        "GlobalTableName": table.name,
        "ReplicaSettings": [_settings(table, region, status) for region, status in replication_group(table)],
    }


def _settings(table: Table, region: str, status: str) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "RegionName": region,
        "ReplicaStatus": status,
        "ReplicaProvisionedReadCapacityUnits": table.throughput.read,
        "ReplicaProvisionedWriteCapacityUnits": table.throughput.write,
    }
    if table.billing == "PAY_PER_REQUEST":
        shown["ReplicaBillingModeSummary"] = {
            "BillingMode": table.billing,
            "LastUpdateToPayPerRequestDateTime": round(table.on_demand_since, 3),
        }
    if table.table_class:
        shown["ReplicaTableClassSummary"] = {"TableClass": table.table_class}
    if table.global_indexes:
        shown["ReplicaGlobalSecondaryIndexSettings"] = [
            {
                "IndexName": index.name,
                "IndexStatus": index.status,
                "ProvisionedReadCapacityUnits": index.throughput.read,
                "ProvisionedWriteCapacityUnits": index.throughput.write,
            }
            for index in table.global_indexes
        ]
    return shown
