"""What an operation wants done: the only thing that `operations/` hand to the gateway."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from cluster.wire import storage_pb2
from dynamo.errors import ApiError
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
    `request_id` is the HTTP request's, for logs.
    """

    table: Table
    hash: bytes
    operation: NodeOperation
    operation_id: int = 0
    any_replica: bool = False
    request_id: str = ""


class StalePlanError(ApiError):
    """The table changed since the plan was made, and the catalog by now holds the change: plan again, with the same
    operation ids. Whoever does not plan again may show it to the client: SDKs retry it."""

    def __init__(self) -> None:
        super().__init__("InternalServerError", "The table changed while the request was under way", status=500)


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


class Caller(Protocol):
    """The half of `Executor` that waits for replies."""

    async def call(self, call: Call) -> storage_pb2.Reply:
        """The reply, never a refusal. Raises ApiError."""
        ...

    async def call_all(self, calls: Sequence[Call]) -> list[storage_pb2.Reply | ApiError]:
        """The result of each call, in order."""
        ...


async def carry_out(plan: Plan, executor: Caller) -> bytes:
    """The body that `plan` leads to. Raises ApiError."""
    match plan:
        case Immediate(body):
            return body
        case Single(call, reply):
            return reply(await executor.call(call))
        case Work(run):
            return await run()
