"""What global tables write to logs: changes taken from another region, tombstones that go, the clock moved on, and a
region that is cut off.

Layout, little endian, after one byte of format version and one byte of command (`commands`):

* REGIONAL: life (8) and id (8) of the source partition, its position (8), the clock's stamp (8), number of rows (4);
  for each row length of its key (2), length of the stored item (4), size of the item that was there (4), key and stored
  item (dynamo.codec, a tombstone for a delete).
* TOMBSTONES: number of rows (4); for each the stamp (8), length (2) and bytes of its row key.
* CLOCK: stamp (8).
* CUT_OFF: number of the region (2).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

REGIONAL, TOMBSTONES, CLOCK, CUT_OFF = 40, 41, 42, 43

_FORMAT_VERSION: Final = 1
_REGIONAL = struct.Struct("<BBQQQQI")
_ROW = struct.Struct("<HII")
_TOMBSTONES = struct.Struct("<BBI")
_TOMBSTONE = struct.Struct("<QH")
_CLOCK = struct.Struct("<BBQ")
_CUT_OFF = struct.Struct("<BBH")


class Source(NamedTuple):
    """A partition of another region's table. `life` is the `since` of that region's replica: its partitions' ids are
    unique within it alone."""

    life: int
    partition: int


class RegionalRow(NamedTuple):
    """An item's new state, from another region. `old_size` is 0 when there was no item here."""

    key: bytes
    stored: bytes
    old_size: int


class Tombstone(NamedTuple):
    """The tombstone of an item, as it is known to every region."""

    key: bytes
    stamp: int


@dataclass(frozen=True, slots=True)
class RegionalCommand:
    """Changes of another region's partition that win here; everything up to `position` was looked at. `clock` is this
    partition's own."""

    source: Source
    position: int
    clock: int
    rows: tuple[RegionalRow, ...]


@dataclass(frozen=True, slots=True)
class TombstonesCommand:
    """Tombstones that nobody needs any more."""

    tombstones: tuple[Tombstone, ...]


@dataclass(frozen=True, slots=True)
class ClockCommand:
    """The partition stamps above this from now on."""

    stamp: int


@dataclass(frozen=True, slots=True)
class CutOffCommand:
    """No change is kept any more for the region with this number."""

    number: int


def encode_regional(source: Source, position: int, clock: int, rows: Sequence[RegionalRow]) -> bytes:
    """The payload of a REGIONAL entry."""
    parts = [_REGIONAL.pack(_FORMAT_VERSION, REGIONAL, *source, position, clock, len(rows))]
    for row in rows:
        parts += (_ROW.pack(len(row.key), len(row.stored), row.old_size), row.key, row.stored)
    return b"".join(parts)


def decode_regional(payload: bytes) -> RegionalCommand:
    """The inverse."""
    _, _, life, partition, position, clock, count = _REGIONAL.unpack_from(payload)
    rows, at = [], _REGIONAL.size
    for _ in range(count):
        key_length, stored_length, old_size = _ROW.unpack_from(payload, at)
        key_at = at + _ROW.size
        stored_at = key_at + key_length
        at = stored_at + stored_length
        rows.append(RegionalRow(payload[key_at:stored_at], payload[stored_at:at], old_size))
    return RegionalCommand(Source(life, partition), position, clock, tuple(rows))


def encode_tombstones(tombstones: Sequence[Tombstone]) -> bytes:
    """The payload of a TOMBSTONES entry."""
    parts = [_TOMBSTONES.pack(_FORMAT_VERSION, TOMBSTONES, len(tombstones))]
    for key, stamp in tombstones:
        parts += (_TOMBSTONE.pack(stamp, len(key)), key)
    return b"".join(parts)


def decode_tombstones(payload: bytes) -> TombstonesCommand:
    """The inverse."""
    _, _, count = _TOMBSTONES.unpack_from(payload)
    tombstones, at = [], _TOMBSTONES.size
    for _ in range(count):
        stamp, length = _TOMBSTONE.unpack_from(payload, at)
        at += _TOMBSTONE.size + length
        tombstones.append(Tombstone(payload[at - length : at], stamp))
    return TombstonesCommand(tuple(tombstones))


def encode_clock(stamp: int) -> bytes:
    """The payload of a CLOCK entry."""
    return _CLOCK.pack(_FORMAT_VERSION, CLOCK, stamp)


def decode_clock(payload: bytes) -> ClockCommand:
    """The inverse."""
    return ClockCommand(_CLOCK.unpack_from(payload)[2])


def encode_cut_off(number: int) -> bytes:
    """The payload of a CUT_OFF entry."""
    return _CUT_OFF.pack(_FORMAT_VERSION, CUT_OFF, number)


def decode_cut_off(payload: bytes) -> CutOffCommand:
    """The inverse."""
    return CutOffCommand(_CUT_OFF.unpack_from(payload)[2])
