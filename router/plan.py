"""What an operation wants done: the only thing that `operations/` hand to the gateway."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from cluster.wire import storage_pb2
from dynamo.table import Table

NodeOperation: TypeAlias = (
    storage_pb2.Get
    | storage_pb2.Put
    | storage_pb2.Update
    | storage_pb2.Delete
    | storage_pb2.Query
    | storage_pb2.Statistics
)


@dataclass(slots=True)
class Call:
    """One request to the partition that holds `hash`.

    `any_replica`: an eventually consistent read, which any replica may answer. `operation_id` is 0 for reads.
    """

    table: Table
    hash: bytes
    operation: NodeOperation
    operation_id: int = 0
    any_replica: bool = False


@dataclass(frozen=True, slots=True)
class Immediate:
    """The answer's body, known without asking anyone."""

    body: bytes


@dataclass(frozen=True, slots=True)
class Single:
    """One call, and how its reply becomes the answer's body. The hot path: no task is made for it.

    `reply` gets a Reply whose result is never a refusal (the executor deals with those) and may raise ApiError.
    """

    call: Call
    reply: Callable[[storage_pb2.Reply], bytes]


@dataclass(frozen=True, slots=True)
class Work:
    """Several calls, or calls to auto-admin: a coroutine that returns the answer's body or raises ApiError."""

    run: Callable[[], Awaitable[bytes]]


Plan: TypeAlias = Immediate | Single | Work
