"""GetResourcePolicy."""

from __future__ import annotations

from typing import Any

import orjson

from router import resource_policies as policies
from router.context import RequestContext
from router.plan import Plan, Work
from router.resource_arn import find_resource


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """The table's policy as it was put."""

    async def run() -> bytes:
        table = await find_resource(body["ResourceArn"], context)
        if not table.resource_policy:
            raise policies.policy_not_found(body["ResourceArn"])
        revision = policies.revision(table.resource_policy)
        return orjson.dumps({"Policy": table.resource_policy, "RevisionId": revision})

    return Work(run)
