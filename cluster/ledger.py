"""The ledger: what is being made, or was made, of each transaction over several partitions.

It is an internal table, one row per transaction, keyed by a hash of account and client token. A row knows the newest
*attempt*: a cancelled transaction may be tried again under its token. An attempt moves by conditional writes alone:

    nothing -> pending -> committed -> done (every participant has applied)
    nothing -> refused;  pending -> cancelled

Whoever finds a mark of an attempt that the row does not name writes the attempt down as refused: then it can never
begin, so that nobody commits it. Whoever finds it pending for long cancels it. So participants are told only what is
durable here, and an attempt whose end nobody saw has one all the same.

Rows stay for 10 minutes after their last change.
"""

from __future__ import annotations

import struct
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import orjson

from cluster.requests.call import Call, NodeOperation
from cluster.wire import storage_pb2
from dynamo.errors import ApiError
from dynamo.expressions.compile import compile_expressions
from dynamo.keys import HASH_SIZE, row_key
from dynamo.table import KeySchema, Table
from dynamo.values import Item, dump, load

PURPOSE: Final = "ledger"
"""The ledger's `Table.internal`."""
ROW_MS: Final = 600_000
"""How long a row stays at least after its last change: ClientRequestToken's 10 minutes."""

_KEYS = KeySchema(hash=("id",))
_TYPES: Any = {"id": "B"}
_NAMES = {"#state": "state", "#at": "at", "#items": "items"}
_PLACE = struct.Struct("<QH")


class State(StrEnum):
    """How far an attempt has come."""

    PENDING = "pending"
    COMMITTED = "committed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a participating item is: its table's id and its row key."""

    table: int
    key: bytes


@dataclass(frozen=True, slots=True)
class Row:
    """A transaction as the ledger knows it.

    `state` is None if no attempt has begun; then only `refused` is known. `payload` is the hash of what the client
    asked for, `sizes` by action the larger of the item's sizes before and after, in DynamoDB's bytes. `version` rises
    with every change.
    """

    transaction: bytes
    attempt: bytes = b""
    payload: bytes = b""
    state: State | None = None
    done: bool = False
    items: tuple[Place, ...] = ()
    sizes: tuple[int, ...] = ()
    refused: frozenset[bytes] = frozenset()
    version: int = 0


def ledger_table(created: float) -> Table:
    """The ledger, for auto-admin to make."""
    return Table(
        id=0,
        name="",
        schema_version=1,
        attribute_types=_TYPES,
        keys=_KEYS,
        created=created,
        billing="PAY_PER_REQUEST",
        internal=PURPOSE,
    )


def ledger_call(table: Table, operation: NodeOperation, operation_id: int = 0) -> Call:
    """The call that carries one of the operations below to its partition."""
    assert isinstance(operation, storage_pb2.Get | storage_pb2.Update | storage_pb2.Delete)
    return Call(table, operation.key[:HASH_SIZE], operation, operation_id)


# --- operations ---


def begin(
    transaction: bytes, attempt: bytes, payload: bytes, items: Sequence[Place], now_ms: int
) -> storage_pb2.Update:
    """nothing -> pending. Fails if the attempt is not new or was refused, and if another one is pending, or was
    committed within 10 minutes."""
    return _update(
        transaction,
        "SET attempt = :attempt, payload = :payload, #state = :pending, #at = :now, #items = :items "
        "REMOVE done, sizes ADD version :one",
        "(attribute_not_exists(#state) OR #state = :cancelled OR (attribute_exists(done) AND #at < :old)) "
        "AND attempt <> :attempt AND NOT contains(refused, :attempt)",
        {
            ":attempt": _binary(attempt),
            ":payload": _binary(payload),
            ":items": _binary(b"".join(_PLACE.pack(item.table, len(item.key)) + item.key for item in items)),
            ":pending": {"S": State.PENDING.value},
            ":cancelled": {"S": State.CANCELLED.value},
            ":now": {"N": str(now_ms)},
            ":old": {"N": str(now_ms - ROW_MS)},
            ":one": {"N": "1"},
        },
    )


def commit(transaction: bytes, attempt: bytes, sizes: Sequence[int], now_ms: int) -> storage_pb2.Update:
    """pending -> committed."""
    return _update(
        transaction,
        "SET #state = :committed, sizes = :sizes, #at = :now ADD version :one",
        "attempt = :attempt AND #state = :pending",
        {
            ":attempt": _binary(attempt),
            ":committed": {"S": State.COMMITTED.value},
            ":pending": {"S": State.PENDING.value},
            ":sizes": _binary(struct.pack(f"<{len(sizes)}I", *sizes)),
            ":now": {"N": str(now_ms)},
            ":one": {"N": "1"},
        },
    )


