"""Which operations a partition has done lately, so that a retried write happens once.

Two generations of 90 s of the partition's own clock (the stamps of its entries): an id is remembered for at least one
and at most two. Generations begin at whole multiples of 90 s, so that replicas, restarts and snapshots agree on them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

GENERATION_MS: Final = 90_000
IDS_PER_GENERATION_MAX: Final = 2_000_000
"""22,000 writes a second. Beyond it a generation ends early: memory is bounded, remembering is not promised."""

_BUCKET_BITS: Final = 14
_BUCKET_MASK: Final = (1 << _BUCKET_BITS) - 1
_SLOT: Final = struct.Struct("<QI")
_SLOT_BYTES: Final = _SLOT.size
_ID: Final = struct.Struct("<Q")

_pack = _SLOT.pack


class _Generation:
    """Ids in buckets by their low bits, each with its position's distance from the generation's first.

    That is 12 bytes for each, where a dict of integers would take 170.
    """

    __slots__ = ("buckets", "count", "first_position", "number")

    def __init__(self, number: int, first_position: int) -> None:
        self.number = number
        self.first_position = first_position
        self.count = 0
        self.buckets: dict[int, bytearray] = {}

    def find(self, operation_id: int) -> int | None:
        bucket = self.buckets.get(operation_id & _BUCKET_MASK)
        if bucket is None:
            return None
        wanted = _ID.pack(operation_id)
        at = bucket.find(wanted)
        while at >= 0:
            if at % _SLOT_BYTES == 0:
                distance: int = _SLOT.unpack_from(bucket, at)[1]
                return self.first_position + distance
            at = bucket.find(wanted, at + 1)
        return None


class OperationIds:
    """Operation id → position of its entry. Ids are 64-bit and evenly spread; 0 stands for none and is not kept."""

    __slots__ = ("_current", "_generation_ends_ms", "_older")

    def __init__(self) -> None:
        self._older = _Generation(-1, 0)
        self._current = _Generation(-1, 0)
        self._generation_ends_ms = 0

    def __len__(self) -> int:
        return self._older.count + self._current.count

    def add(self, operation_id: int, position: int, stamp_ms: int) -> None:
        """The entry at `position`, stamped `stamp_ms`, did this operation. Positions and stamps rise."""
        if stamp_ms >= self._generation_ends_ms or self._current.count >= IDS_PER_GENERATION_MAX:
            self._begin(stamp_ms, position)
        if not operation_id:
            return
        current = self._current
        slot = _pack(operation_id, position - current.first_position)
        low_bits = operation_id & _BUCKET_MASK
        bucket = current.buckets.get(low_bits)
        if bucket is None:
            current.buckets[low_bits] = bytearray(slot)
        else:
            bucket += slot
        current.count += 1

    def add_all(self, first_position: int, stamp_ms: int, ids: Iterable[int]) -> None:
        """Ids of consecutive positions, as a store keeps them."""
        for position, operation_id in enumerate(ids, first_position):
            self.add(operation_id, position, stamp_ms)

    def find(self, operation_id: int) -> int | None:
        """The position of the entry that did this operation, if that is remembered."""
        found = self._current.find(operation_id)
        return self._older.find(operation_id) if found is None else found

    @property
    def first_position(self) -> int:
        """Ids of entries before this position are forgotten: a store may drop their rows."""
        return self._older.first_position

    def _begin(self, stamp_ms: int, position: int) -> None:
        """A new generation at `position`; the one before it stays as the older one if it is the one before in time."""
        number = stamp_ms // GENERATION_MS
        previous = self._current
        self._current = _Generation(number, position)
        self._generation_ends_ms = (number + 1) * GENERATION_MS
        self._older = previous if number - previous.number <= 1 else _Generation(number - 1, position)
