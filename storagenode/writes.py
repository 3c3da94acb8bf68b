"""What a write does to one item: pure functions from the old item to the new one, or to the answer that refuses it.

The leader decides once; replicas store what was decided (design §5).
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec
import orjson

from cluster.wire import storage_pb2
from dynamo import codec
from dynamo.errors import ApiError, condition_failed
from dynamo.expressions import condition as conditions
from dynamo.expressions import tree
from dynamo.expressions import update as updates
from dynamo.indexes import local_entries_size
from dynamo.item import ITEM_SIZE_MAX, item_size, size_after_update, update_too_large
from dynamo.keys import validate_index_keys
from dynamo.table import Table
from dynamo.values import AttributeValue, Item, dump, load


class Old(msgspec.Struct, frozen=True):
    """The item as it is: its stored bytes, None when there is none."""

    stored: bytes | None

    @property
    def size(self) -> int:
        """The item's size in DynamoDB's bytes, 0 when there is none."""
        return 0 if self.stored is None else codec.size_of(self.stored)

    @property
    def body(self) -> bytes:
        """Canonical JSON, empty when there is no item."""
        return b"" if self.stored is None else codec.body_of(self.stored)

    def item(self) -> Item:
        """The decoded item, {} when there is none."""
        return {} if self.stored is None else load(codec.body_of(self.stored))


class Changed(msgspec.Struct, frozen=True):
    """The write goes ahead: the new body (None: the item is gone), its size, and what ReturnValues asked for."""

    body: bytes | None
    size: int
    attributes: bytes


class Unchanged(msgspec.Struct, frozen=True):
    """Accepted without a change: nothing to delete, nothing to remove from."""

    attributes: bytes = b""


class Refused(msgspec.Struct, frozen=True):
    """The request fails with this error; the item stays as it is."""

    error: ApiError


Outcome: TypeAlias = Changed | Unchanged | Refused


def decide_put(put: storage_pb2.Put, old: Old) -> Outcome:
    """PutItem: the whole item is replaced."""
    refused = _check(put.condition, old)
    if refused is not None:
        return refused
    return Changed(put.item, put.size, old.body if put.return_old else b"")


def decide_delete(delete: storage_pb2.Delete, old: Old) -> Outcome:
    """DeleteItem: a missing item is no error."""
    refused = _check(delete.condition, old)
    if refused is not None:
        return refused
    if old.stored is None:
        return Unchanged()
    return Changed(None, 0, old.body if delete.return_old else b"")


def decide_check(check: storage_pb2.Check, old: Old) -> Outcome:
    """ConditionCheck: the item stays as it is."""
    return _check(check.condition, old) or Unchanged()


def decide_update(update: storage_pb2.Update, old: Old, table: Table | None = None, *, flat: bool = False) -> Outcome:
    """UpdateItem: evaluated on the item as it was; creates the item unless all actions only take away.

    `table`: its indexes are held to what they may take; None: there are none. `flat`: the item alone is held to the
    limit of sizes, as DynamoDB does it in transactions.
    """
    before = old.item()
    values: list[AttributeValue] = orjson.loads(update.values) if update.values else []
    if update.condition and not conditions.holds(tree.decode_condition(update.condition), before, values):
        return Refused(condition_failed(before if update.condition_return_old and before else None))
    actions = tree.decode_update(update.tree) if update.tree else ()
    if old.stored is None and not updates.creates_item(actions):
        return Unchanged()
    try:
        result = updates.apply_update(actions, before, values)
    except ApiError as error:
        return Refused(error)
    key = load(update.key_attributes)
    after = {**result.item, **key} if old.stored is None else result.item
    size = item_size(after)
    if size > ITEM_SIZE_MAX if flat else _too_large(actions, size, item_size(key)):
        return Refused(update_too_large())
    if table is not None and (refused := _check_indexes(table, before, after, size)) is not None:
        return refused
    body = dump(after)
    return Changed(body, size, _returned(update.return_values, old, before, body, result))


def _check_indexes(table: Table, before: Item, after: Item, size: int) -> Refused | None:
    try:
        validate_index_keys(table, after, before)
    except ApiError as error:
        return Refused(error)
    if size + local_entries_size(table, after, size) > ITEM_SIZE_MAX:
        return Refused(update_too_large())
    return None


def _too_large(actions: tree.Update, size: int, key_size: int) -> bool:
    """DynamoDB's ceiling for updates: the item itself, or its size reckoned from the update, whichever is more."""
    if size > ITEM_SIZE_MAX:
        return True
    writes = sum(isinstance(action, tree.Set | tree.Add) for action in actions)
    return size_after_update(size, key_size, writes=writes, clears=len(actions) - writes) > ITEM_SIZE_MAX


def _returned(wanted: int, old: Old, before: Item, body: bytes, result: updates.UpdateResult) -> bytes:
    if wanted == storage_pb2.Update.NONE:
        return b""
    if wanted == storage_pb2.Update.ALL_OLD:
        return old.body
    if wanted == storage_pb2.Update.ALL_NEW:
        return body
    if wanted == storage_pb2.Update.UPDATED_OLD:
        part = updates.updated_old(before, result)
    else:
        part = updates.updated_new(result)
    return dump(part) if part else b""


def _check(condition: storage_pb2.Condition, old: Old) -> Refused | None:
    if not condition.tree:
        return None
    before = old.item()
    values: list[AttributeValue] = orjson.loads(condition.values) if condition.values else []
    if conditions.holds(tree.decode_condition(condition.tree), before, values):
        return None
    return Refused(condition_failed(before if condition.return_old and before else None))
