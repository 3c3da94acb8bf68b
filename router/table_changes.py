"""Changing a table's record: compute it anew from the newest one until nobody else's change comes between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from dynamo.errors import ApiError, internal
from dynamo.table import Table, encode_table
from router.context import RequestContext
from router.table_lookup import check_idle

ATTEMPTS_MAX = 50
"""Of several who change a table at once one gets through each time: so many of them all do."""


async def change_table(
    find: Callable[[], Awaitable[Table]], change: Callable[[Table], Table], context: RequestContext
) -> Table:
    """The table that `find` gives, as `change` makes it, once auto-admin has it.

    Both are called again when someone else's change came first. A change that changes nothing asks nobody. Raises
    ApiError: theirs, `ResourceInUseException`, or auto-admin's.
    """
    for _ in range(ATTEMPTS_MAX):
        table = await find()
        check_idle(table)
        record = context.catalog.topology.tables[table.id]
        changed = change(record.table)
        if changed == record.table:
            return record.table
        try:
            return await context.catalog.update_table(
                table.name, encode_table(changed), record.table.schema_version, record.version
            )
        except ApiError as error:
            if error.type != "Conflict":
                raise
        await context.catalog.refresh()
    raise internal("The table was changed by others time and again")
