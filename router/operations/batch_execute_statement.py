"""BatchExecuteStatement: up to 25 PartiQL statements, each of one item and done on its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson

from cluster.wire import storage_pb2
from dynamo.capacity import read_units, write_units
from dynamo.errors import ApiError, resource_not_found, validation
from dynamo.keys import HASH_SIZE, row_key, validate_key
from dynamo.table import Table
from dynamo.values import AttributeValue, dump
from router.consumed import consumed, units_by_index
from router.context import RequestContext
from router.operations.replies import failure
from router.operations.statement_reads import projection_of, row_of
from router.operations.statement_writes import EXISTS_ALONE, Write, write_of
from router.partiql.parse import check_together, parse
from router.partiql.planning import item_key
from router.partiql.statements import Exists, Select, Statement, is_read, source_of
from router.plan import Call, Plan, StalePlanError, Work

_NO_KEY = "Select statements within BatchExecuteStatement must specify the primary key in the where clause."

# What the errors of single calls are called in a batch.
_CODES = {
    "ConditionalCheckFailedException": "ConditionalCheckFailed",
    "DuplicateItemException": "DuplicateItem",
    "ItemCollectionSizeLimitExceededException": "ItemCollectionSizeLimitExceeded",
    "ProvisionedThroughputExceededException": "ProvisionedThroughputExceeded",
    "RequestLimitExceeded": "RequestLimitExceeded",
    "ResourceNotFoundException": "ResourceNotFound",
    "ThrottlingException": "ThrottlingError",
    "TransactionConflictException": "TransactionConflict",
    "AccessDeniedException": "AccessDenied",
    "ValidationException": "ValidationError",
}


@dataclass(slots=True)
class _Member:
    """One statement on its way: what it says, the call that it comes to, and what became of that, or what was wrong."""

    body: dict[str, Any]
    statement: Statement | None = None
    values: list[AttributeValue] = field(default_factory=list)
    table: Table | None = None
    write: Write | None = None
    call: Call | None = None
    reply: storage_pb2.Reply | None = None
    error: ApiError | None = None

    @property
    def consistent(self) -> bool:
        return bool(self.body.get("ConsistentRead", False))


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """What a BatchExecuteStatement request asks for. Raises ApiError."""
    check_together(member["Statement"] for member in body["Statements"])
    members = [_parsed(member) for member in body["Statements"]]
    kinds = {is_read(member.statement) for member in members if member.statement is not None}
    if len(kinds) > 1:
        raise validation("Read and write requests together in the same batch is not supported.")

    async def run() -> bytes:
        await _find_tables(members, context)
        for index, member in enumerate(members):
            _prepare(member, context, index)
        _check_distinct(members)
        await _carry_out(members, context)
        return _answer(members, body)

    return Work(run)


def _parsed(body: dict[str, Any]) -> _Member:
    member = _Member(body)
    try:
        parsed = parse(body["Statement"])
        if isinstance(parsed.statement, Exists):
            raise validation(EXISTS_ALONE)
        member.statement = parsed.statement
        member.values = parsed.fill(body.get("Parameters"))
    except ApiError as error:
        if error.type == "SerializationException":
            raise  # the request itself cannot be read
        member.error = error
    return member


async def _find_tables(members: list[_Member], context: RequestContext) -> None:
    """Look every table up, asking for a newer catalog at most once."""
    refreshed = False
    for member in members:
        if member.statement is None or member.error is not None:
            continue
        name = source_of(member.statement).table
        member.table = context.catalog.find(name)
        if member.table is None and not refreshed:
            refreshed = True
            await context.catalog.refresh()
            member.table = context.catalog.find(name)
        if member.table is None:
            member.error = resource_not_found()


def _prepare(member: _Member, context: RequestContext, index: int) -> None:
    if member.table is None or member.statement is None:
        return
    try:
        if isinstance(member.statement, Select):
            member.call = _get(member, member.statement, member.table, context)
        else:
            member.write = write_of(member.statement, member.values, member.table, member.body)
            member.call = member.write.call(context, index)
    except ApiError as error:
        member.error = error


def _get(member: _Member, select: Select, table: Table, context: RequestContext) -> Call:
    found = None if select.source.index else item_key(select.where, member.values, table.keys)
    if found is None or found[1] is not None:
        raise validation(_NO_KEY)
    key, _ = found
    validate_key(table, key)
    row = row_key(table.keys, table.attribute_types, key)
    get = storage_pb2.Get(key=row, consistent=member.consistent, projection=projection_of(select))
    return Call(table, row[:HASH_SIZE], get, 0, not member.consistent, context.request_id)


def _check_distinct(members: list[_Member]) -> None:
    items = [(call.table.id, call.operation.key) for call in _calls(members)]  # type: ignore[union-attr]
    if len(set(items)) < len(items):
        raise validation("Provided list of item keys contains duplicates")


def _calls(members: list[_Member]) -> list[Call]:
    return [member.call for member in members if member.call is not None]


async def _carry_out(members: list[_Member], context: RequestContext) -> None:
    """Raises StalePlanError if a table has changed: planned again, each write still happens once."""
    called = [member for member in members if member.call is not None]
    results = await context.executor.call_all(_calls(called))
    for member, result in zip(called, results, strict=True):
        if isinstance(result, StalePlanError):
            raise result
        if isinstance(result, ApiError):
            member.error = result
            continue
        member.reply = result
        if result.HasField("failure"):
            error = failure(result)
            member.error = error if member.write is None else member.write.error(error)


# --- the answer ---


def _answer(members: list[_Member], body: dict[str, Any]) -> bytes:
    responses = b",".join(map(_response, members))
    capacity = _consumed(members, body.get("ReturnConsumedCapacity", "NONE"))
    shown = b',"ConsumedCapacity":' + orjson.dumps(capacity) if capacity else b""
    return b'{"Responses":[%b]%b}' % (responses, shown)


def _response(member: _Member) -> bytes:
    """DynamoDB names the table unless the statement was refused before it ran."""
    name = b"" if member.table is None else b'"TableName":' + orjson.dumps(member.table.name)
    if member.error is not None:
        error = _error(member.error)
        refused = not name or member.error.type == "ValidationException"
        return b'{"Error":%b}' % error if refused else b'{"Error":%b,%b}' % (error, name)
    item = _item(member)
    return b'{%b,"Item":%b}' % (name, item) if item else b"{%b}" % name


def _item(member: _Member) -> bytes:
    assert member.reply is not None
    if isinstance(member.statement, Select):
        return row_of(member.statement, member.reply.item.item)
    return member.reply.write.attributes


def _error(error: ApiError) -> bytes:
    code = _CODES.get(error.type, "InternalServerError")
    item = b"" if error.item is None else b',"Item":' + dump(error.item)
    return b'{"Code":%b,"Message":%b%b}' % (orjson.dumps(code), orjson.dumps(error.message), item)


class _Units:
    """What one table's members have used up."""

    def __init__(self) -> None:
        self.table = 0.0
        self.failed = 0.0
        self.local_indexes: dict[str, float] = {}
        self.global_indexes: dict[str, float] = {}

    def add(self, member: _Member, table: Table) -> None:
        assert member.reply is not None
        if isinstance(member.statement, Select):
            self.table += read_units(member.reply.item.size, member.consistent)
            return
        write = member.reply.write
        self.table += write_units(write.old_size, write.new_size)
        for totals, indexes, units in (
            (self.local_indexes, table.local_indexes, write.local_index_units),
            (self.global_indexes, table.global_indexes, write.global_index_units),
        ):
            for name, used in units_by_index(indexes, units).items():
                totals[name] = totals.get(name, 0.0) + used


def _consumed(members: list[_Member], detail: str) -> list[dict[str, Any]]:
    """By table. A write that failed costs what it would have, which only the table's total tells."""
    if detail == "NONE" or all(member.error is not None for member in members):
        return []
    by_table: dict[int, tuple[Table, _Units]] = {}
    for member in members:
        if member.table is None or member.reply is None:
            continue
        table, units = by_table.setdefault(member.table.id, (member.table, _Units()))
        if member.error is None:
            units.add(member, table)
        elif member.write is not None:
            units.failed += _attempted(member, member.reply.failure.size)
    return [_shown(table, units, detail) for table, units in by_table.values()]


def _attempted(member: _Member, old_size: int) -> float:
    """The units of a write that failed: those of the item that stands there, or of the one that an INSERT brought."""
    assert member.write is not None
    new_size = member.write.operation.size if isinstance(member.write.operation, storage_pb2.Put) else 0
    return write_units(old_size, new_size)


def _shown(table: Table, units: _Units, detail: str) -> dict[str, Any]:
    capacity = consumed(
        table, units.table, detail, local_indexes=units.local_indexes, global_indexes=units.global_indexes
    )
    capacity["CapacityUnits"] += units.failed
    return capacity
