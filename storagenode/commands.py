"""What an entry of a partition's log says: outcomes, not requests, so that apply needs nothing but the log.

Layout, little endian, after one byte of format version and one byte of command:

* WRITE: operation id (8), old size (4), key length (2), stored length (4), then key, stored item (dynamo.codec; a
tombstone for
  a delete) and the reply, as the serialized `WriteReply` that a retried request is answered with.
* SCHEMA: the table's description as JSON. It is the only way in which apply learns of a schema.

* PREPARE, COMMIT, CANCEL, TRANSACT: see `transaction_commands`.
* INDEX_WRITE, READ, TOUCH: see `index_commands`.
* EXPIRY: see `expiry`.
* REGIONAL, TOMBSTONES, CLOCK, CUT_OFF: see `regional_commands`.

A command's number never changes its meaning (docs/data-format.md).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from storagenode import expiry
from storagenode import index_commands as indexes
from storagenode import regional_commands as regional
from storagenode import transaction_commands as transactions

FORMAT_VERSION = 1
WRITE, SCHEMA = 1, 2

_PREFIX = struct.Struct("<BB")
_WRITE = struct.Struct("<BBQIHI")


class UnknownCommand(Exception):  # noqa: N818  a finding about data
    """The entry was written by a newer version than this one, or is not an entry at all."""


class WriteCommand(msgspec.Struct, frozen=True):
    """One item's new state. `old_size` is 0 when there was no item; `reply` repeats the answer for a retried
    request."""

    operation_id: int
    key: bytes
    stored: bytes
    old_size: int
    reply: bytes


class SchemaCommand(msgspec.Struct, frozen=True):
    """The table's description, as `dynamo.table.encode_table` wrote it."""

    definition: bytes


Command: TypeAlias = (
    WriteCommand
    | SchemaCommand
    | transactions.PrepareCommand
    | transactions.FinishCommand
    | transactions.TransactCommand
    | indexes.IndexWriteCommand
    | indexes.ReadCommand
    | indexes.TouchCommand
    | expiry.ExpiryCommand
    | regional.RegionalCommand
    | regional.TombstonesCommand
    | regional.ClockCommand
    | regional.CutOffCommand
)


_OTHERS: dict[bytes, Callable[[bytes], Command]] = {
    bytes((FORMAT_VERSION, transactions.PREPARE)): transactions.decode_prepare,
    bytes((FORMAT_VERSION, transactions.COMMIT)): transactions.decode_finish,
    bytes((FORMAT_VERSION, transactions.CANCEL)): transactions.decode_finish,
    bytes((FORMAT_VERSION, transactions.TRANSACT)): transactions.decode_transact,
    bytes((FORMAT_VERSION, indexes.INDEX_WRITE)): indexes.decode_index_write,
    bytes((FORMAT_VERSION, indexes.READ)): indexes.decode_read,
    bytes((FORMAT_VERSION, indexes.TOUCH)): indexes.decode_touch,
    bytes((FORMAT_VERSION, expiry.EXPIRY)): expiry.decode_expiry,
    bytes((FORMAT_VERSION, regional.REGIONAL)): regional.decode_regional,
    bytes((FORMAT_VERSION, regional.TOMBSTONES)): regional.decode_tombstones,
    bytes((FORMAT_VERSION, regional.CLOCK)): regional.decode_clock,
    bytes((FORMAT_VERSION, regional.CUT_OFF)): regional.decode_cut_off,
}


def encode_write(operation_id: int, key: bytes, stored: bytes, old_size: int, reply: bytes) -> bytes:
    """The payload of a WRITE entry."""
    head = _WRITE.pack(FORMAT_VERSION, WRITE, operation_id, old_size, len(key), len(stored))
    return b"".join((head, key, stored, reply))


def encode_schema(definition: bytes) -> bytes:
    """The payload of a SCHEMA entry."""
    return _PREFIX.pack(FORMAT_VERSION, SCHEMA) + definition


def decode(payload: bytes) -> Command:
    """The command in an entry's payload. Raises UnknownCommand."""
    if payload[:2] == b"\x01\x01":
        _, _, operation_id, old_size, key_length, stored_length = _WRITE.unpack_from(payload)
        key_end = _WRITE.size + key_length
        stored_end = key_end + stored_length
        return WriteCommand(
            operation_id, payload[_WRITE.size : key_end], payload[key_end:stored_end], old_size, payload[stored_end:]
        )
    if payload[:2] == b"\x01\x02":
        return SchemaCommand(payload[2:])
    decode_other = _OTHERS.get(payload[:2])
    if decode_other is not None:
        return decode_other(payload)
    raise UnknownCommand(f"log entry with version and command {payload[:2].hex()}: not known to this version")
