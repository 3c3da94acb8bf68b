"""Bringing an attempt at a transaction to its end, whoever began it: for those who find what it has left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from cluster import ledger
from cluster.ledger import Place, ledger_call, row_in_the_way, row_of
from cluster.requests.call import Call, StalePlanError
from cluster.topology import Topology
from cluster.wire import storage_pb2
from dynamo.errors import ApiError, internal
from dynamo.keys import HASH_SIZE

TRIES_MAX = 10
"""How often an attempt may change under the hands of whoever settles it. Each change is one step towards its end."""


class Caller(Protocol):
    """The half of the executor of requests that waits for replies."""

    async def call(self, call: Call) -> storage_pb2.Reply:
        """The reply, never a refusal. Raises ApiError."""
        ...

    async def call_all(self, calls: Sequence[Call]) -> list[storage_pb2.Reply | ApiError]:
        """The result of each call, in order."""
        ...


async def settle(caller: Caller, topology: Topology, transaction: bytes, attempt: bytes, now_ms: int) -> bool:
    """Whether the attempt was committed. If nothing was decided on it, it is refused for good.

    Raises ApiError when the ledger cannot be asked.
    """
    table = topology.internal_table(ledger.PURPOSE)
    if table is None:
        raise internal("The ledger of transactions is not known here yet")
    for _ in range(TRIES_MAX):
        row = row_of((await caller.call(ledger_call(table, ledger.look(transaction)))).item.item)
        if row is not None and attempt in row.refused:
            return False
        if row is not None and row.attempt == attempt:
            return True
        if row_in_the_way(await caller.call(ledger_call(table, ledger.refuse(transaction, attempt, now_ms)))) is None:
            return False
    raise internal("The transaction goes on changing")


async def finish(caller: Caller, topology: Topology, attempt: bytes, items: Iterable[Place], *, commit: bool) -> None:
    """Tell the participants what became of the attempt; returns once all have applied it.

    Raises ApiError if one of them has not answered: it may or may not have been told.
    """
    results = await caller.call_all(finish_calls(topology, attempt, items, commit=commit))
    for result in results:
        if isinstance(result, ApiError) and not isinstance(result, StalePlanError):
            raise result


def finish_calls(topology: Topology, attempt: bytes, items: Iterable[Place], *, commit: bool) -> list[Call]:
    """One call for each partition that holds some of the items. Tables that are gone need none."""
    keys: dict[tuple[int, int], list[bytes]] = {}
    for item in items:
        try:
            partition = topology.partition_for(item.table, item.key[:HASH_SIZE])
        except LookupError:
            continue
        keys.setdefault((item.table, partition.id), []).append(item.key)
    calls = []
    for (table_id, _), of_partition in keys.items():
        if (table := topology.table(table_id)) is not None:
            operation = storage_pb2.Finish(attempt=attempt, commit=commit, keys=of_partition)
            calls.append(Call(table, of_partition[0][:HASH_SIZE], operation))
    return calls
