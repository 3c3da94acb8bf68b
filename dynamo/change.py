"""Change rows: what a write did to an item, kept beside the items for whoever follows a table's changes.

Layout of version 1, little-endian: CRC-32 of all that follows (4 bytes), version (1), kind (1). Then, for a change,
length of the key (2) and of the item before (4), key, item before and item after, as stored (`dynamo.codec`; before:
nothing if there was no item; after: a tombstone if there is none). For a change that was taken from another region,
the stamp of the partition's clock when it was taken (8) comes before the lengths. For a touch, the id of the index's
table (8), then length (2) and bytes of each key. A number never changes its meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct, error
from typing import NamedTuple, TypeAlias
from zlib import crc32

from dynamo.codec import CorruptItem, header_of

VERSION = 1
CHANGE, TOUCH, TAKEN = 1, 2, 3

_CRC = Struct("<I")
_KIND = Struct("<BB")
_LENGTHS = Struct("<HI")
_INDEX = Struct("<Q")
_CLOCK = Struct("<Q")
_KEY = Struct("<H")
_BODY = _CRC.size + _KIND.size


class Change(NamedTuple):
    """A write: stored bytes of the item with row key `key`. `after` tells stamp, origin and flags of the write."""

    key: bytes
    before: bytes
    """Empty: there was no item."""
    after: bytes
    """A tombstone: there is none."""
    taken: int = 0
    """The stamp of the partition's clock when it was taken from another region; 0: it was made here."""

    @property
    def clock(self) -> int:
        """The partition's clock at the change. It rises with positions, as the stamps of other regions' writes do
        not."""
        return self.taken or header_of(self.after).stamp


class Touch(NamedTuple):
    """No write: the items with these row keys, if they are there, are to be brought to one index.

    `index_table` is the id of the index's table. Nobody else heeds it.
    """

    index_table: int
    keys: tuple[bytes, ...]


ChangeRow: TypeAlias = Change | Touch


def encode_change(key: bytes, before: bytes, after: bytes, taken: int = 0) -> bytes:
    """The row of a write; `taken` as `Change` has it."""
    head = _KIND.pack(VERSION, TAKEN) + _CLOCK.pack(taken) if taken else _KIND.pack(VERSION, CHANGE)
    return _checked(b"".join((head, _LENGTHS.pack(len(key), len(before)), key, before, after)))


def encode_touch(index_table: int, keys: Sequence[bytes]) -> bytes:
    """The row of a touch."""
    parts = [_KIND.pack(VERSION, TOUCH), _INDEX.pack(index_table)]
    for key in keys:
        parts += (_KEY.pack(len(key)), key)
    return _checked(b"".join(parts))


def decode_change(row: bytes) -> ChangeRow:
    """The inverse of both. Raises `CorruptItem` for a row that is damaged or of an unknown version."""
    try:
        (checksum,) = _CRC.unpack_from(row)
        version, kind = _KIND.unpack_from(row, _CRC.size)
    except error as cut:
        raise CorruptItem(f"a change row of {len(row)} bytes") from cut
    if checksum != crc32(memoryview(row)[_CRC.size :]):
        raise CorruptItem(f"checksum mismatch in a change row of {len(row)} bytes")
    if version != VERSION or kind not in (CHANGE, TOUCH, TAKEN):
        raise CorruptItem(f"a change row of version {version} and kind {kind} is unknown")
    return _decode_touch(row) if kind == TOUCH else _decode_change(row, kind)


def _decode_change(row: bytes, kind: int) -> Change:
    at, taken = _BODY, 0
    if kind == TAKEN:
        (taken,) = _CLOCK.unpack_from(row, at)
        at += _CLOCK.size
    key_length, before_length = _LENGTHS.unpack_from(row, at)
    key_at = at + _LENGTHS.size
    before_at = key_at + key_length
    after_at = before_at + before_length
    return Change(row[key_at:before_at], row[before_at:after_at], row[after_at:], taken)


def _decode_touch(row: bytes) -> Touch:
    (index_table,) = _INDEX.unpack_from(row, _BODY)
    keys, at = [], _BODY + _INDEX.size
    while at < len(row):
        (length,) = _KEY.unpack_from(row, at)
        at += _KEY.size + length
        keys.append(row[at - length : at])
    return Touch(index_table, tuple(keys))


def _checked(data: bytes) -> bytes:
    return _CRC.pack(crc32(data)) + data
