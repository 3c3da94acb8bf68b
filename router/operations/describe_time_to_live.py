"""DescribeTimeToLive."""

from __future__ import annotations

from typing import Any

import orjson

from router.context import RequestContext
from router.plan import Plan, Work
from router.table_lookup import find_table


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """The table's setting: changes are done when they are answered, so nothing is under way."""

    async def run() -> bytes:
        table = await find_table(body["TableName"], context)
        description = {"TimeToLiveStatus": "ENABLED" if table.ttl_attribute else "DISABLED"}
        if table.ttl_attribute:
            description["AttributeName"] = table.ttl_attribute
        return orjson.dumps({"TimeToLiveDescription": description})

    return Work(run)
