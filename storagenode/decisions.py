"""What a partition decides on a write that it was asked for."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from cluster.wire import storage_pb2
from dynamo.errors import ApiError
from dynamo.values import dump

Result: TypeAlias = storage_pb2.WriteReply | storage_pb2.TransactReply
"""The answer to a write that went ahead."""


class Propose(msgspec.Struct, frozen=True):
    """The write goes ahead: this payload, at the position that `decide` was given, and the answer once it is
    applied."""

    payload: bytes
    reply: Result


class Answer(msgspec.Struct, frozen=True):
    """No entry is needed. The answer may leave once everything up to position `after` is applied (0: at once), since it
    rests on a write that is still in flight there."""

    reply: Result | storage_pb2.Failure
    after: int


class Repeat(msgspec.Struct, frozen=True):
    """This operation was applied before, at this position of the log, whose entry holds the answer."""

    position: int


Decision: TypeAlias = Propose | Answer | Repeat


def failure(error: ApiError, size: int) -> storage_pb2.Failure:
    """The wire form of an error that the client sees; `size` of the item that was looked at counts as capacity."""
    item = dump(error.item) if error.item else b""
    return storage_pb2.Failure(type=error.type, message=error.message, item=item, size=size)
