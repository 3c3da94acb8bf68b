"""TransactWriteItems: up to 100 actions on items of any tables, all done or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import orjson

from cluster.wire import storage_pb2
from dynamo.errors import ApiError, validation
from dynamo.expressions.compile import Compiled
from dynamo.expressions.key_rules import check_key_paths, check_update_keys
from dynamo.expressions.request import compile_request
from dynamo.indexes import check_put_size
from dynamo.item import ITEM_SIZE_MAX, item_size, item_too_large
from dynamo.keys import key_of, row_key, validate_index_keys, validate_item_key, validate_key
from dynamo.table import Table
from dynamo.values import Item, canonical_item, dump
from router.consumed import body_of
from router.context import RequestContext
from router.coordinator import Coordinator, Identity
from router.operations.conditions import wire_condition, wire_update
from router.operations.tables import with_tables
from router.operations.transaction_checks import Invalid, check_items_once, raise_invalid
from router.plan import Plan, Work
from router.transaction_answers import collections, write_capacity
from router.transactions import Member

PAYLOAD_SIZE_MAX = 4 << 20
"""DynamoDB's bytes of what a request carries: items of puts, and keys and values of the rest."""

_SINGLE = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "DeleteItem"}


@dataclass(slots=True)
class _Action:
    """One action as it was sent: its kind, parameters, expressions, and item or key."""

    kind: str
    parameters: dict[str, Any]
    compiled: Compiled
    item: Item
    size: int


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """What a TransactWriteItems request asks for. Raises ApiError."""
    actions = [_action(member) for member in body["TransactItems"]]
    if sum(action.size for action in actions) > PAYLOAD_SIZE_MAX:
        raise validation(
            "Collection size of items exceeded, which can also be caused by the aggregate size of the items in the "
            "transaction exceeding the 4MB limit"
        )

    def for_tables(tables: dict[str, Table]) -> Plan:
        members = _members(actions, tables)
        identity = identity_of(context, body.get("ClientRequestToken"), body["TransactItems"])

        async def run() -> bytes:
            outcome = await Coordinator(context, members, identity).run()
            return body_of(
                write_capacity(members, outcome, body.get("ReturnConsumedCapacity")),
                collections(members, outcome, body.get("ReturnItemCollectionMetrics")),
            )

        return Work(run)

    return with_tables(context, list(dict.fromkeys(action.parameters["TableName"] for action in actions)), for_tables)


def identity_of(context: RequestContext, token: str | None, payload: object) -> Identity:
    """By which a transaction is done once: account and token, or the request's own id; and what it asks for."""
    own = (str(context.operation_id(1)), str(context.operation_id(2)))
    source = own if token is None else (context.account, token)
    digest = blake2b(digest_size=16)
    for part in source:
        digest.update(len(part).to_bytes(4, "big") + part.encode())
    hashed = blake2b(orjson.dumps(payload, option=orjson.OPT_SORT_KEYS), digest_size=16)
    return Identity(digest.digest(), hashed.digest(), token is not None)


# --- what needs no table ---


def _action(member: dict[str, Any]) -> _Action:
    kinds = [kind for kind in _SINGLE if kind in member]
    if not kinds:
        raise validation("Invalid Request: TransactWriteRequest should contain Delete or Put or Update request")
    if len(kinds) > 1:
        raise validation("TransactItems can only contain one of Check, Put, Update or Delete")
    (kind,) = kinds
    parameters = member[kind]
    compiled = compile_request(_SINGLE[kind], parameters)
    item = canonical_item(parameters["Item" if kind == "Put" else "Key"])
    size = item_size(item)
    if kind == "Put" and size > ITEM_SIZE_MAX:
        raise item_too_large()
    return _Action(kind, parameters, compiled, item, size + sum(item_size({"": value}) for value in compiled.values))


# --- what does ---


def _members(actions: Sequence[_Action], tables: dict[str, Table]) -> list[Member]:
    members: list[Member] = []
    invalid: Invalid = {}
    for index, action in enumerate(actions):
        table = tables[action.parameters["TableName"]]
        try:
            members.append(_member(index, action, table))
        except ApiError as error:
            invalid[index] = error
    check_items_once(members)
    raise_invalid(len(actions), invalid)
    return members


def _member(index: int, action: _Action, table: Table) -> Member:
    check_key_paths(action.compiled, table)
    operation = _WIRE[action.kind](action, table)
    key = key_of(table, action.item) if action.kind == "Put" else action.item
    row = row_key(table.keys, table.attribute_types, key)
    return Member(index, table, key, row, operation)


def _put(action: _Action, table: Table) -> storage_pb2.Action:
    item = action.item
    validate_item_key(table, item)
    validate_index_keys(table, item)
    size = item_size(item)
    check_put_size(table, item, size)
    row = row_key(table.keys, table.attribute_types, item)
    condition = wire_condition(action.compiled, action.parameters)
    return storage_pb2.Action(put=storage_pb2.Put(key=row, item=dump(item), size=size, condition=condition))


def _update(action: _Action, table: Table) -> storage_pb2.Action:
    validate_key(table, action.item)
    if action.compiled.update is not None:
        check_update_keys(action.compiled.update, table.keys)
    row = row_key(table.keys, table.attribute_types, action.item)
    return storage_pb2.Action(update=wire_update(row, action.item, action.compiled, action.parameters))


def _delete(action: _Action, table: Table) -> storage_pb2.Action:
    validate_key(table, action.item)
    row = row_key(table.keys, table.attribute_types, action.item)
    condition = wire_condition(action.compiled, action.parameters)
    return storage_pb2.Action(delete=storage_pb2.Delete(key=row, condition=condition))


def _check(action: _Action, table: Table) -> storage_pb2.Action:
    validate_key(table, action.item)
    row = row_key(table.keys, table.attribute_types, action.item)
    condition = wire_condition(action.compiled, action.parameters)
    return storage_pb2.Action(check=storage_pb2.Check(key=row, condition=condition))


_WIRE: dict[str, Callable[[_Action, Table], storage_pb2.Action]] = {
    "Put": _put,
    "Update": _update,
    "Delete": _delete,
    "ConditionCheck": _check,
}
