"""PutResourcePolicy."""

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
    """Put a policy in place of the one before."""
    policy = policies.check_policy(body["Policy"])

    def change(table: Table) -> Table:
        policies.check_revision(table, body)
        return policies.with_policy(table, policy)

    async def run() -> bytes:
        await change_table(lambda: find_resource(body["ResourceArn"], context), change, context)
        return orjson.dumps({"RevisionId": policies.revision(policy)})

    return Work(run)
