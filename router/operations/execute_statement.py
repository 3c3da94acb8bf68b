"""ExecuteStatement: one PartiQL statement."""

from __future__ import annotations

from typing import Any

from dynamo.errors import validation
from dynamo.table import Table
from router.context import RequestContext
from router.operations.statement_reads import plan_read
from router.operations.statement_writes import EXISTS_ALONE, plan_write
from router.operations.tables import with_table
from router.partiql.parse import parse
from router.partiql.statements import Exists, Select
from router.plan import Plan


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """What an ExecuteStatement request asks for. Raises ApiError."""
    parsed = parse(body["Statement"])
    statement = parsed.statement
    if isinstance(statement, Exists):
        raise validation(EXISTS_ALONE)
    values = parsed.fill(body.get("Parameters"))

    def for_table(table: Table) -> Plan:
        if isinstance(statement, Select):
            return plan_read(statement, values, body, table, context)
        return plan_write(statement, values, body, table, context)

    return with_table(context, statement.source.table, for_table)
