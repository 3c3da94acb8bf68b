"""DeleteItem: takes an item out; there need not be one."""

from __future__ import annotations

from functools import partial
from typing import Any

from cluster.wire import storage_pb2
from dynamo.keys import HASH_SIZE, row_key, validate_key
from dynamo.table import Table
from dynamo.values import canonical_item
from router.context import RequestContext
from router.operations.conditions import write_condition
from router.operations.parameters import DELETE
from router.operations.put_item import check_return_values
from router.operations.replies import write_body
from router.operations.tables import with_table
from router.plan import Call, Plan, Single


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """What a DeleteItem request asks for. Raises ApiError."""
    conditional = DELETE.check(body)
    key = canonical_item(body["Key"])
    check_return_values(body)
    condition = write_condition(body) if conditional else None

    def for_table(table: Table) -> Plan:
        validate_key(table, key)
        row = row_key(table.keys, table.attribute_types, key)
        delete = storage_pb2.Delete(key=row, condition=condition, return_old=body.get("ReturnValues") == "ALL_OLD")
        call = Call(table, row[:HASH_SIZE], delete, context.operation_id(), request_id=context.request_id)
        return Single(call, partial(write_body, body=body, table=table, key=key))

    return with_table(context, body["TableName"], for_table)
