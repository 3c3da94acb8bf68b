"""From tables' names to tables, when the catalog at hand may be a moment behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dynamo.table import Table
from router.context import RequestContext
from router.plan import Plan, Work, carry_out


def with_table(context: RequestContext, name: str, make_plan: Callable[[Table], Plan]) -> Plan:
    """The plan that `make_plan` makes for the table of this name or ARN.

    If the catalog at hand does not have it, a newer one is asked for first; `ResourceNotFoundException` is raised then.
    """
    table = context.catalog.find(name)
    if table is not None:
        return make_plan(table)

    async def after_refresh() -> bytes:
        await context.catalog.refresh()
        return await carry_out(make_plan(context.catalog.table(name)), context.executor)

    return Work(after_refresh)


def with_tables(context: RequestContext, names: Sequence[str], make_plan: Callable[[dict[str, Table]], Plan]) -> Plan:
    """The plan that `make_plan` makes for several tables, by the names or ARNs given. As `with_table`."""
    tables = {name: table for name in names if (table := context.catalog.find(name)) is not None}
    if len(tables) == len(names):
        return make_plan(tables)

    async def after_refresh() -> bytes:
        await context.catalog.refresh()
        found = {name: context.catalog.table(name) for name in names}
        return await carry_out(make_plan(found), context.executor)

    return Work(after_refresh)
