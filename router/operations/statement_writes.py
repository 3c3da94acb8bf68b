"""INSERT, UPDATE, DELETE and EXISTS: the same writes and checks of one item as the plain operations', planned from a
statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from cluster.wire import storage_pb2
from dynamo.capacity import write_units
from dynamo.errors import ApiError, validation
from dynamo.expressions import tree
from dynamo.expressions.key_rules import check_update_keys
from dynamo.indexes import check_put_size
from dynamo.item import ITEM_SIZE_MAX, item_size, item_too_large
from dynamo.keys import HASH_SIZE, key_of, row_key, validate_index_keys, validate_item_key, validate_key
from dynamo.table import Table
from dynamo.values import AttributeValue, Item, dump
from router.consumed import body_of, consumed_member, units_by_index
from router.context import RequestContext
from router.operations.replies import failure
from router.partiql.planning import item_key
from router.partiql.statements import Delete, Exists, Insert, Update
from router.plan import Call, Plan, Single

NO_KEY = "Where clause does not contain a mandatory equality on all key attributes"
NO_CONDITION = "EXISTS() must contain a single item read with additional condition"
DUPLICATE = "Duplicate primary key exists in table"
EXISTS_ALONE = "EXISTS can only be used in ExecuteTransaction write requests."


@dataclass(frozen=True, slots=True)
class Write:
    """What a statement does to one item. A `Check` is EXISTS's: it only fits into a transaction."""

    table: Table
    key: Item
    row: bytes
    operation: storage_pb2.Put | storage_pb2.Update | storage_pb2.Delete | storage_pb2.Check
    inserts: bool = False

    def call(self, context: RequestContext, index: int = 0) -> Call:
        """The write on its own; `index` is its number in a batch."""
        assert not isinstance(self.operation, storage_pb2.Check)
        operation_id = context.operation_id(index)
        return Call(self.table, self.row[:HASH_SIZE], self.operation, operation_id, request_id=context.request_id)

    def error(self, error: ApiError) -> ApiError:
        """The error as PartiQL has it: an INSERT's condition is that there is no such item yet."""
        if self.inserts and error.type == "ConditionalCheckFailedException":
            return ApiError("DuplicateItemException", DUPLICATE)
        return error


def plan_write(
    statement: Insert | Update | Delete,
    values: list[AttributeValue],
    body: dict[str, Any],
    table: Table,
    context: RequestContext,
) -> Plan:
    """What an ExecuteStatement request with a write asks for. Raises ApiError."""
    write = write_of(statement, values, table, body)

    def answer(reply: storage_pb2.Reply) -> bytes:
        if reply.HasField("failure"):
            raise write.error(failure(reply))
        attributes = reply.write.attributes
        return body_of(b',"Items":[%b]' % attributes, _consumed(table, reply.write, body))

    return Single(write.call(context), answer)


def _consumed(table: Table, write: storage_pb2.WriteReply, body: dict[str, Any]) -> bytes:
    return consumed_member(
        table,
        write_units(write.old_size, write.new_size),
        body.get("ReturnConsumedCapacity"),
        local_indexes=units_by_index(table.local_indexes, write.local_index_units),
        global_indexes=units_by_index(table.global_indexes, write.global_index_units),
    )


def write_of(
    statement: Insert | Update | Delete | Exists, values: list[AttributeValue], table: Table, body: dict[str, Any]
) -> Write:
    """The write that a statement comes to on its table. `body` is the request's, or the member's of a batch, for
    ReturnValuesOnConditionCheckFailure. Raises ValidationException."""
    return_old = body.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
    match statement:
        case Insert():
            return _insert(values[statement.item], table)
        case Update():
            return _update(statement, values, table, return_old)
        case Delete():
            return _delete(statement, values, table, return_old)
        case Exists():
            return _check(statement, values, table, return_old)


def _insert(value: AttributeValue, table: Table) -> Write:
    item: Item | None = value.get("M")
    if item is None:
        raise validation("The value of an INSERT has to be a tuple")
    size = item_size(item)
    if size > ITEM_SIZE_MAX:
        raise item_too_large()
    validate_item_key(table, item)
    validate_index_keys(table, item)
    check_put_size(table, item, size)
    row = row_key(table.keys, table.attribute_types, item)
    condition = _wire(_missing(table), [], return_old=False)
    put = storage_pb2.Put(key=row, item=dump(item), size=size, condition=condition)
    return Write(table, key_of(table, item), row, put, inserts=True)


def _update(statement: Update, values: list[AttributeValue], table: Table, return_old: bool) -> Write:
    key, rest = _key(statement.where, values, table, NO_KEY)
    check_update_keys(statement.update, table.keys)
    exists: tree.Condition = tree.AttributeExists(tree.Path((table.keys.hash[0],)))
    row = row_key(table.keys, table.attribute_types, key)
    update = storage_pb2.Update(
        key=row,
        key_attributes=dump(key),
        tree=tree.encode(statement.update),
        condition=tree.encode(exists if rest is None else tree.And(exists, rest)),
        values=orjson.dumps(values),
        condition_return_old=return_old,
        return_values=statement.returning or "NONE",
    )
    return Write(table, key, row, update)


def _delete(statement: Delete, values: list[AttributeValue], table: Table, return_old: bool) -> Write:
    """A condition counts only where there is an item."""
    key, rest = _key(statement.where, values, table, NO_KEY)
    condition = None if rest is None else _wire(tree.Or(_missing(table), rest), values, return_old)
    row = row_key(table.keys, table.attribute_types, key)
    return_all_old = statement.returning is not None
    return Write(table, key, row, storage_pb2.Delete(key=row, condition=condition, return_old=return_all_old))


def _check(statement: Exists, values: list[AttributeValue], table: Table, return_old: bool) -> Write:
    key, rest = _key(statement.select.where, values, table, NO_CONDITION)
    if rest is None:
        raise validation(NO_CONDITION)
    row = row_key(table.keys, table.attribute_types, key)
    return Write(table, key, row, storage_pb2.Check(key=row, condition=_wire(rest, values, return_old)))


def _key(
    where: tree.Condition | None, values: list[AttributeValue], table: Table, wrong: str
) -> tuple[Item, tree.Condition | None]:
    found = item_key(where, values, table.keys)
    if found is None:
        raise validation(wrong)
    validate_key(table, found[0])
    return found


def _missing(table: Table) -> tree.Condition:
    return tree.AttributeNotExists(tree.Path((table.keys.hash[0],)))


def _wire(condition: tree.Condition, values: list[AttributeValue], return_old: bool) -> storage_pb2.Condition:
    return storage_pb2.Condition(tree=tree.encode(condition), values=orjson.dumps(values), return_old=return_old)
