"""Requests of transactions as the router sends them to one partition of the samples' table."""

from __future__ import annotations

from hashlib import blake2b

from cluster.wire import storage_pb2
from dynamo.expressions.compile import compile_expressions
from dynamo.item import item_size
from dynamo.values import AttributeValue, Item, dump
from tests.unit.partition_samples import NOW_MS, Leader, item, key, values_json

MISSING = "attribute_not_exists(pk)"
PRESENT = "attribute_exists(pk)"


def identity(text: str) -> bytes:
    """16 bytes for a name: of a transaction, an attempt or a payload."""
    return blake2b(text.encode(), digest_size=16).digest()


def condition(
    text: str | None, values: dict[str, AttributeValue] | None = None, *, return_old: bool = False
) -> storage_pb2.Condition | None:
    """A condition, None for none."""
    if text is None:
        return None
    compiled = compile_expressions(condition=text, values=values)
    return storage_pb2.Condition(
        tree=compiled.encoded_condition, values=values_json(compiled.values), return_old=return_old
    )


def put(new: Item, only_if: str | None = None, *, return_old: bool = False) -> storage_pb2.Action:
    """A Put."""
    row = key(new["pk"]["S"], int(new["sk"]["N"]))
    return storage_pb2.Action(
        put=storage_pb2.Put(
            key=row, item=dump(new), size=item_size(new), condition=condition(only_if, return_old=return_old)
        )
    )


def add(pk: str, sk: int, amount: int) -> storage_pb2.Action:
    """An Update that adds to the attribute n."""
    compiled = compile_expressions(update="ADD n :n", values={":n": {"N": str(amount)}})
    update = storage_pb2.Update(
        key=key(pk, sk),
        key_attributes=dump(item(pk, sk)),
        tree=compiled.encoded_update,
        values=values_json(compiled.values),
    )
    return storage_pb2.Action(update=update)


def delete(pk: str, sk: int, only_if: str | None = None) -> storage_pb2.Action:
    """A Delete."""
    return storage_pb2.Action(delete=storage_pb2.Delete(key=key(pk, sk), condition=condition(only_if)))


def check(pk: str, sk: int, only_if: str) -> storage_pb2.Action:
    """A ConditionCheck."""
    return storage_pb2.Action(check=storage_pb2.Check(key=key(pk, sk), condition=condition(only_if)))


def transact(
    *actions: storage_pb2.Action, operation_id: int, token: str = "", payload: str = "payload"
) -> storage_pb2.Request:
    """A whole transaction in this partition."""
    return storage_pb2.Request(
        operation_id=operation_id,
        transact=storage_pb2.Transact(
            actions=actions, transaction=identity(token) if token else b"", payload=identity(payload)
        ),
    )


def prepare(
    *actions: storage_pb2.Action,
    operation_id: int,
    attempt: str,
    token: str = "",
    payload: str = "payload",
    started_ms: int = NOW_MS,
) -> storage_pb2.Request:
    """The part of a transaction that is in this partition."""
    return storage_pb2.Request(
        operation_id=operation_id,
        prepare=storage_pb2.Prepare(
            actions=actions,
            transaction=identity(token or attempt),
            payload=identity(payload),
            attempt=identity(attempt),
            started_ms=started_ms,
        ),
    )


def finish(attempt: str, *rows: tuple[str, int], commit: bool) -> storage_pb2.Request:
    """The end of an attempt's marks."""
    keys = [key(*row) for row in rows]
    return storage_pb2.Request(finish=storage_pb2.Finish(attempt=identity(attempt), commit=commit, keys=keys))


def read(leader: Leader, *rows: tuple[str, int]) -> list[storage_pb2.TransactRead]:
    """A transaction's reads of these items."""
    gets = [storage_pb2.Get(key=key(*row), consistent=True) for row in rows]
    return list(leader.partition.transact_get(storage_pb2.TransactGet(gets=gets)).reads)
