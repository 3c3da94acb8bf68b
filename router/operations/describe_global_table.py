"""DescribeGlobalTable (version 2017.11.29)."""

from __future__ import annotations

from typing import Any

import orjson

from router.context import RequestContext
from router.global_tables import describe_global_table, find_global_table
from router.plan import Plan, Work


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """The regions of a global table."""

    async def run() -> bytes:
        table = await find_global_table(body["GlobalTableName"], context)
        return orjson.dumps({"GlobalTableDescription": describe_global_table(table)})

    return Work(run)
