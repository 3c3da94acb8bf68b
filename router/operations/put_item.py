"""PutItem: puts an item in place of what was there."""

from __future__ import annotations

from functools import partial
from typing import Any

from cluster.wire import storage_pb2
from dynamo.errors import ApiError, in_envelope
from dynamo.expressions.key_rules import check_key_paths
from dynamo.expressions.request import compile_request
from dynamo.indexes import check_put_size
from dynamo.item import ITEM_SIZE_MAX, item_size, item_too_large
from dynamo.keys import HASH_SIZE, row_key, validate_index_keys, validate_item_key
from dynamo.table import Table
from dynamo.values import canonical_item, dump
from router.context import RequestContext
from router.operations.conditions import check_return_values, wire_condition
from router.operations.replies import write_body
from router.operations.tables import with_table
from router.plan import Call, Plan, Single


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """What a PutItem request asks for. Raises ApiError."""
    try:
        return _plan(body, context)
    except ApiError as error:
        raise in_envelope(error) from None


def _plan(body: dict[str, Any], context: RequestContext) -> Plan:
    compiled = compile_request("PutItem", body)
    item = canonical_item(body["Item"])
    check_return_values(body)
    size = item_size(item)
    if size > ITEM_SIZE_MAX:
        raise item_too_large()

    def for_table(table: Table) -> Plan:
        check_key_paths(compiled, table)
        validate_item_key(table, item)
        validate_index_keys(table, item)
        check_put_size(table, item, size)
        key = row_key(table.keys, table.attribute_types, item)
        put = storage_pb2.Put(
            key=key,
            item=dump(item),
            size=size,
            condition=wire_condition(compiled, body),
            return_old=body.get("ReturnValues") == "ALL_OLD",
        )
        call = Call(table, key[:HASH_SIZE], put, context.operation_id(), request_id=context.request_id)
        return Single(call, partial(write_body, body=body, table=table, key=item))

    return with_table(context, body["TableName"], for_table)
