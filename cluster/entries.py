"""The framing of log entries on the wire: a fixed header and the payload, one entry after the other.

Header, little-endian: epoch 8 bytes, position 8, kind 1, length of the payload 4.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from replication.messages import Entry

_HEADER = struct.Struct("<QQBI")
HEADER_BYTES = _HEADER.size


class FrameError(ValueError):
    """Bytes that are not whole entries."""


def pack_entries(entries: Iterable[Entry]) -> bytes:
    """The entries as bytes."""
    parts: list[bytes] = []
    for entry in entries:
        parts.append(_HEADER.pack(entry.epoch, entry.position, entry.kind, len(entry.payload)))
        parts.append(entry.payload)
    return b"".join(parts)


def unpack_entries(data: bytes) -> tuple[Entry, ...]:
    """The entries that `pack_entries` wrote. Raises FrameError when `data` ends within one."""
    entries: list[Entry] = []
    offset, end = 0, len(data)
    while offset < end:
        start = offset + HEADER_BYTES
        if start > end:
            raise FrameError(f"{end - offset} bytes are left where an entry's header takes {HEADER_BYTES}")
        epoch, position, kind, length = _HEADER.unpack_from(data, offset)
        offset = start + length
        if offset > end:
            raise FrameError(f"entry {epoch}.{position} is cut off")
        entries.append(Entry(epoch, position, data[start:offset], kind))
    return tuple(entries)
