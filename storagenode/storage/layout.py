"""Every row that a partition's store holds: its key's first byte, its form and the form's version.

A store is one sorted map. A number here never changes its meaning; a changed form gets a new version and code that
reads the old one. All integers in keys are big-endian, so that keys sort as numbers do; in values, little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final
from zlib import crc32

from storagenode.storage.store import Applied, IndexCount, OperationIdRow, StoreBroken, WriteBatch

META: Final = b"\x01"
"""+ name → bytes. `APPLIED`, `FORMAT`, and what `WriteBatch.meta` names."""
ITEM: Final = b"\x10"
"""+ row key (dynamo.keys) → stored item (dynamo.codec)."""
TOMBSTONE: Final = b"\x11"
"""+ row key → the tombstone of an item that was deleted (dynamo.codec). Only for global tables."""
LOCAL_INDEX: Final = b"\x20"
"""+ index number, 2 bytes + index row key (dynamo.keys) → projected item (dynamo.codec). The checksum's key is number
and index row key. Of the header only the size is set, so that the row follows from the item alone."""
COLLECTION: Final = b"\x21"
"""+ hash of a partition key, 16 bytes → CRC-32 u32, size u64: of the items and of their entries in local indexes. Only
for tables that have such indexes."""
EXPIRY: Final = b"\x22"
"""+ generation, 8 bytes + seconds since the epoch, 8 bytes + row key → nothing (storagenode.expiry). Only for tables
with a time to live."""
CHANGE: Final = b"\x30"
"""+ position, 8 bytes + number among the changes of that entry, 2 bytes → change row (dynamo.change)."""
PENDING: Final = b"\x40"
"""+ row key → the mark of a transaction under way (storagenode.transaction_marks)."""
TOKEN: Final = b"\x41"
"""+ hash of account and client token, 16 bytes → a transaction done in this partition alone
(storagenode.transaction_tokens)."""
TOKEN_AGE: Final = b"\x42"
"""+ position, 8 bytes → CRC-32 u32, stamp u64, and the key of the TOKEN row that was written there."""
OPERATION_IDS: Final = b"\x50"
"""+ first position, 8 bytes → CRC-32 u32, milliseconds u64, ids u64 each."""

VERSIONS: Final = {
    META: 1,
    ITEM: 1,
    TOMBSTONE: 1,
    LOCAL_INDEX: 1,
    COLLECTION: 1,
    EXPIRY: 1,
    CHANGE: 1,
    PENDING: 1,
    TOKEN: 1,
    TOKEN_AGE: 1,
    OPERATION_IDS: 1,
}

FORMAT_KEY: Final = META + b"\x00format"
APPLIED_KEY: Final = META + b"\x00applied"
SUM_KEY: Final = META + b"\x00rows"
"""The sum of the rows' hashes (storagenode.storage.row_sums): version of what is summed u8, position u64, sum u128. A
store without it, or with that of another position, is of an older release: it is summed when it is opened."""
SUM_VERSION: Final = 1
_NAMED: Final = META + b"\x01"

KEY_BYTES_MAX: Final = 1978
"""LMDB 1.0's bound on a whole key, first byte included."""
FORGOTTEN_ROWS_MAX: Final = 64
"""Operation id rows deleted by one write, so that no write pays for a whole generation."""

_POSITION: Final = struct.Struct(">Q")
_NUMBER: Final = struct.Struct(">H")
_EXPIRY: Final = struct.Struct(">QQ")
_APPLIED: Final = struct.Struct("<QQQQQ")
_SUM: Final = struct.Struct("<BQ16s")
_INDEX_COUNT: Final = struct.Struct("<QQ")
_SIZE: Final = struct.Struct("<Q")
_CHECKSUM: Final = struct.Struct("<I")
_STAMP: Final = struct.Struct("<Q")


def prefix_end(prefix: bytes) -> bytes:
    """The first key after all keys that begin with this one byte."""
    return bytes((prefix[0] + 1,))


def row_prefix(index: int) -> bytes:
    """What comes before the row keys of the table (0), or of a local index."""
    return LOCAL_INDEX + _NUMBER.pack(index) if index else ITEM


def row_range(start: bytes, end: bytes, index: int = 0) -> tuple[bytes, bytes]:
    """Whole keys of the range of row keys start <= key < end, of the table or a local index; an empty `end` is the end
    of the partition."""
    prefix = row_prefix(index)
    if end:
        return prefix + start, prefix + end
    return prefix + start, LOCAL_INDEX + _NUMBER.pack(index + 1) if index else prefix_end(prefix)


def index_key(index: int, key: bytes) -> bytes:
    """The key of a local index's entry without its first byte: of `WriteBatch.index_entries`, and of its checksum."""
    return _NUMBER.pack(index) + key


def collection_key(hash_: bytes) -> bytes:
    """The key of an item collection's size."""
    return COLLECTION + hash_


def tombstone_key(key: bytes) -> bytes:
    """The key of an item's tombstone."""
    return TOMBSTONE + key


def expiry_key(generation: int, seconds: int, key: bytes) -> bytes:
    """The key of an item's row in the expiry index."""
    return EXPIRY + _EXPIRY.pack(generation, seconds) + key


def expired_row_key(row: bytes) -> bytes:
    """The row key of the item in the key of a row of the expiry index."""
    return row[len(EXPIRY) + _EXPIRY.size :]


