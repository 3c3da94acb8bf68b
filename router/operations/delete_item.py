"""DeleteItem: takes an item out; there need not be one."""

from __future__ import annotations

from functools import partial
from typing import Any

from cluster.wire import storage_pb2
from dynamo.expressions.key_rules import check_key_paths
from dynamo.expressions.request import compile_request
from dynamo.keys import HASH_SIZE, row_key, validate_key
from dynamo.table import Table
from dynamo.values import canonical_item
from router.context import RequestContext
from router.operations.conditions import check_return_values, wire_condition
from router.operations.replies import write_body
from router.operations.tables import with_table
from router.plan import Call, Plan, Single


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """What a DeleteItem request asks for. Raises ApiError."""
    compiled = compile_request("DeleteItem", body)
    key = canonical_item(body["Key"])
    check_return_values(body)

    def for_table(table: Table) -> Plan:
        check_key_paths(compiled, table)
        validate_key(table, key)
        row = row_key(table.keys, table.attribute_types, key)
        delete = storage_pb2.Delete(
            key=row,
            condition=wire_condition(compiled, body),
            return_old=body.get("ReturnValues") == "ALL_OLD",
        )
        call = Call(table, row[:HASH_SIZE], delete, context.operation_id(), request_id=context.request_id)
        return Single(call, partial(write_body, body=body, table=table, key=key))

    return with_table(context, body["TableName"], for_table)
