"""Finding tables for the operations that manage them: by name or ARN, with a second look where the catalog has none."""

from __future__ import annotations

import re

from dynamo.errors import ApiError, resource_in_use, table_not_found, validation
from dynamo.table import Table
from router.catalog import table_name
from router.context import ACCOUNT_ID, RequestContext
from router.table_checks import INVALID

TABLE_ARN = re.compile(r"arn:aws[a-z-]*:dynamodb:([^:]+):(\d{12}):table/([a-zA-Z0-9_.-]{3,255})")

_BUSY = {
    "CREATING": "Table is being created",
    "UPDATING": "Table is being updated",
    "DELETING": "Table is being deleted",
}


def own_table_name(name: str, region: str) -> str:
    """The name in a table's name or ARN. Raises ApiError for what is no table's ARN, or that of another place."""
    if not name.startswith("arn:"):
        return name
    arn = TABLE_ARN.fullmatch(name)
    if arn is None:
        raise validation(f"{INVALID}Invalid ResourceArn provided as input {name}")
    if arn[1] != region or arn[2] != ACCOUNT_ID:
        raise validation(f"{INVALID}The table's ARN is not of region {region} and account {ACCOUNT_ID}: {name}")
    return table_name(name)


async def find_table(name: str, context: RequestContext) -> Table:
    """The table of this name or ARN, whatever its status; asks auto-admin before it says that there is none.

    Raises `ResourceNotFoundException`.
    """
    name = own_table_name(name, context.region)
    table = context.catalog.topology.table_named(name)
    if table is None:
        await context.catalog.refresh()
        table = context.catalog.topology.table_named(name)
    if table is None:
        raise table_not_found(name)
    return table


def check_idle(table: Table, *but: str) -> None:
    """Raises `ResourceInUseException` unless the table is ACTIVE, or in one of the states `but`."""
    if table.status != "ACTIVE" and table.status not in but:
        raise table_in_use(table)


def table_in_use(table: Table) -> ApiError:
    """`ResourceInUseException` for a table that something is being done to."""
    return resource_in_use(f"Attempt to change a resource which is still in use: {_BUSY[table.status]}: {table.name}")
