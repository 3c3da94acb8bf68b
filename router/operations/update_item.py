"""UpdateItem: changes attributes of an item, or makes it."""

from __future__ import annotations

from functools import partial
from typing import Any

from dynamo.errors import ApiError, in_envelope
from dynamo.expressions.key_rules import check_key_paths, check_update_keys
from dynamo.expressions.request import compile_request
from dynamo.keys import HASH_SIZE, row_key, validate_key
from dynamo.table import Table
from dynamo.values import canonical_item
from router.context import RequestContext
from router.operations.conditions import wire_update
from router.operations.replies import write_body
from router.operations.tables import with_table
from router.plan import Call, Plan, Single


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """What an UpdateItem request asks for. Raises ApiError."""
    try:
        return _plan(body, context)
    except ApiError as error:
        raise in_envelope(error) from None


def _plan(body: dict[str, Any], context: RequestContext) -> Plan:
    compiled = compile_request("UpdateItem", body)
    key = canonical_item(body["Key"])

    def for_table(table: Table) -> Plan:
        validate_key(table, key)
        check_key_paths(compiled, table)
        if compiled.update is not None:
            check_update_keys(compiled.update, table.keys)
        row = row_key(table.keys, table.attribute_types, key)
        update = wire_update(row, key, compiled, body)
        call = Call(table, row[:HASH_SIZE], update, context.operation_id(), request_id=context.request_id)
        return Single(call, partial(write_body, body=body, table=table, key=key))

    return with_table(context, body["TableName"], for_table)
