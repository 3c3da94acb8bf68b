"""What a snapshot's manifest says of its data. Without a whole manifest there is no snapshot.

    magic 4 | CRC-32 u32 of the rest | partition u64 | replica u64 | position u64 | epoch u64 | membership version u64 |
    data bytes u64 | chunk bytes u32 | membership bytes u32 | membership | CRC-32 u32 of each chunk

Integers are little-endian. The replica is the one whose store was copied; a snapshot that was fetched from another node
keeps its name there. The data is the store's own compact form: of LMDB, the file of an environment. Items, operation
ids, schema and everything else that apply keeps are rows in it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final
from zlib import crc32

MAGIC: Final = b"TzS\x01"
"""Ends in the version of the format."""
CHUNK_BYTES: Final = 256 << 10
"""What is written, checked, read and sent in one go: the event loop is held up for a fraction of a millisecond."""

_CHECKSUM: Final = struct.Struct("<I")
_FIXED: Final = struct.Struct("<QQQQQQII")


@dataclass(frozen=True, slots=True)
class Manifest:
    """A snapshot of `replica` that covers the log up to `position`, whose entry is of `epoch`."""

    partition: int
    replica: int
    position: int
    epoch: int
    membership_version: int
    membership: bytes
    size: int
    checksums: tuple[int, ...]
    chunk_bytes: int = CHUNK_BYTES

    @property
    def chunks(self) -> int:
        """How many chunks the data has; all but the last are of `chunk_bytes`."""
        return len(self.checksums)

    def chunk_size(self, number: int) -> int:
        """The length of a chunk."""
        return min(self.chunk_bytes, self.size - number * self.chunk_bytes)

    def is_chunk(self, number: int, data: bytes) -> bool:
        """Whether this is the chunk of this number, unharmed."""
        return len(data) == self.chunk_size(number) and crc32(data) == self.checksums[number]


def encode_manifest(manifest: Manifest) -> bytes:
    """The manifest's bytes."""
    fixed = _FIXED.pack(
        manifest.partition,
        manifest.replica,
        manifest.position,
        manifest.epoch,
        manifest.membership_version,
        manifest.size,
        manifest.chunk_bytes,
        len(manifest.membership),
    )
    rest = fixed + manifest.membership + struct.pack(f"<{len(manifest.checksums)}I", *manifest.checksums)
    return MAGIC + _CHECKSUM.pack(crc32(rest)) + rest


def decode_manifest(data: bytes) -> Manifest | None:
    """The inverse; None if it is not whole, or of a format that is not known."""
    start = len(MAGIC) + _CHECKSUM.size
    rest = data[start:]
    if len(rest) < _FIXED.size or not data.startswith(MAGIC):
        return None
    if _CHECKSUM.unpack_from(data, len(MAGIC))[0] != crc32(rest):
        return None
    partition, replica, position, epoch, version, size, chunk_bytes, membership_bytes = _FIXED.unpack_from(rest)
    at = _FIXED.size + membership_bytes
    chunks = -(-size // chunk_bytes) if chunk_bytes else 0
    if len(rest) != at + 4 * chunks:
        return None
    checksums = struct.unpack_from(f"<{chunks}I", rest, at)
    membership = rest[_FIXED.size : at]
    return Manifest(partition, replica, position, epoch, version, membership, size, checksums, chunk_bytes)
