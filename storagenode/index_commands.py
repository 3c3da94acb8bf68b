"""What global indexes write to logs: an index's partition takes rows, a table's partition notes how far readers of its
change rows have come, and items that are to be brought to a new index.

Layout, little endian, after one byte of format version and one byte of command (`commands`):

* INDEX_WRITE: source partition (8), its position (8), number of rows (4); for each row length of its key (2), length of
  the stored entry (4), size of the entry that was there (4), key and stored entry (dynamo.codec; none: the row goes).
* READ: number of readers (2); for each length of its name (1), position (8) and name.
* TOUCH: id of the index's table (8), whether it was the last (1), length of the last row key looked at (2), that key,
  then length (2) and bytes of each key touched.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

INDEX_WRITE, READ, TOUCH = 20, 21, 22

_FORMAT_VERSION = 1
_INDEX_WRITE = struct.Struct("<BBQQI")
_ROW = struct.Struct("<HII")
_READ = struct.Struct("<BBH")
_READER = struct.Struct("<BQ")
_TOUCH = struct.Struct("<BBQBH")
_KEY = struct.Struct("<H")


class TakenRow(NamedTuple):
    """An index row's new state. `stored` is empty when the row goes, `old_size` 0 when there was none."""

    key: bytes
    stored: bytes
    old_size: int


@dataclass(frozen=True, slots=True)
class IndexWriteCommand:
    """Rows of an index that follow from changes in the partition `source`, up to `position` of its log."""

    source: int
    position: int
    rows: tuple[TakenRow, ...]


@dataclass(frozen=True, slots=True)
class ReadCommand:
    """How far readers of the change rows have come, by name: they need no row up to that position any more."""

    positions: Mapping[bytes, int]


@dataclass(frozen=True, slots=True)
class TouchCommand:
    """Items to be brought to an index, by row key. All items up to `through` have been touched, and when it is `done`
    all there are."""

    index: int
    done: bool
    through: bytes
    keys: tuple[bytes, ...]


def encode_index_write(source: int, position: int, rows: Sequence[TakenRow]) -> bytes:
    """The payload of an INDEX_WRITE entry."""
    parts = [_INDEX_WRITE.pack(_FORMAT_VERSION, INDEX_WRITE, source, position, len(rows))]
    for row in rows:
        parts += (_ROW.pack(len(row.key), len(row.stored), row.old_size), row.key, row.stored)
    return b"".join(parts)


def decode_index_write(payload: bytes) -> IndexWriteCommand:
    """The inverse."""
    _, _, source, position, count = _INDEX_WRITE.unpack_from(payload)
    rows, at = [], _INDEX_WRITE.size
    for _ in range(count):
        key_length, stored_length, old_size = _ROW.unpack_from(payload, at)
        key_at = at + _ROW.size
        stored_at = key_at + key_length
        at = stored_at + stored_length
        rows.append(TakenRow(payload[key_at:stored_at], payload[stored_at:at], old_size))
    return IndexWriteCommand(source, position, tuple(rows))


def encode_read(positions: Mapping[bytes, int]) -> bytes:
    """The payload of a READ entry."""
    parts = [_READ.pack(_FORMAT_VERSION, READ, len(positions))]
    for name, position in positions.items():
        parts += (_READER.pack(len(name), position), name)
    return b"".join(parts)


def decode_read(payload: bytes) -> ReadCommand:
    """The inverse."""
    _, _, count = _READ.unpack_from(payload)
    positions, at = {}, _READ.size
    for _ in range(count):
        length, position = _READER.unpack_from(payload, at)
        at += _READER.size + length
        positions[payload[at - length : at]] = position
    return ReadCommand(positions)


def encode_touch(index: int, keys: Sequence[bytes], through: bytes, *, done: bool) -> bytes:
    """The payload of a TOUCH entry."""
    parts = [_TOUCH.pack(_FORMAT_VERSION, TOUCH, index, done, len(through)), through]
    for key in keys:
        parts += (_KEY.pack(len(key)), key)
    return b"".join(parts)


def decode_touch(payload: bytes) -> TouchCommand:
    """The inverse."""
    _, _, index, done, length = _TOUCH.unpack_from(payload)
    at = _TOUCH.size + length
    through = payload[_TOUCH.size : at]
    keys = []
    while at < len(payload):
        (length,) = _KEY.unpack_from(payload, at)
        at += _KEY.size + length
        keys.append(payload[at - length : at])
    return TouchCommand(index, bool(done), through, tuple(keys))
