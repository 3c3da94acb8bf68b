"""An item's bytes on the wire, in the log and on disk: a fixed header, then the canonical JSON of the attribute map.

The header's layout is version 1 of the stored format, little-endian: version (1 byte), flags (1), origin region (2),
item size in DynamoDB's bytes (4), stamp (8), position (8), CRC-32 (4). The CRC covers the row key, the header before
the CRC, and the body, in this order. A later layout gets a new version number; the numbers below never change their
meaning.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple
from zlib import crc32

VERSION = 1

TOMBSTONE = 1
"""Flag: the item was deleted here; the body is empty and the header stays for the replicator."""

WRITTEN_BY_SERVICE = 2
"""Flag: the write came from the service itself (time to live), not from a client."""

_HEADER = Struct("<BBHIQQ")
_CRC = Struct("<I")
_BODY = _HEADER.size + _CRC.size
_SIZE, _SIZE_AT = Struct("<I"), 4

HEADER_SIZE = _BODY

_COUNTER_BITS = 16


class CorruptItem(Exception):  # noqa: N818  a finding about data, named as such
    """Stored bytes that are not what was written."""


class ItemHeader(NamedTuple):
    """What is known of an item without decoding it.

    `flags` of the constants above; `origin` the region (0: this one); `size` in DynamoDB's bytes; `stamp` a hybrid
    logical clock (see `make_stamp`); `position` of the write in its partition.
    """

    flags: int
    origin: int
    size: int
    stamp: int
    position: int


def encode(key: bytes, body: bytes, header: ItemHeader) -> bytes:
    """The stored bytes of the item at the row key `key`."""
    head = _HEADER.pack(VERSION, *header)
    return b"".join((head, _CRC.pack(_checksum(head, key, body)), body))


def header_of(stored: bytes | memoryview) -> ItemHeader:
    """The header; raises `CorruptItem` if it is cut short or of an unknown version. Does not look at the CRC."""
    if len(stored) < _BODY:
        raise CorruptItem(f"{len(stored)} bytes are less than a header")
    version, *fields = _HEADER.unpack_from(stored)
    if version != VERSION:
        raise CorruptItem(f"format version {version} is unknown")
    return ItemHeader(*fields)


def size_of(stored: bytes | memoryview) -> int:
    """The item's size in DynamoDB's bytes, of stored bytes that passed `verify`."""
    (size,) = _SIZE.unpack_from(stored, _SIZE_AT)
    return int(size)


def body_of(stored: bytes | memoryview) -> bytes:
    """The canonical JSON; empty for a tombstone."""
    return bytes(stored[_BODY:])


def verify(key: bytes, stored: bytes | memoryview) -> None:
    """Raises `CorruptItem` if header, key or body have changed since `encode`."""
    if len(stored) < _BODY:
        raise CorruptItem(f"{len(stored)} bytes are less than a header")
    view = memoryview(stored)
    (expected,) = _CRC.unpack_from(view, _HEADER.size)
    if _checksum(view[: _HEADER.size], key, view[_BODY:]) != expected:
        raise CorruptItem(f"checksum mismatch in {len(stored)} bytes at key {key.hex()}")


def make_stamp(milliseconds: int, counter: int) -> int:
    """A hybrid-logical-clock stamp: 48 bits of milliseconds since the epoch, 16 bits of counter."""
    return milliseconds << _COUNTER_BITS | counter


def stamp_milliseconds(stamp: int) -> int:
    """The milliseconds of a stamp."""
    return stamp >> _COUNTER_BITS


def _checksum(head: bytes | memoryview, key: bytes, body: bytes | memoryview) -> int:
    # The header in the middle keeps the end of the key from passing for the beginning of the body.
    return crc32(body, crc32(head, crc32(key)))
