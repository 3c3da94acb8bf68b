"""UpdateTimeToLive."""

from __future__ import annotations

from typing import Any

import msgspec
import orjson

from dynamo.errors import validation
from dynamo.table import Table
from router.context import RequestContext
from router.plan import Plan, Work
from router.replicas import with_shared_changes
from router.table_changes import change_table
from router.table_lookup import find_table

CHANGE_SECONDS_MIN = 3_600
"""Between two changes of a table's time to live."""


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """Set or take away the attribute by which items expire."""
    wanted = body["TimeToLiveSpecification"]

    async def run() -> bytes:
        now = context.clock.wall()
        await change_table(
            lambda: find_table(body["TableName"], context),
            lambda table: with_shared_changes(table, changed_table(table, wanted, now), now),
            context,
        )
        shown = {"Enabled": wanted["Enabled"], "AttributeName": wanted["AttributeName"]}
        return orjson.dumps({"TimeToLiveSpecification": shown})

    return Work(run)


def changed_table(table: Table, wanted: dict[str, Any], now: float) -> Table:
    """The table with another time to live; `now` in seconds since the epoch. Raises ApiError, in DynamoDB's words."""
    enabled, attribute, current = wanted["Enabled"], wanted["AttributeName"], table.ttl_attribute
    if not enabled and not current:
        raise validation("TimeToLive is already disabled")
    if current and attribute != current:
        raise validation(f"TimeToLive is active on a different AttributeName: current AttributeName is {current}")
    if enabled and current:
        raise validation("TimeToLive is already enabled")
    if table.ttl_changed and now < table.ttl_changed + CHANGE_SECONDS_MIN:
        raise validation("Time to live has been modified multiple times within a fixed interval")
    return msgspec.structs.replace(table, ttl_attribute=attribute if enabled else "", ttl_changed=now)
