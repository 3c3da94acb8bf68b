"""What a full segment did to the index, in a small file beside it, so that a start need not read the segment.

Locations rise with positions, and an entry replaces all after it: so a segment's part of a partition is one run of
positions at the end, and everything else is the state that the segment ended with. A summary is derived and never
synced; one that is missing or damaged costs a reading of the segment. Integers are in the machine's own byte order.

    magic u32 | CRC-32 u32 of the rest | segment u64 | next batch u64 | incarnation u64 | frames u32 | partitions u32
    frames: block numbers u32
    partitions: `_PARTITION`, memberships (u64 position, u32 length, bytes), spans of epochs (u64 epoch, u64 first
    position), locations u64
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from typing import Final
from zlib import crc32

from replication.effects import HardState
from storagenode.log.index import Index, LocalReplica, Positions, location

_MAGIC: Final = 0x025A6C54
"""The first byte of the number is the format's version."""
_START: Final = struct.Struct("=II")
_HEADER: Final = struct.Struct("=QQQII")
_PARTITION: Final = struct.Struct("=QQQQQQQQQII")
"""partition, replica, epoch, vote, snapshot epoch and position, first position, first position in this segment, number
of entries, of memberships, of spans."""
_MEMBERSHIP: Final = struct.Struct("=QI")
_SPAN: Final = struct.Struct("=QQ")


def encode_summary(index: Index, segment: int, frames: array[int], next_batch: int) -> bytes:
    """The summary of a segment that is full, whose frames the index has all taken in, and nothing after them."""
    header = _HEADER.pack(segment, next_batch, index.incarnation, len(frames), len(index.replicas))
    parts = [header, frames.tobytes()]
    for partition, replica in index.replicas.items():
        parts += _encode_partition(partition, replica, segment)
    rest = b"".join(parts)
    return _START.pack(_MAGIC, crc32(rest)) + rest


def take_in_summary(data: bytes, segment: int, index: Index) -> tuple[array[int], int] | None:
    """Bring the index from the segment's start to its end; returns its frames' blocks and the next batch's number.

    None, and an index left as it was, if `data` is not a whole summary of this segment.
    """
    if len(data) < _START.size + _HEADER.size:
        return None
    magic, checksum = _START.unpack_from(data)
    if magic != _MAGIC or crc32(memoryview(data)[_START.size :]) != checksum:
        return None
    owner, next_batch, incarnation, frame_count, partitions = _HEADER.unpack_from(data, _START.size)
    if owner != segment:
        return None
    offset = _START.size + _HEADER.size
    frames = array("I", data[offset : offset + 4 * frame_count])
    offset += 4 * frame_count
    replicas: dict[int, LocalReplica] = {}
    for _ in range(partitions):
        partition, replica, offset = _decode_partition(data, offset, index)
        replicas[partition] = replica
    index.incarnation = incarnation
    index.replicas = replicas
    return frames, next_batch


def _encode_partition(partition: int, replica: LocalReplica, segment: int) -> list[bytes]:
    positions = replica.positions
    at = bisect_left(positions.locations, location(segment, 0))
    first_here = positions.first + at
    spans = positions.epochs_from(first_here)
    header = _PARTITION.pack(
        partition,
        replica.replica,
        replica.hard_state.epoch,
        replica.hard_state.vote,
        replica.snapshot_epoch,
        replica.snapshot_position,
        positions.first,
        first_here,
        len(positions.locations) - at,
        len(positions.memberships),
        len(spans),
    )
    memberships = [_MEMBERSHIP.pack(position, len(data)) + data for position, data in positions.memberships]
    return [header, *memberships, *(_SPAN.pack(*span) for span in spans), positions.locations[at:].tobytes()]


def _decode_partition(data: bytes, offset: int, index: Index) -> tuple[int, LocalReplica, int]:
    """A partition's state after the segment, built on its positions before; and where the next one begins."""
    fields = _PARTITION.unpack_from(data, offset)
    partition, replica_id, epoch, vote, snapshot_epoch, snapshot_position = fields[:6]
    first, first_here, count, membership_count, span_count = fields[6:]
    offset += _PARTITION.size
    memberships = []
    for _ in range(membership_count):
        position, length = _MEMBERSHIP.unpack_from(data, offset)
        offset += _MEMBERSHIP.size + length
        memberships.append((position, data[offset - length : offset]))
    spans = [_SPAN.unpack_from(data, offset + n * _SPAN.size) for n in range(span_count)]
    offset += span_count * _SPAN.size
    locations = array("Q", data[offset : offset + 8 * count])
    offset += 8 * count
    before = index.replicas.get(partition)
    positions = before.positions if before is not None and before.replica == replica_id else Positions()
    if first_here == first or not positions.locations:
        positions.restart(first_here)
    positions.replace(first_here, locations, [(epoch, position) for epoch, position in spans])
    positions.memberships = memberships
    state = LocalReplica(replica_id, HardState(epoch, vote), snapshot_epoch, snapshot_position, positions)
    return partition, state, offset
