"""Scan: the rows of a table, or of one segment of it, page by page."""

from __future__ import annotations

from typing import Any

from cluster.wire import storage_pb2
from dynamo.expressions.key_rules import check_key_paths
from dynamo.expressions.request import compile_request
from dynamo.keys import HASH_SIZE
from dynamo.table import Table
from router.context import RequestContext
from router.operations.replies import failure
from router.operations.selection import check_select, wire_query
from router.operations.tables import with_table
from router.pages import (
    Page,
    after_hash,
    canonical_start_key,
    check_start_in_segment,
    end_of_hash,
    segment_hashes,
    segment_of,
)
from router.plan import Call, Plan, StalePlanError, Work
from router.read_target import read_target


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """What a Scan request asks for. Raises ApiError."""
    compiled = compile_request("Scan", body)
    segment, total = segment_of(body)
    start_key = canonical_start_key(body)
    check_select(body)
    template = wire_query(compiled, body)

    def for_table(table: Table) -> Plan:
        target = read_target(table, body, compiled, context.catalog.topology)
        check_key_paths(compiled, table)
        target.complete(template)
        after = b""
        if start_key is not None:
            after = target.start_row(start_key)
            check_start_in_segment(after, segment, total)
        low, high = segment_hashes(segment, total)

        async def run() -> bytes:
            page = await read_page(context, target.rows, template, Page(body.get("Limit", 0)), low, high, after)
            return page.body(body, target)

        return Work(run)

    return with_table(context, body["TableName"], for_table)


async def read_page(
    context: RequestContext,
    table: Table,
    template: storage_pb2.Query,
    page: Page,
    low: bytes,
    high: bytes,
    after: bytes,
) -> Page:
    """Read on from partition to partition, in the order of hashes, until the page is full or the range ends.

    `table` has the rows: an index's own where one is read. Raises ApiError.
    """
    position = after[:HASH_SIZE] or low
    while True:
        try:
            partition = context.catalog.topology.partition_for(table.id, position)
        except LookupError:
            raise StalePlanError from None
        query = storage_pb2.Query(
            start=max(partition.low, low),
            end=end_of_hash(min(partition.high, high)),
            after=after,
            limit=page.limit_left,
            max_bytes=page.bytes_left,
        )
        query.MergeFrom(template)
        call = Call(table, position, query, 0, not query.consistent, context.request_id)
        reply = await context.executor.call(call)
        if reply.HasField("failure"):
            raise failure(reply)
        if page.add(reply.query) or partition.high >= high:
            return page
        position, after = after_hash(partition.high), b""
