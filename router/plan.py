"""What an operation wants done: the only thing that `operations/` hand to the gateway."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeAlias

import msgspec

from cluster.requests.call import Call, NodeOperation, StalePlanError
from cluster.wire import storage_pb2
from dynamo.errors import ApiError

__all__ = (
    "Call",
    "Caller",
    "Immediate",
    "NodeOperation",
    "Plan",
    "Single",
    "StalePlanError",
    "Work",
    "carry_out",
)


class Immediate(msgspec.Struct, frozen=True):
    """The answer's body, known without asking anyone."""

    body: bytes


class Single(msgspec.Struct, frozen=True):
    """One call, and how its reply becomes the answer's body. The hot path: no task is made for it.

    `reply` gets a Reply whose result is never a refusal (the executor deals with those) and may raise ApiError.
    """

    call: Call
    reply: Callable[[storage_pb2.Reply], bytes]


class Work(msgspec.Struct, frozen=True):
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
