"""CreateGlobalTable (version 2017.11.29)."""

from __future__ import annotations

from typing import Any

import orjson

from dynamo.errors import ApiError
from router.context import RequestContext
from router.global_tables import check_empty_with_stream, describe_global_table, made_global_table, table_not_there
from router.operations.describe_table import counts
from router.plan import Plan, Work
from router.table_changes import change_table
from router.table_lookup import find_table


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """Make an empty table a global one, with replicas in all regions named."""
    name = body["GlobalTableName"]
    group = [replica["RegionName"] for replica in body["ReplicationGroup"] if "RegionName" in replica]

    async def run() -> bytes:
        try:
            table = await find_table(name, context)
        except ApiError as error:
            raise table_not_there(name) from error
        now = context.clock.wall()
        made_global_table(table, group, context.region, context.catalog.regions, now)
        items, _, _ = await counts(table, context)
        check_empty_with_stream(table, items)
        changed = await change_table(
            lambda: find_table(name, context),
            lambda newest: made_global_table(newest, group, context.region, context.catalog.regions, now),
            context,
        )
        description = {**describe_global_table(changed), "GlobalTableStatus": "CREATING"}
        return orjson.dumps({"GlobalTableDescription": description})

    return Work(run)
