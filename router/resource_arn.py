"""Tables named by the ResourceArn of tags and resource policies, in DynamoDB's words."""

from __future__ import annotations

from dynamo.errors import resource_not_found, validation
from dynamo.table import Table
from router.context import ACCOUNT_ID, RequestContext
from router.table_lookup import TABLE_ARN


async def find_resource(arn: str, context: RequestContext) -> Table:
    """The table of this ARN; asks auto-admin before it says that there is none.

    Raises `ValidationException` for what is no table's ARN (an index's, say), `ResourceNotFoundException` for that of
    another region, account or of no table.
    """
    parts = TABLE_ARN.fullmatch(arn)
    if parts is None:
        raise validation(f"Invalid TableArn: Invalid ResourceArn provided as input {arn}")
    region, account, name = parts.groups()
    table = None
    if (region, account) == (context.region, ACCOUNT_ID):
        table = context.catalog.topology.table_named(name)
        if table is None:
            await context.catalog.refresh()
            table = context.catalog.topology.table_named(name)
    if table is None:
        # The misspelt word is DynamoDB's.
        raise resource_not_found(f"Requested resource not found: ResourcArn: {arn} not found")
    return table
