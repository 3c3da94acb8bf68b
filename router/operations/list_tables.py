"""ListTables."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import orjson

from router.context import RequestContext
from router.plan import Immediate, Plan

LIMIT_MAX = 100


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """A page of names, from the catalog at hand."""
    names = context.catalog.topology.table_names()
    after = body.get("ExclusiveStartTableName")
    start = bisect_right(names, after) if after is not None else 0
    page = names[start : start + body.get("Limit", LIMIT_MAX)]
    answer: dict[str, Any] = {"TableNames": page}
    if page and start + len(page) < len(names):
        answer["LastEvaluatedTableName"] = page[-1]
    return Immediate(orjson.dumps(answer))
