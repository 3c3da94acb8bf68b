"""ExecuteTransaction: up to 100 PartiQL statements, reads of one moment or writes that are all done or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cluster.wire import storage_pb2
from dynamo.errors import ApiError, transaction_canceled, validation
from dynamo.keys import row_key, validate_key
from dynamo.table import Table
from dynamo.values import AttributeValue
from router.consumed import body_of
from router.context import RequestContext
from router.coordinator import Coordinator
from router.operations.statement_reads import projection_of, row_of
from router.operations.statement_writes import DUPLICATE, NO_CONDITION, NO_KEY, Write, write_of
from router.operations.tables import with_tables
from router.operations.transact_write_items import identity_of
from router.operations.transaction_checks import Invalid, check_items_once, raise_invalid
from router.partiql.parse import Parsed, check_together, parse
from router.partiql.planning import item_key
from router.partiql.statements import Delete, Select, Statement, Update, is_read, source_of
from router.plan import Plan, Work
from router.transaction_answers import read_capacity, write_capacity
from router.transaction_reads import read_together
from router.transactions import Member, Read

_NO_READ_KEY = "Select statements within ExecuteTransaction must specify the primary key in the where clause."


@dataclass(slots=True)
class _Statement:
    """One member as it was sent, and what it says."""

    body: dict[str, Any]
    statement: Statement
    values: list[AttributeValue]

    @property
    def table(self) -> str:
        return source_of(self.statement).table


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """What an ExecuteTransaction request asks for. Raises ApiError."""
    bodies = body["TransactStatements"]
    check_together(member["Statement"] for member in bodies)
    parsed = [_parsed(index, member["Statement"]) for index, member in enumerate(bodies)]
    if len({is_read(each.statement) for each in parsed}) > 1:
        raise validation("ExecuteTransaction API does not support both read and write operations in the same request.")
    statements = [
        _Statement(member, each.statement, each.fill(member.get("Parameters")))
        for member, each in zip(bodies, parsed, strict=True)
    ]
    reads = is_read(statements[0].statement)

    def for_tables(tables: dict[str, Table]) -> Plan:
        return (_plan_reads if reads else _plan_writes)(statements, tables, body, context)

    return with_tables(context, list(dict.fromkeys(each.table for each in statements)), for_tables)


def _parsed(index: int, text: str) -> Parsed:
    try:
        parsed = parse(text)
    except ApiError as error:
        raise _of_statement(index, error.message) from None
    match parsed.statement:
        case Update(returning=str()) | Delete(returning=str()):
            raise _of_statement(index, "RETURNING clause is not supported in ExecuteTransaction.")
        case Select(source=source) if source.index:
            raise _of_statement(index, "Reads on indices are not supported within transactions.")
    return parsed


def _of_statement(index: int, message: str) -> ApiError:
    return validation(f"Validation failed in TransactStatements[{index}]: {message}")


# --- reads ---


def _plan_reads(
    statements: Sequence[_Statement], tables: dict[str, Table], body: dict[str, Any], context: RequestContext
) -> Plan:
    selects = [each.statement for each in statements if isinstance(each.statement, Select)]
    reads: list[Read] = []
    invalid: Invalid = {}
    for index, each in enumerate(statements):
        try:
            reads.append(_read(index, selects[index], each.values, tables[each.table]))
        except ApiError as error:
            _sort_out(index, error, invalid, whole=(_NO_READ_KEY,))
    check_items_once(reads)
    raise_invalid(len(statements), invalid)

    async def run() -> bytes:
        items = await read_together(context, reads)
        rows = [row_of(select, item.item) for select, item in zip(selects, items, strict=True)]
        shown = b",".join([b'{"Item":%b}' % row if row else b"{}" for row in rows])
        capacity = read_capacity(reads, [item.size for item in items], body.get("ReturnConsumedCapacity"))
        return body_of(b',"Responses":[%b]' % shown, capacity)

    return Work(run)


def _read(index: int, select: Select, values: list[AttributeValue], table: Table) -> Read:
    found = item_key(select.where, values, table.keys)
    if found is None or found[1] is not None:
        raise validation(_NO_READ_KEY)
    key, _ = found
    validate_key(table, key)
    return Read(index, table, row_key(table.keys, table.attribute_types, key), projection_of(select))


# --- writes ---


def _plan_writes(
    statements: Sequence[_Statement], tables: dict[str, Table], body: dict[str, Any], context: RequestContext
) -> Plan:
    writes: dict[int, Write] = {}
    invalid: Invalid = {}
    for index, each in enumerate(statements):
        try:
            writes[index] = _write(each, tables[each.table])
        except ApiError as error:
            _sort_out(index, error, invalid, whole=(NO_KEY, NO_CONDITION))
    members = [Member(index, each.table, each.key, each.row, _action(each)) for index, each in writes.items()]
    check_items_once(members)
    raise_invalid(len(statements), invalid)
    token = body.get("ClientRequestToken")
    # Tokens of this operation are not those of TransactWriteItems.
    identity = identity_of(context, token and f"ExecuteTransaction {token}", body["TransactStatements"])

    async def run() -> bytes:
        try:
            outcome = await Coordinator(context, members, identity).run()
        except ApiError as error:
            raise _with_duplicates(error, writes) from None
        return body_of(b',"Responses":[]', write_capacity(members, outcome, body.get("ReturnConsumedCapacity")))

    return Work(run)


def _write(each: _Statement, table: Table) -> Write:
    assert not isinstance(each.statement, Select)
    return write_of(each.statement, each.values, table, each.body)


def _action(write: Write) -> storage_pb2.Action:
    match write.operation:
        case storage_pb2.Put():
            return storage_pb2.Action(put=write.operation)
        case storage_pb2.Update():
            return storage_pb2.Action(update=write.operation)
        case storage_pb2.Delete():
            return storage_pb2.Action(delete=write.operation)
        case storage_pb2.Check():
            return storage_pb2.Action(check=write.operation)


def _with_duplicates(error: ApiError, writes: dict[int, Write]) -> ApiError:
    """The error, which tells of an INSERT's condition as PartiQL does."""
    if not error.reasons:
        return error
    reasons = [dict(reason) for reason in error.reasons]
    for index, reason in enumerate(reasons):
        if writes[index].inserts and reason["Code"] == "ConditionalCheckFailed":
            reasons[index] = {"Code": "DuplicateItem", "Message": DUPLICATE}
    return transaction_canceled(reasons)


def _sort_out(index: int, error: ApiError, invalid: Invalid, whole: Sequence[str]) -> None:
    """What is wrong with a statement refuses the request; what its table says of its values cancels the transaction."""
    if error.message in whole:
        raise _of_statement(index, error.message)
    invalid[index] = error
