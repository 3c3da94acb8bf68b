"""DescribeTimeToLive."""

from __future__ import annotations

from typing import Any

import orjson

from router.context import RequestContext
from router.plan import Plan, Work
from router.table_lookup import find_table


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """Disabled for every table: UpdateTimeToLive is not built."""

    async def run() -> bytes:
        await find_table(body["TableName"], context)
        return orjson.dumps({"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}})

    return Work(run)
