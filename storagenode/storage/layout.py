"""Every row that a partition's store holds: its key's first byte, its form and the form's version.

A store is one sorted map. A number here never changes its meaning; a changed form gets a new version and code that
reads the old one. All integers in keys are big-endian, so that keys sort as numbers do; in values, little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final
from zlib import crc32

from storagenode.storage.store import Applied, OperationIdRow, StoreBroken, WriteBatch

META: Final = b"\x01"
"""+ name → bytes. `APPLIED`, `FORMAT`, and what `WriteBatch.meta` names."""
ITEM: Final = b"\x10"
"""+ row key (dynamo.keys) → stored item (dynamo.codec)."""
LOCAL_INDEX: Final = b"\x20"
"""+ index number, 2 bytes + index row key → base row key and projected item. Not written yet."""
CHANGE: Final = b"\x30"
"""+ position, 8 bytes → change row."""
PENDING: Final = b"\x40"
"""+ row key → the mark of a transaction under way. Not written yet."""
OPERATION_IDS: Final = b"\x50"
"""+ first position, 8 bytes → CRC-32 u32, milliseconds u64, ids u64 each."""

VERSIONS: Final = {META: 1, ITEM: 1, LOCAL_INDEX: 1, CHANGE: 1, PENDING: 1, OPERATION_IDS: 1}

FORMAT_KEY: Final = META + b"\x00format"
APPLIED_KEY: Final = META + b"\x00applied"
_NAMED: Final = META + b"\x01"

KEY_BYTES_MAX: Final = 1978
"""LMDB 1.0's bound on a whole key, first byte included."""
FORGOTTEN_ROWS_MAX: Final = 64
"""Operation id rows deleted by one write, so that no write pays for a whole generation."""

_POSITION: Final = struct.Struct(">Q")
_APPLIED: Final = struct.Struct("<QQQQQ")
_CHECKSUM: Final = struct.Struct("<I")
_STAMP: Final = struct.Struct("<Q")


def prefix_end(prefix: bytes) -> bytes:
    """The first key after all keys that begin with this one byte."""
    return bytes((prefix[0] + 1,))


def item_range(start: bytes, end: bytes) -> tuple[bytes, bytes]:
    """Whole keys of the range of row keys start <= key < end; an empty `end` is the end of the partition."""
    return ITEM + start, ITEM + end if end else prefix_end(ITEM)


def meta_key(name: bytes) -> bytes:
    """The key of a named row."""
    return _NAMED + name


def change_key(position: int) -> bytes:
    """The key of a change row."""
    return CHANGE + _POSITION.pack(position)


def format_row(partition: int, replica: int) -> bytes:
    """The versions of all forms, and whose store it is."""
    versions = b"".join(prefix + bytes((version,)) for prefix, version in sorted(VERSIONS.items()))
    return _checked(_POSITION.pack(partition) + _POSITION.pack(replica) + versions)


def encode_applied(applied: Applied) -> bytes:
    """The applied row's value."""
    return _checked(_APPLIED.pack(applied.position, applied.epoch, applied.stamp, applied.items, applied.size))


def decode_applied(value: bytes | None) -> Applied:
    """The inverse; no row is an empty partition. Raises StoreBroken if it is damaged."""
    if value is None:
        return Applied()
    try:
        return Applied(*_APPLIED.unpack(_unchecked(value)))
    except struct.error as error:
        raise StoreBroken("the applied row has another length") from error


def operation_ids_key(first_position: int) -> bytes:
    """The key of an operation id row."""
    return OPERATION_IDS + _POSITION.pack(first_position)


def encode_operation_ids(row: OperationIdRow) -> bytes:
    """The value of an operation id row."""
    return _checked(struct.pack(f"<Q{len(row.ids)}Q", row.stamp_ms, *row.ids))


def decode_operation_ids(key: bytes, value: bytes) -> OperationIdRow:
    """The inverse. Raises StoreBroken if it is damaged."""
    data = _unchecked(value)
    if len(data) < _STAMP.size or len(data) % 8:
        raise StoreBroken("an operation id row has an odd length")
    (first_position,) = _POSITION.unpack_from(key, len(OPERATION_IDS))
    stamp_ms, *ids = struct.unpack(f"<{len(data) // 8}Q", data)
    return OperationIdRow(first_position, stamp_ms, tuple(ids))


def last_position_of(key: bytes, value: bytes) -> int:
    """The last position that an operation id row covers, from its length alone."""
    (first_position,) = _POSITION.unpack_from(key, len(OPERATION_IDS))
    return int(first_position) + (len(value) - _CHECKSUM.size - _STAMP.size) // 8 - 1


def rows(batch: WriteBatch) -> Iterator[tuple[bytes, bytes | None]]:
    """The rows that a batch sets, or deletes where the value is None; without those that it lets be forgotten."""
    for key, stored in batch.items.items():
        yield ITEM + key, stored
    for position, change in batch.changes:
        yield change_key(position), change
    for name, value in batch.meta.items():
        yield meta_key(name), value
    ids = batch.operation_ids
    if ids is not None:
        yield operation_ids_key(ids.first_position), encode_operation_ids(ids)
    yield APPLIED_KEY, encode_applied(batch.applied)


def _checked(data: bytes) -> bytes:
    return _CHECKSUM.pack(crc32(data)) + data


def _unchecked(value: bytes) -> bytes:
    data = value[_CHECKSUM.size :]
    if len(value) < _CHECKSUM.size or crc32(data) != _CHECKSUM.unpack_from(value)[0]:
        raise StoreBroken("a row's checksum is wrong")
    return data
