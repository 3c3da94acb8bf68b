"""TagResource."""

from __future__ import annotations

from typing import Any

import msgspec

from dynamo.errors import validation
from dynamo.table import Table
from router.context import RequestContext
from router.plan import Plan, Work
from router.resource_arn import find_resource
from router.table_changes import change_table
from router.tags import check_count, tags_of


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """Add tags to those that the table has. Concurrent requests all take effect."""
    if not body["Tags"]:
        raise validation("Atleast one Tag needs to be provided as Input.")
    added = tags_of(body["Tags"])

    def change(table: Table) -> Table:
        return msgspec.structs.replace(table, tags=check_count({**table.tags, **added}))

    async def run() -> bytes:
        await change_table(lambda: find_resource(body["ResourceArn"], context), change, context)
        return b"{}"

    return Work(run)
