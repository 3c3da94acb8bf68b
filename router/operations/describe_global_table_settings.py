"""DescribeGlobalTableSettings (version 2017.11.29)."""

from __future__ import annotations

from typing import Any

import orjson

from router.context import RequestContext
from router.global_tables import describe_settings, find_global_table
from router.plan import Plan, Work


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """The settings of every replica."""

    async def run() -> bytes:
        table = await find_global_table(body["GlobalTableName"], context)
        return orjson.dumps(describe_settings(table))

    return Work(run)