def cancel(transaction: bytes, attempt: bytes, now_ms: int) -> storage_pb2.Update:
    """pending -> cancelled; the attempt cannot begin again either."""
    return _update(
        transaction,
        "SET #state = :cancelled, #at = :now ADD version :one, refused :attempts",
        "attempt = :attempt AND #state = :pending",
        {
            ":attempt": _binary(attempt),
            ":attempts": {"BS": [_text(attempt)]},
            ":cancelled": {"S": State.CANCELLED.value},
            ":pending": {"S": State.PENDING.value},
            ":now": {"N": str(now_ms)},
            ":one": {"N": "1"},
        },
    )


def refuse(transaction: bytes, attempt: bytes, now_ms: int) -> storage_pb2.Update:
    """nothing -> refused. Fails if the attempt is the one that the row names."""
    return _update(
        transaction,
        "SET #at = :now ADD version :one, refused :attempts",
        "attempt <> :attempt",
        {
            ":attempt": _binary(attempt),
            ":attempts": {"BS": [_text(attempt)]},
            ":now": {"N": str(now_ms)},
            ":one": {"N": "1"},
        },
    )


def done(transaction: bytes, attempt: bytes, now_ms: int) -> storage_pb2.Update:
    """committed -> done: every participant has applied, so that the row may go in time."""
    return _update(
        transaction,
        "SET done = :true, #at = :now ADD version :one",
        "attempt = :attempt AND #state = :committed",
        {
            ":attempt": _binary(attempt),
            ":committed": {"S": State.COMMITTED.value},
            ":true": {"BOOL": True},
            ":now": {"N": str(now_ms)},
            ":one": {"N": "1"},
        },
    )


def look(transaction: bytes) -> storage_pb2.Get:
    """Read the row."""
    return storage_pb2.Get(key=_row_key(transaction), consistent=True)


def forget(row: Row) -> storage_pb2.Delete:
    """Take the row away, if it is still as it was read."""
    compiled = compile_expressions(condition="version = :version", values={":version": {"N": str(row.version)}})
    condition = storage_pb2.Condition(tree=compiled.encoded_condition, values=orjson.dumps(compiled.values))
    return storage_pb2.Delete(key=_row_key(row.transaction), condition=condition)


# --- replies ---


def row_of(body: bytes) -> Row | None:
    """The row in the canonical JSON of an item; None if that is empty."""
    if not body:
        return None
    item = load(body)
    return Row(
        transaction=_bytes(item, "id"),
        attempt=_bytes(item, "attempt"),
        payload=_bytes(item, "payload"),
        state=State(item["state"]["S"]) if "state" in item else None,
        done="done" in item,
        items=_places(_bytes(item, "items")),
        sizes=_sizes(_bytes(item, "sizes")),
        refused=frozenset(b64decode(each) for each in item.get("refused", {"BS": []})["BS"]),
        version=int(item["version"]["N"]),
    )


def row_in_the_way(reply: storage_pb2.Reply) -> Row | None:
    """The row whose state made a write fail its condition; None if the write went ahead.

    Raises ApiError for any other failure: the write may have gone ahead, and nobody knows.
    """
    if not reply.HasField("failure"):
        return None
    if reply.failure.type != _CONDITION_FAILED:
        raise ApiError(reply.failure.type, reply.failure.message, status=500)
    return row_of(reply.failure.item) or _NO_ROW


_NO_ROW = Row(b"")
_CONDITION_FAILED = "ConditionalCheckFailedException"


def _update(transaction: bytes, update: str, condition: str, values: Item) -> storage_pb2.Update:
    names = {name: attribute for name, attribute in _NAMES.items() if name in update or name in condition}
    compiled = compile_expressions(update=update, condition=condition, names=names, values=values)
    return storage_pb2.Update(
        key=_row_key(transaction),
        key_attributes=dump({"id": _binary(transaction)}),
        tree=compiled.encoded_update,
        condition=compiled.encoded_condition,
        values=orjson.dumps(compiled.values),
        condition_return_old=True,
    )


def _row_key(transaction: bytes) -> bytes:
    return row_key(_KEYS, _TYPES, {"id": _binary(transaction)})


def _text(data: bytes) -> str:
    return b64encode(data).decode()


def _binary(data: bytes) -> dict[str, Any]:
    return {"B": _text(data)}


def _bytes(item: Item, name: str) -> bytes:
    return b64decode(item[name]["B"]) if name in item else b""


def _places(data: bytes) -> tuple[Place, ...]:
    places, at = [], 0
    while at < len(data):
        table, length = _PLACE.unpack_from(data, at)
        at += _PLACE.size + length
        places.append(Place(table, data[at - length : at]))
    return tuple(places)


def _sizes(data: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(data) // 4}I", data)
