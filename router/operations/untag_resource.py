"""UntagResource."""

from __future__ import annotations

from typing import Any

import msgspec

from dynamo.errors import validation
from dynamo.table import Table
from router.context import RequestContext
from router.plan import Plan, Work
from router.resource_arn import find_resource
from router.table_changes import change_table


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """Take tags away. Those that the table does not have are no error."""
    if not body["TagKeys"]:
        raise validation("Atleast one Tag Key needs to be provided as Input.")
    removed = set(body["TagKeys"])

    def change(table: Table) -> Table:
        kept = {key: value for key, value in table.tags.items() if key not in removed}
        return msgspec.structs.replace(table, tags=kept)

    async def run() -> bytes:
        await change_table(lambda: find_resource(body["ResourceArn"], context), change, context)
        return b"{}"

    return Work(run)
