"""Frames: one flush of the node's log is one frame, a header and a body of records.

    magic 4 | header CRC u32 | segment u64 | batch u64 | body length u32 | body CRC u32

Frames start at multiples of `BLOCK`, so that no write ever touches a page that holds durable bytes: a power cut in the
middle of one cannot hurt its neighbours. Both CRCs (CRC-32) are seeded with the segment's number, so that what a
recycled segment still holds of its former life is never taken for its present. Batches are numbered without gaps
through all segments.

The body is written before the header. A process killed in mid-write therefore leaves no header (it lies within one
page, which the kernel copies in one go), and a header with a bad body is either what a power cut left of an unfinished
flush, or corruption.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final
from zlib import crc32

BLOCK: Final = 4096
MAGIC: Final = b"TzL\x01"
"""Ends in the version of the format."""

_HEADER: Final = struct.Struct("<4sIQQII")
_CHECKED: Final = struct.Struct("<QQII")
FRAME_HEADER_BYTES: Final = _HEADER.size
_CHECKED_AT: Final = FRAME_HEADER_BYTES - _CHECKED.size


@dataclass(frozen=True, slots=True)
class FrameHeader:
    """A frame's header whose own checksum was right."""

    segment: int
    batch: int
    length: int
    checksum: int

    @property
    def size(self) -> int:
        """Header and body in bytes, without the padding to the next block."""
        return FRAME_HEADER_BYTES + self.length


def seed(segment: int) -> int:
    """Where the checksums of a segment start."""
    return segment & 0xFFFFFFFF


def align(offset: int) -> int:
    """The first multiple of a block at or after `offset`."""
    return -(-offset // BLOCK) * BLOCK


def frame_header(segment: int, batch: int, body: bytes) -> bytes:
    """The header that makes `body` batch number `batch`."""
    checked = _CHECKED.pack(segment, batch, len(body), crc32(body, seed(segment)))
    return MAGIC + struct.pack("<I", crc32(checked, seed(segment))) + checked


def parse_frame_header(data: bytes, offset: int, segment: int) -> FrameHeader | None:
    """The header at `offset`, or None if there is no whole header of this segment."""
    if len(data) - offset < FRAME_HEADER_BYTES or data[offset : offset + 4] != MAGIC:
        return None
    _, checksum, owner, batch, length, body_checksum = _HEADER.unpack_from(data, offset)
    checked = memoryview(data)[offset + _CHECKED_AT : offset + FRAME_HEADER_BYTES]
    if owner != segment or crc32(checked, seed(segment)) != checksum:
        return None
    return FrameHeader(segment, batch, length, body_checksum)


def body_is_whole(data: bytes, start: int, header: FrameHeader) -> bool:
    """Whether the body that begins at `start` is all there and unharmed."""
    end = start + header.length
    return end <= len(data) and crc32(memoryview(data)[start:end], seed(header.segment)) == header.checksum
