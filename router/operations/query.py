"""Query: the rows of one partition key, in the order of the sort key."""

from __future__ import annotations

from functools import partial
from typing import Any

from cluster.wire import storage_pb2
from dynamo.errors import validation
from dynamo.expressions.compile import Compiled
from dynamo.expressions.key_condition import RangeCondition, resolve_key_condition
from dynamo.expressions.key_rules import check_filter_keys, check_key_paths
from dynamo.expressions.request import compile_request
from dynamo.keys import HASH_SIZE, encode_sort, next_key, partition_hash, prefix_end
from dynamo.table import Table
from dynamo.values import AttributeValue, Item
from router.context import RequestContext
from router.operations.replies import failure
from router.operations.selection import check_index, check_select, wire_query
from router.operations.tables import with_table
from router.pages import PAGE_BYTES_MAX, Page, canonical_start_key, start_row
from router.plan import Call, Plan, Single


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """What a Query request asks for. Raises ApiError."""
    compiled = compile_request("Query", body)
    start_key = canonical_start_key(body)
    check_select(body)
    if compiled.key_condition is None:
        raise validation(
            "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."
        )

    def for_table(table: Table) -> Plan:
        check_index(table, body)
        check_key_paths(compiled, table)
        start, end = _bounds(table, compiled)
        check_filter_keys(compiled, table.keys)
        query = wire_query(compiled, body)
        query.start, query.end = start, end
        query.reverse = not body.get("ScanIndexForward", True)
        query.limit = body.get("Limit", 0)
        query.max_bytes = PAGE_BYTES_MAX
        if start_key is not None:
            query.after = _start_within(table, start_key, start, end)
        call = Call(table, start[:HASH_SIZE], query, 0, not query.consistent, context.request_id)
        return Single(call, partial(_body, body=body, table=table))

    return with_table(context, body["TableName"], for_table)


def _bounds(table: Table, compiled: Compiled) -> tuple[bytes, bytes]:
    """The first row key of what the key condition asks for, and the least one above it. Raises ValidationException."""
    assert compiled.key_condition is not None
    types = table.attribute_types
    condition = resolve_key_condition(compiled.key_condition, compiled.values, table.keys, types)
    hashed = partition_hash(*_scalar(condition.hash[0]))
    if not condition.range:
        return hashed, prefix_end(hashed)
    return range_bounds(hashed, condition.range[0])


def range_bounds(hashed: bytes, condition: RangeCondition) -> tuple[bytes, bytes]:
    """The row keys from the first, inclusive, to the second, exclusive, are those that meet the condition."""
    first = hashed + encode_sort(*_scalar(condition.values[0]))
    match condition.operator:
        case "eq":
            return first, next_key(first)
        case "lt":
            return hashed, first
        case "le":
            return hashed, next_key(first)
        case "gt":
            return next_key(first), prefix_end(hashed)
        case "ge":
            return first, prefix_end(hashed)
        case "begins_with":
            return first, prefix_end(first)
        case "between":
            return first, next_key(hashed + encode_sort(*_scalar(condition.values[1])))


def _start_within(table: Table, key: Item, start: bytes, end: bytes) -> bytes:
    """The row key of ExclusiveStartKey. Raises ValidationException if the query could not have ended there."""
    row = start_row(table, key)
    if row[:HASH_SIZE] != start[:HASH_SIZE]:
        raise validation("The provided starting key is outside query boundaries based on provided conditions")
    if not start <= row < end:
        raise validation("The provided starting key does not match the range key predicate")
    return row


def _scalar(value: AttributeValue) -> tuple[str, str]:
    ((kind, content),) = value.items()
    return kind, content


def _body(reply: storage_pb2.Reply, body: dict[str, Any], table: Table) -> bytes:
    if reply.HasField("failure"):
        raise failure(reply)
    page = Page(0)
    page.add(reply.query)
    return page.body(body, table)
