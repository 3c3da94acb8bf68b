"""UpdateItem: changes attributes of an item, or makes it."""

from __future__ import annotations

from functools import partial
from typing import Any

import orjson

from cluster.wire import storage_pb2
from dynamo.errors import ApiError, in_envelope
from dynamo.expressions.compile import Compiled
from dynamo.expressions.key_rules import check_key_paths, check_update_keys
from dynamo.expressions.request import compile_request
from dynamo.keys import HASH_SIZE, row_key, validate_key
from dynamo.table import Table
from dynamo.values import Item, canonical_item, dump
from router.context import RequestContext
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
        update = _wire_update(row, key, compiled, body)
        call = Call(table, row[:HASH_SIZE], update, context.operation_id(), request_id=context.request_id)
        return Single(call, partial(write_body, body=body, table=table, key=key))

    return with_table(context, body["TableName"], for_table)


def _wire_update(row: bytes, key: Item, compiled: Compiled, body: dict[str, Any]) -> storage_pb2.Update:
    return storage_pb2.Update(
        key=row,
        key_attributes=dump(key),
        tree=compiled.encoded_update,
        condition=compiled.encoded_condition,
        values=orjson.dumps(compiled.values) if compiled.values else b"",
        condition_return_old=body.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD",
        return_values=body.get("ReturnValues", "NONE"),
    )
