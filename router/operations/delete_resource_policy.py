"""DeleteResourcePolicy."""

from __future__ import annotations

from typing import Any

import orjson

from dynamo.table import Table
from router import resource_policies as policies
from router.context import RequestContext
from router.plan import Plan, Work
from router.resource_arn import find_resource
from router.table_changes import change_table


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """Take the policy away. That there is none is an error only where a revision was expected."""
    removed: list[str] = []

    def change(table: Table) -> Table:
        policies.check_revision(table, body)
        removed[:] = [table.resource_policy] if table.resource_policy else []
        return policies.with_policy(table, "")

    async def run() -> bytes:
        await change_table(lambda: find_resource(body["ResourceArn"], context), change, context)
        return orjson.dumps({"RevisionId": policies.revision(removed[0])} if removed else {})

    return Work(run)
