"""SELECT: the same reads as Query and Scan, planned from a statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from cluster.wire import storage_pb2
from dynamo.capacity import read_units
from dynamo.errors import validation
from dynamo.expressions import tree
from dynamo.expressions.compile import Compiled, Template
from dynamo.indexes import projected_names
from dynamo.keys import HASH_SIZE
from dynamo.table import Table
from dynamo.values import AttributeValue
from router.consumed import body_of, consumed_member
from router.context import RequestContext
from router.operations.replies import failure
from router.operations.scan import read_page
from router.pages import Page, segment_hashes
from router.partiql import columns
from router.partiql.next_token import Position, decode_token, encode_token, fingerprint
from router.partiql.planning import Reading, plan_select
from router.partiql.statements import Select
from router.plan import Call, Plan, Single, Work
from router.read_target import ReadTarget, read_target


@dataclass(frozen=True, slots=True)
class _Read:
    """A SELECT against its table: what to ask, and where to begin."""

    select: Select
    reading: Reading
    values: list[AttributeValue]
    target: ReadTarget
    template: storage_pb2.Query
    start: Position


def plan_read(
    select: Select, values: list[AttributeValue], body: dict[str, Any], table: Table, context: RequestContext
) -> Plan:
    """What an ExecuteStatement request with a SELECT asks for. Raises ApiError."""
    read = _read(select, values, body, table, context)
    if read.reading.whole_key and read.target.index is None and not body.keys() & {"Limit", "NextToken"}:
        return _get(read, body, context)

    async def run() -> bytes:
        page, number = await _read_pages(read, Page(body.get("Limit", 0)), context)
        return _body(read, page, number, body)

    return Work(run)


def _read(
    select: Select, values: list[AttributeValue], body: dict[str, Any], table: Table, context: RequestContext
) -> _Read:
    projection = columns.node_projection(select)
    target = _target(select, body, table, projection, context)
    reading = plan_select(select, values, target.keys)
    if target.index is not None:
        _check_held(select, reading, target)
    query = storage_pb2.Query(
        consistent=body.get("ConsistentRead", False),
        filter=b"" if reading.filter is None else tree.encode(reading.filter),
        values=b"" if reading.filter is None else orjson.dumps(values),
        projection=b"" if projection is None else tree.encode(projection),
        reverse=reading.reverse,
    )
    target.complete(query)
    token = body.get("NextToken")
    start = Position()
    if token is not None:
        start = decode_token(token, fingerprint(table.id, body["Statement"], values), len(reading.ranges))
    return _Read(select, reading, values, target, query, start)


# --- the index ---


def _target(
    select: Select,
    body: dict[str, Any],
    table: Table,
    projection: tree.Projection | None,
    context: RequestContext,
) -> ReadTarget:
    """What is read. The words differ from those of Query. Raises ValidationException."""
    name = select.source.index
    if not name:
        return ReadTarget(table, table)
    if all(index.name != name for index in (*table.local_indexes, *table.global_indexes)):
        raise validation("The table does not have the specified index")
    if body.get("ConsistentRead") and any(index.name == name for index in table.global_indexes):
        raise validation("Strongly consistent read is not supported on Global Secondary Indexes")
    compiled = Compiled(Template(projection=projection), [])
    return read_target(table, {"IndexName": name}, compiled, context.catalog.topology)


def _check_held(select: Select, reading: Reading, target: ReadTarget) -> None:
    """An index cannot be filtered by what it does not hold, unless all of it is read or a union of its keys. Raises
    ValidationException."""
    assert target.index is not None
    held = projected_names(target.table, target.index)
    if held is None or not reading.keyed_filter or select.where is None:
        return
    missing = sorted(tree.attributes_of(select.where) - set(held))
    if missing:
        raise validation(
            f"One or more parameter values were invalid: Secondary index {target.index.name} does not project "
            f"one or more filter attributes: [{', '.join(missing)}]"
        )


# --- reading ---


async def _read_pages(read: _Read, page: Page, context: RequestContext) -> tuple[Page, int]:
    """The page, and the number of the range that it ends in; `len(ranges)` for the end of all."""
    if not read.reading.ranges:
        low, high = segment_hashes(0, 1)
        after = b"" if read.start.key is None else read.target.start_row(read.start.key)
        await read_page(context, read.target.rows, read.template, page, low, high, after)
        return page, 0
    for number in range(read.start.number, len(read.reading.ranges)):
        call = _call(read, number, page, context)
        reply = await context.executor.call(call)
        if reply.HasField("failure"):
            raise failure(reply)
        if page.add(reply.query):
            return page, number if page.last_key_attributes else number + 1
    return page, len(read.reading.ranges)


def _bounds(read: _Read, number: int) -> tuple[bytes, bytes]:
    """The row keys of a range. Raises ValidationException for values that cannot be keys."""
    return read.target.bounds(Compiled(Template(key_condition=read.reading.ranges[number]), read.values))


def _call(read: _Read, number: int, page: Page, context: RequestContext) -> Call:
    start, end = _bounds(read, number)
    query = storage_pb2.Query(start=start, end=end, limit=page.limit_left, max_bytes=page.bytes_left)
    query.MergeFrom(read.template)
    if number == read.start.number and read.start.key is not None:
        query.after = _row_within(read, start, end)
    return Call(read.target.rows, start[:HASH_SIZE], query, 0, not query.consistent, context.request_id)


def _row_within(read: _Read, start: bytes, end: bytes) -> bytes:
    assert read.start.key is not None
    row = read.target.start_row(read.start.key)
    if not start <= row < end:
        raise validation("NextToken does not match request")
    return row


def _body(read: _Read, page: Page, number: int, body: dict[str, Any]) -> bytes:
    last = page.last_key_attributes
    token = ""
    if last or 0 < number < len(read.reading.ranges):
        token = encode_token(number, last, fingerprint(read.target.table.id, body["Statement"], read.values))
    return body_of(
        b',"Items":[%b]' % columns.rows(read.select, page.items),
        b',"NextToken":' + orjson.dumps(token) if token else b"",
        b',"LastEvaluatedKey":' + last if last else b"",
        page.consumed(body, read.target),
    )


# --- single items ---


def _get(read: _Read, body: dict[str, Any], context: RequestContext) -> Plan:
    """The row of one key, which begins the range that the key makes, as GetItem reads it."""
    consistent = read.template.consistent
    row, _ = _bounds(read, 0)
    table = read.target.table
    get = storage_pb2.Get(key=row, consistent=consistent, projection=read.template.projection)

    def answer(reply: storage_pb2.Reply) -> bytes:
        if reply.HasField("failure"):
            raise failure(reply)
        return body_of(
            b',"Items":[%b]' % row_of(read.select, reply.item.item),
            consumed_member(table, read_units(reply.item.size, consistent), body.get("ReturnConsumedCapacity")),
        )

    return Single(Call(table, row[:HASH_SIZE], get, 0, not consistent, context.request_id), answer)


def projection_of(select: Select) -> bytes:
    """The projection for a Get of the item."""
    projection = columns.node_projection(select)
    return b"" if projection is None else tree.encode(projection)


def row_of(select: Select, item: bytes) -> bytes:
    """The row that a Get's item makes; empty for none."""
    return columns.rows(select, [item]) if item else b""
