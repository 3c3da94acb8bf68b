"""ListTagsOfResource."""

from __future__ import annotations

from typing import Any

import orjson

from dynamo.errors import validation
from router.context import RequestContext
from router.plan import Plan, Work
from router.resource_arn import find_resource
from router.table_checks import INVALID
from router.tags import as_listed


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """All tags of a table: there are 50 at the most, so one page holds them, and no NextToken was ever given out."""
    if "NextToken" in body:
        raise validation(f"{INVALID}Invalid NextToken")

    async def run() -> bytes:
        table = await find_resource(body["ResourceArn"], context)
        return orjson.dumps({"Tags": as_listed(table.tags)})

    return Work(run)
