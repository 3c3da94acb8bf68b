"""UpdateGlobalTable (version 2017.11.29)."""

from __future__ import annotations

from typing import Any

import orjson

from dynamo.errors import ApiError, validation
from dynamo.table import Table
from router.context import RequestContext
from router.global_tables import describe_global_table, find_global_table
from router.plan import Plan, Work
from router.replicas import is_replica, with_replica, without_replica
from router.table_changes import change_table
from router.table_checks import INVALID


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """Add or remove replicas. A region that is removed keeps its table."""
    name, updates = body["GlobalTableName"], body["ReplicaUpdates"]
    for update in updates:
        if len([action for action in ("Create", "Delete") if update.get(action) is not None]) != 1:
            raise validation(f"{INVALID}Exactly one of Create or Delete must be specified in each ReplicaUpdate")

    async def run() -> bytes:
        now = context.clock.wall()
        changed = await change_table(
            lambda: find_global_table(name, context), lambda table: _changed(table, updates, context, now), context
        )
        description = {**describe_global_table(changed), "GlobalTableStatus": "UPDATING"}
        return orjson.dumps({"GlobalTableDescription": description})

    return Work(run)


def _changed(table: Table, updates: list[dict[str, Any]], context: RequestContext, now: float) -> Table:
    for update in updates:
        if (wanted := update.get("Create")) is not None:
            region = wanted["RegionName"]
            if is_replica(table, region):
                raise ApiError(
                    "ReplicaAlreadyExistsException", f"Global table {table.name} has a replica in region {region}"
                )
            table = with_replica(table, region, context.region, context.catalog.regions, now)
        else:
            region = update["Delete"]["RegionName"]
            if not is_replica(table, region):
                raise ApiError(
                    "ReplicaNotFoundException", f"Global table {table.name} has no replica in region {region}"
                )
            table = without_replica(table, region, context.region, now, "CUT_OFF")
    return table
