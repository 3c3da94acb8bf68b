"""What transactions write to a partition's log. One entry holds all that a transaction does here, so that it comes
whole or not at all.

Layout, little endian, after one byte of format version and one byte of command (`commands`):

* PREPARE: operation id (8), stamp (8), transaction (16), attempt (16), number of items (2); then for each item what a
  commit makes of it (1), its size before and after (4 + 4), length of its key and of its body (2 + 4), key and body;
  then the reply, as the serialized `TransactReply` that a retried request is answered with.
* COMMIT and CANCEL: stamp (8), attempt (16), number of keys (2); then for each the length (2) and the key.
* TRANSACT, for batches too: operation id (8), stamp (8), transaction (16, zeros: it is not remembered), payload (16),
  number of actions (2) and of writes (2); for each action the larger of the item's sizes (4); for each write its old
  size (4), length of its key and of its item (2 + 4), key and stored item (dynamo.codec); then the reply.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

PREPARE, COMMIT, CANCEL, TRANSACT = 10, 11, 12, 13
ID_BYTES = 16
NO_TRANSACTION = NO_PAYLOAD = bytes(ID_BYTES)

_FORMAT_VERSION = 1
_PREPARE = struct.Struct("<BBQQ16s16sH")
_MARKED = struct.Struct("<BIIHI")
_FINISH = struct.Struct("<BBQ16sH")
_KEY = struct.Struct("<H")
_TRANSACT = struct.Struct("<BBQQ16s16sHH")
_WRITTEN = struct.Struct("<IHI")


class OnCommit(IntEnum):
    """What a commit makes of a marked item. The numbers are those of log and store."""

    NOTHING = 0
    PUT = 1
    DELETE = 2


class MarkedItem(NamedTuple):
    """An item that is marked, and what a commit makes of it. `body` is canonical JSON, for PUT alone."""

    key: bytes
    on_commit: OnCommit
    old_size: int
    size: int
    body: bytes


class WrittenItem(NamedTuple):
    """An item's new state: its stored bytes, a tombstone for a delete. `old_size` is 0 when there was no item."""

    key: bytes
    stored: bytes
    old_size: int


@dataclass(frozen=True, slots=True)
class PrepareCommand:
    """Marks on all these items."""

    operation_id: int
    stamp: int
    transaction: bytes
    attempt: bytes
    items: tuple[MarkedItem, ...]
    reply: bytes


@dataclass(frozen=True, slots=True)
class FinishCommand:
    """The marks of an attempt on these keys go; with `commit` the items become what the marks say."""

    commit: bool
    stamp: int
    attempt: bytes
    keys: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class TransactCommand:
    """A whole transaction in one partition."""

    operation_id: int
    stamp: int
    transaction: bytes
    payload: bytes
    sizes: tuple[int, ...]
    writes: tuple[WrittenItem, ...]
    reply: bytes


def encode_prepare(command: PrepareCommand) -> bytes:
    """The payload of a PREPARE entry."""
    head = _PREPARE.pack(
        _FORMAT_VERSION,
        PREPARE,
        command.operation_id,
        command.stamp,
        command.transaction,
        command.attempt,
        len(command.items),
    )
    parts = [head]
    for key, on_commit, old_size, size, body in command.items:
        parts += (_MARKED.pack(on_commit, old_size, size, len(key), len(body)), key, body)
    return b"".join((*parts, command.reply))


def decode_prepare(payload: bytes) -> PrepareCommand:
    """The command in the payload of a PREPARE entry."""
    _, _, operation_id, stamp, transaction, attempt, count = _PREPARE.unpack_from(payload)
    items, at = [], _PREPARE.size
    for _ in range(count):
        on_commit, old_size, size, key_length, body_length = _MARKED.unpack_from(payload, at)
        key_at = at + _MARKED.size
        body_at = key_at + key_length
        at = body_at + body_length
        items.append(MarkedItem(payload[key_at:body_at], OnCommit(on_commit), old_size, size, payload[body_at:at]))
    return PrepareCommand(operation_id, stamp, transaction, attempt, tuple(items), payload[at:])


def encode_finish(commit: bool, stamp: int, attempt: bytes, keys: Sequence[bytes]) -> bytes:
    """The payload of a COMMIT or CANCEL entry."""
    parts = [_FINISH.pack(_FORMAT_VERSION, COMMIT if commit else CANCEL, stamp, attempt, len(keys))]
    for key in keys:
        parts += (_KEY.pack(len(key)), key)
    return b"".join(parts)


def decode_finish(payload: bytes) -> FinishCommand:
    """The command in the payload of a COMMIT or CANCEL entry."""
    _, command, stamp, attempt, count = _FINISH.unpack_from(payload)
    keys, at = [], _FINISH.size
    for _ in range(count):
        (length,) = _KEY.unpack_from(payload, at)
        start = at + _KEY.size
        at = start + length
        keys.append(payload[start:at])
    return FinishCommand(command == COMMIT, stamp, attempt, tuple(keys))


def encode_transact(command: TransactCommand) -> bytes:
    """The payload of a TRANSACT entry."""
    head = _TRANSACT.pack(
        _FORMAT_VERSION,
        TRANSACT,
        command.operation_id,
        command.stamp,
        command.transaction,
        command.payload,
        len(command.sizes),
        len(command.writes),
    )
    parts = [head, struct.pack(f"<{len(command.sizes)}I", *command.sizes)]
    for key, stored, old_size in command.writes:
        parts += (_WRITTEN.pack(old_size, len(key), len(stored)), key, stored)
    return b"".join((*parts, command.reply))


def decode_transact(payload: bytes) -> TransactCommand:
    """The command in the payload of a TRANSACT entry."""
    _, _, operation_id, stamp, transaction, hashed, actions, count = _TRANSACT.unpack_from(payload)
    sizes = struct.unpack_from(f"<{actions}I", payload, _TRANSACT.size)
    writes, at = [], _TRANSACT.size + 4 * actions
    for _ in range(count):
        old_size, key_length, stored_length = _WRITTEN.unpack_from(payload, at)
        key_at = at + _WRITTEN.size
        stored_at = key_at + key_length
        at = stored_at + stored_length
        writes.append(WrittenItem(payload[key_at:stored_at], payload[stored_at:at], old_size))
    return TransactCommand(operation_id, stamp, transaction, hashed, sizes, tuple(writes), payload[at:])
