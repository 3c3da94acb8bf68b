"""The ledger: what was decided on each transaction over several partitions.

It is an internal table, one row per transaction, keyed by a hash of account and client token. A row names the *attempt*
that was committed, if one was, and those that were refused: a transaction that failed may be tried again under its
token. There are two conditional writes, and the first of them to come decides on an attempt for good:

    commit: by its coordinator, when every participant holds its marks and nothing was committed under this key
    refuse: by whoever finds a mark of an attempt of which the row says nothing, and takes its coordinator for dead

So participants are told only what is durable here, and an attempt whose end nobody saw has one all the same. Only its
coordinator can commit an attempt: if that gives one up it tells the participants so, and the ledger hears nothing.

Rows stay for 10 minutes after their last change.
"""

from __future__ import annotations

import struct
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass
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
_NAMES = {"#at": "at", "#items": "items"}
_PLACE = struct.Struct("<QH")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a participating item is: its table's id and its row key."""

    table: int
    key: bytes


@dataclass(frozen=True, slots=True)
class Row:
    """A transaction as the ledger knows it.

    `attempt` is the one that was committed; empty: none was, and only `refused` is known. `payload` is the hash of what
    the client asked for, `sizes` by action the larger of the item's sizes before and after, in DynamoDB's bytes.
    `at_ms` is the time of the last change, by the calendar of whoever made it; `version` rises with every change.
    """

    transaction: bytes
    attempt: bytes = b""
    payload: bytes = b""
    items: tuple[Place, ...] = ()
    sizes: tuple[int, ...] = ()
    refused: frozenset[bytes] = frozenset()
    at_ms: int = 0
    version: int = 0

    def expired(self, now_ms: int) -> bool:
        """Whether its token is free again, once every participant is known to have applied it."""
        return now_ms - self.at_ms > ROW_MS


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


def commit(
    transaction: bytes, attempt: bytes, payload: bytes, items: Sequence[Place], sizes: Sequence[int], now_ms: int
) -> storage_pb2.Update:
    """Decide that the attempt happens. Fails if it was refused, or any was committed under this key."""
    return _update(
        transaction,
        "SET attempt = :attempt, payload = :payload, sizes = :sizes, #at = :now, #items = :items ADD version :one",
        "attribute_not_exists(attempt) AND NOT contains(refused, :attempt)",
        {
            ":attempt": _binary(attempt),
            ":payload": _binary(payload),
            ":items": _binary(b"".join(_PLACE.pack(item.table, len(item.key)) + item.key for item in items)),
            ":sizes": _binary(struct.pack(f"<{len(sizes)}I", *sizes)),
            ":now": {"N": str(now_ms)},
            ":one": {"N": "1"},
        },
    )


def refuse(transaction: bytes, attempt: bytes, now_ms: int) -> storage_pb2.Update:
    """Decide that the attempt does not happen. Fails if it was committed."""
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
        items=_places(_bytes(item, "items")),
        sizes=_sizes(_bytes(item, "sizes")),
        refused=frozenset(b64decode(each) for each in item.get("refused", {"BS": []})["BS"]),
        at_ms=int(item["at"]["N"]),
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
