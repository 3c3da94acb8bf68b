"""Query: the rows of one partition key, in the order of the sort key."""

from __future__ import annotations

from functools import partial
from typing import Any

from cluster.wire import storage_pb2
from dynamo.errors import ApiError, in_envelope, validation
from dynamo.expressions.key_rules import check_filter_keys, check_key_paths
from dynamo.expressions.request import compile_request
from dynamo.keys import HASH_SIZE
from dynamo.table import Table
from dynamo.values import Item
from router.context import RequestContext
from router.operations.replies import failure
from router.operations.selection import check_select, wire_query
from router.operations.tables import with_table
from router.pages import PAGE_BYTES_MAX, Page, canonical_start_key
from router.plan import Call, Plan, Single
from router.read_target import ReadTarget, read_target


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """What a Query request asks for. Raises ApiError."""
    compiled = compile_request("Query", body)
    start_key = canonical_start_key(body)
    try:
        check_select(body)
    except ApiError as error:
        raise in_envelope(error) from None  # Query words it as PutItem would, Scan does not
    if compiled.key_condition is None:
        raise validation(
            "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."
        )

    def for_table(table: Table) -> Plan:
        target = read_target(table, body, compiled, context.catalog.topology)
        check_key_paths(compiled, table)
        start, end = target.bounds(compiled)
        check_filter_keys(compiled, target.keys)
        query = wire_query(compiled, body)
        query.start, query.end = start, end
        target.complete(query)
        query.reverse = not body.get("ScanIndexForward", True)
        query.limit = body.get("Limit", 0)
        query.max_bytes = PAGE_BYTES_MAX
        if start_key is not None:
            query.after = _start_within(target, start_key, start, end)
        call = Call(target.rows, start[:HASH_SIZE], query, 0, not query.consistent, context.request_id)
        return Single(call, partial(_body, body=body, target=target))

    return with_table(context, body["TableName"], for_table)


def _start_within(target: ReadTarget, key: Item, start: bytes, end: bytes) -> bytes:
    """The row key of ExclusiveStartKey. Raises ValidationException if the query could not have ended there."""
    row = target.start_row(key)
    if row[:HASH_SIZE] != start[:HASH_SIZE]:
        raise validation("The provided starting key is outside query boundaries based on provided conditions")
    if not start <= row < end:
        raise validation("The provided starting key does not match the range key predicate")
    return row


def _body(reply: storage_pb2.Reply, body: dict[str, Any], target: ReadTarget) -> bytes:
    if reply.HasField("failure"):
        raise failure(reply)
    page = Page(0)
    page.add(reply.query)
    return page.body(body, target)
