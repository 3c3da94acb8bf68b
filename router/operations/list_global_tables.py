"""ListGlobalTables (version 2017.11.29)."""

from __future__ import annotations

from typing import Any, Final

import orjson

from router.context import RequestContext
from router.global_tables import is_shown, replication_group
from router.plan import Plan, Work

TABLES_MAX: Final = 100


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """Global tables in order of their names; with RegionName those that have a replica there."""

    async def run() -> bytes:
        await context.catalog.refresh()
        topology = context.catalog.topology
        after, region = body.get("ExclusiveStartGlobalTableName", ""), body.get("RegionName")
        found = []
        for name in topology.table_names():
            table = topology.table_named(name)
            if name <= after or table is None or not is_shown(table):
                continue
            group = [member for member, _ in replication_group(table)]
            if region is None or region in group:
                found.append({"GlobalTableName": name, "ReplicationGroup": [{"RegionName": each} for each in group]})
        page = found[: body.get("Limit", TABLES_MAX)]
        answer: dict[str, Any] = {"GlobalTables": page}
        if len(page) < len(found):
            answer["LastEvaluatedGlobalTableName"] = page[-1]["GlobalTableName"]
        return orjson.dumps(answer)

    return Work(run)