def pending_key(key: bytes) -> bytes:
    """The key of the mark on the item with this row key."""
    return PENDING + key


def token_key(transaction: bytes) -> bytes:
    """The key of a token row."""
    return TOKEN + transaction


def token_age_key(position: int) -> bytes:
    """The key of the row by which tokens are found in order of age."""
    return TOKEN_AGE + _POSITION.pack(position)


def position_of(key: bytes) -> int:
    """The position in the key of a change row or of a token's age."""
    return int(_POSITION.unpack_from(key, 1)[0])


def meta_key(name: bytes) -> bytes:
    """The key of a named row."""
    return _NAMED + name


def change_key(position: int, number: int = 0) -> bytes:
    """The key of a change row: `number` tells the changes of one entry apart."""
    return CHANGE + _POSITION.pack(position) + _NUMBER.pack(number)


def change_place(key: bytes) -> tuple[int, int]:
    """Position and number in the key of a change row."""
    return _POSITION.unpack_from(key, len(CHANGE))[0], _NUMBER.unpack_from(key, len(CHANGE) + _POSITION.size)[0]


def changes_to_forget(batch: WriteBatch) -> int:
    """How many change rows one write may delete: more than it adds, and no more than it can afford."""
    return FORGOTTEN_ROWS_MAX + 2 * len(batch.changes)


def format_row(partition: int, replica: int) -> bytes:
    """The versions of all forms, and whose store it is."""
    versions = b"".join(prefix + bytes((version,)) for prefix, version in sorted(VERSIONS.items()))
    return checked(_POSITION.pack(partition) + _POSITION.pack(replica) + versions)


def is_copy_of(row: bytes | None, partition: int) -> bool:
    """Whether a format row is of some replica of the partition, with today's versions. Raises StoreBroken."""
    if row is None:
        return False
    (replica,) = _POSITION.unpack_from(row, _CHECKSUM.size + _POSITION.size)
    return unchecked(row) == unchecked(format_row(partition, replica))


def encode_applied(applied: Applied) -> bytes:
    """The applied row's value: the members as u64, then items and size of each local index."""
    fixed = _APPLIED.pack(applied.position, applied.epoch, applied.stamp, applied.items, applied.size)
    return checked(b"".join((fixed, *(_INDEX_COUNT.pack(*count) for count in applied.indexes))))


def decode_applied(value: bytes | None) -> Applied:
    """The inverse; no row is an empty partition. Raises StoreBroken if it is damaged."""
    if value is None:
        return Applied()
    data = unchecked(value)
    try:
        counts = _INDEX_COUNT.iter_unpack(data[_APPLIED.size :])
        position, epoch, stamp, items, size = _APPLIED.unpack_from(data)
        return Applied(position, epoch, stamp, items, size, tuple([IndexCount(*count) for count in counts]))
    except struct.error as error:
        raise StoreBroken("the applied row has another length") from error


def encode_sum(position: int, value: int) -> bytes:
    """The value of the row that keeps the sum of the rows' hashes."""
    return checked(_SUM.pack(SUM_VERSION, position, value.to_bytes(16, "little")))


def decode_sum(value: bytes | None, position: int) -> int | None:
    """The sum as of `position`; None if none of that position is kept. Raises StoreBroken if it is damaged."""
    if value is None:
        return None
    version, found, sum_ = _SUM.unpack(unchecked(value))
    return int.from_bytes(sum_, "little") if (version, found) == (SUM_VERSION, position) else None


def encode_collection(size: int) -> bytes:
    """The value of an item collection's row."""
    return checked(_SIZE.pack(size))


def decode_collection(value: bytes | None) -> int:
    """The inverse; no row is an empty collection. Raises StoreBroken if it is damaged."""
    return 0 if value is None else int(_SIZE.unpack(unchecked(value))[0])


def operation_ids_key(first_position: int) -> bytes:
    """The key of an operation id row."""
    return OPERATION_IDS + _POSITION.pack(first_position)


def encode_operation_ids(row: OperationIdRow) -> bytes:
    """The value of an operation id row."""
    return checked(struct.pack(f"<Q{len(row.ids)}Q", row.stamp_ms, *row.ids))


def decode_operation_ids(key: bytes, value: bytes) -> OperationIdRow:
    """The inverse. Raises StoreBroken if it is damaged."""
    data = unchecked(value)
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
    for key, stored in batch.index_entries.items():
        yield LOCAL_INDEX + key, stored
    for hash_, size in batch.collections.items():
        yield collection_key(hash_), encode_collection(size) if size else None
    for position, number, change in batch.changes:
        yield change_key(position, number), change
    yield from batch.rows.items()
    for name, value in batch.meta.items():
        yield meta_key(name), value
    ids = batch.operation_ids
    if ids is not None:
        yield operation_ids_key(ids.first_position), encode_operation_ids(ids)
    yield APPLIED_KEY, encode_applied(batch.applied)


def checked(data: bytes) -> bytes:
    """A row's value: a CRC-32 (u32) before the data."""
    return _CHECKSUM.pack(crc32(data)) + data


def unchecked(value: bytes) -> bytes:
    """The data of a `checked` value. Raises StoreBroken if it is damaged."""
    data = value[_CHECKSUM.size :]
    if len(value) < _CHECKSUM.size or crc32(data) != _CHECKSUM.unpack_from(value)[0]:
        raise StoreBroken("a row's checksum is wrong")
    return data
