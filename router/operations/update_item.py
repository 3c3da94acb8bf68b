"""UpdateItem: changes attributes of an item, or makes it."""

from __future__ import annotations

from functools import partial
from typing import Any

import orjson

from cluster.wire import storage_pb2
from dynamo.errors import ApiError, in_envelope, validation
from dynamo.expressions.tree import Update
from dynamo.keys import HASH_SIZE, row_key, validate_key
from dynamo.table import Table
from dynamo.values import canonical_item, dump
from router.context import RequestContext
from router.operations.conditions import write_expressions
from router.operations.parameters import UPDATE
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
    expressive = UPDATE.check(body)
    key = canonical_item(body["Key"])
    expressions = write_expressions(body) if expressive else None

    def for_table(table: Table) -> Plan:
        validate_key(table, key)
        row = row_key(table.keys, table.attribute_types, key)
        update = storage_pb2.Update(
            key=row,
            key_attributes=dump(key),
            return_values=body.get("ReturnValues", "NONE"),
        )
        if expressions is not None:
            if expressions.update is not None:
                _check_key_untouched(table, expressions.update)
            update.tree = expressions.encoded_update
            update.condition = expressions.encoded_condition
            update.values = orjson.dumps(expressions.values)
            update.condition_return_old = body.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
        call = Call(table, row[:HASH_SIZE], update, context.operation_id(), request_id=context.request_id)
        return Single(call, partial(write_body, body=body, table=table, key=key))

    return with_table(context, body["TableName"], for_table)


def _check_key_untouched(table: Table, update: Update) -> None:
    names = table.keys.attributes
    for action in update:
        if action.path.steps[0] in names:
            raise validation(
                "One or more parameter values were invalid: "
                f"Cannot update attribute {action.path.steps[0]}. This attribute is part of the key"
            )
