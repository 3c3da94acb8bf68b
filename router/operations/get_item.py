"""GetItem: reads one item, or parts of it."""

from __future__ import annotations

from functools import partial
from typing import Any

from cluster.wire import storage_pb2
from dynamo.capacity import read_units
from dynamo.expressions.key_rules import check_key_paths
from dynamo.expressions.request import compile_request
from dynamo.keys import HASH_SIZE, row_key, validate_key
from dynamo.table import Table
from dynamo.values import canonical_item
from router.consumed import body_of, consumed_member
from router.context import RequestContext
from router.operations.replies import failure
from router.operations.tables import with_table
from router.plan import Call, Plan, Single


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """What a GetItem request asks for. Raises ApiError."""
    compiled = compile_request("GetItem", body)
    key = canonical_item(body["Key"])
    consistent = body.get("ConsistentRead", False)

    def for_table(table: Table) -> Plan:
        check_key_paths(compiled, table)
        validate_key(table, key)
        row = row_key(table.keys, table.attribute_types, key)
        get = storage_pb2.Get(key=row, consistent=consistent, projection=compiled.encoded_projection)
        call = Call(table, row[:HASH_SIZE], get, 0, not consistent, context.request_id)
        return Single(call, partial(_body, body=body, table=table))

    return with_table(context, body["TableName"], for_table)


def _body(reply: storage_pb2.Reply, body: dict[str, Any], table: Table) -> bytes:
    if reply.HasField("failure"):
        raise failure(reply)
    item = reply.item.item
    if "ReturnConsumedCapacity" not in body:
        return b'{"Item":%b}' % item if item else b"{}"
    units = read_units(reply.item.size, body.get("ConsistentRead", False))
    return body_of(
        b',"Item":' + item if item else b"",
        consumed_member(table, units, body["ReturnConsumedCapacity"]),
    )
