"""DeleteTable."""

from __future__ import annotations

from typing import Any

import orjson

from dynamo.errors import validation
from router.context import RequestContext
from router.operations.describe_table import counts, index_counts
from router.plan import Plan, Work
from router.replicas import leaving, others
from router.table_changes import change_table
from router.table_description import being_deleted, describe
from router.table_lookup import check_idle, find_table


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """Check what the catalog at hand tells, then have auto-admin drop the table."""

    async def run() -> bytes:
        table = await find_table(body["TableName"], context)
        check_idle(table, "UPDATING")
        if table.deletion_protection:
            raise validation(
                "Resource cannot be deleted as it is currently protected against deletion. "
                "Disable deletion protection first."
            )
        items, size, local_indexes = await counts(table, context)
        of_indexes = await index_counts(table, context)
        now = context.clock.wall()
        if others(table):  # the replicator tells the other regions, and then drops it
            dropped = await change_table(
                lambda: find_table(body["TableName"], context), lambda newest: leaving(newest, now), context
            )
        else:
            dropped = await context.catalog.delete_table(table.name)
        description = describe(
            being_deleted(dropped),
            context.region,
            now,
            items=items,
            size=size,
            status="DELETING",
            local_indexes=local_indexes,
            global_indexes=of_indexes,
        )
        return orjson.dumps({"TableDescription": description})

    return Work(run)
