"""Pages of Query and Scan: what one holds, where it begins, and how the answer is made of nodes' replies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster.wire import storage_pb2
from dynamo.capacity import READ_UNIT_SIZE, read_units
from dynamo.errors import ApiError, validation
from dynamo.keys import HASH_SIZE, prefix_end
from dynamo.values import Item, canonical_item
from router.consumed import body_of, consumed_member
from router.read_target import ReadTarget, invalid_start

PAGE_BYTES_MAX = 1 << 20
"""DynamoDB's bytes of all rows evaluated for one answer: 1 MB."""

HASHES = 1 << 8 * HASH_SIZE
LAST_HASH = b"\xff" * HASH_SIZE


class Page:
    """An answer as it grows, reply by reply. `limit` is the request's Limit, 0 for none."""

    def __init__(self, limit: int) -> None:
        self.limit_left = limit
        self._limited = limit > 0
        self.bytes_left = PAGE_BYTES_MAX
        self._items: list[bytes] = []
        self._count = 0
        self._scanned_count = 0
        self._size = 0
        self._fetched_units = 0
        self._last_key_attributes = b""

    def add(self, reply: storage_pb2.QueryReply) -> bool:
        """Take a partition's rows in. True when the answer ends there, because there is no room for more."""
        if reply.items:
            self._items.append(reply.items)
        self._count += reply.count
        self._scanned_count += reply.scanned_count
        self._size += reply.size
        self._fetched_units += reply.fetched_units
        read = self._size + self._fetched_units * READ_UNIT_SIZE
        self.bytes_left = max(1, PAGE_BYTES_MAX - read)  # the next partition gives at least one row
        self._last_key_attributes = reply.last_key_attributes
        if self._limited:
            self.limit_left -= reply.scanned_count
            if self.limit_left <= 0:
                return True
        return bool(reply.last_key)

    @property
    def items(self) -> list[bytes]:
        """The items as JSON, some of each reply together, separated by commas."""
        return self._items

    @property
    def last_key_attributes(self) -> bytes:
        """The key of the last row as JSON, if more rows may follow where the last reply came from; else empty."""
        return self._last_key_attributes

    def body(self, request: Mapping[str, Any], target: ReadTarget) -> bytes:
        """The answer's body."""
        last = self._last_key_attributes
        counted = request.get("Select") == "COUNT"
        return body_of(
            b',"Count":%d' % self._count,
            b"" if counted else b',"Items":[%b]' % b",".join(self._items),
            b',"ScannedCount":%d' % self._scanned_count,
            b',"LastEvaluatedKey":' + last if last else b"",
            self.consumed(request, target),
        )

    def consumed(self, request: Mapping[str, Any], target: ReadTarget) -> bytes:
        """`,"ConsumedCapacity":{…}` where the request asks for it."""
        detail = request.get("ReturnConsumedCapacity")
        if detail is None:
            return b""
        consistent = request.get("ConsistentRead", False)
        units = read_units(self._size, consistent)
        if target.index is None:
            return consumed_member(target.table, units, detail)
        if target.local_index:
            fetched = self._fetched_units * (1.0 if consistent else 0.5)
            return consumed_member(target.table, fetched, detail, local_indexes={target.index.name: units})
        return consumed_member(target.table, 0.0, detail, global_indexes={target.index.name: units})


# --- where a page begins ---


def canonical_start_key(request: Mapping[str, Any]) -> Item | None:
    """ExclusiveStartKey in canonical form, not yet checked against a table. Raises ApiError."""
    raw = request.get("ExclusiveStartKey")
    if raw is None:
        return None
    try:
        return canonical_item(raw)
    except ApiError as error:
        raise invalid_start(error) from None


# --- segments ---


def segment_of(request: Mapping[str, Any]) -> tuple[int, int]:
    """(Segment, TotalSegments) of a Scan, (0, 1) for one that is not parallel. Raises ValidationException."""
    segment, total = request.get("Segment"), request.get("TotalSegments")
    if segment is None and total is None:
        return 0, 1
    if total is None:
        raise validation(
            "The TotalSegments parameter is required but was not present in the request "
            "when Segment parameter is present"
        )
    if segment is None:
        raise validation(
            "The Segment parameter is required but was not present in the request "
            "when parameter TotalSegments is present"
        )
    if segment >= total:
        raise validation(
            "The Segment parameter is zero-based and must be less than parameter TotalSegments: "
            f"Segment: {segment} is not less than TotalSegments: {total}"
        )
    return segment, total


def segment_hashes(segment: int, total: int) -> tuple[bytes, bytes]:
    """The first and last hash of a segment: the space of hashes cut into equal ranges."""
    low, end = segment * HASHES // total, (segment + 1) * HASHES // total
    return low.to_bytes(HASH_SIZE, "big"), (end - 1).to_bytes(HASH_SIZE, "big")


def check_start_in_segment(row: bytes, segment: int, total: int) -> None:
    """Raises ValidationException for a start key of another segment."""
    low, high = segment_hashes(segment, total)
    if not low <= row[:HASH_SIZE] <= high:
        raise validation(
            "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use ExclusiveStartKey "
            f"with correct Segment. TotalSegments: {total} Segment: {segment}"
        )


def after_hash(hash_: bytes) -> bytes:
    """The hash that follows; `hash_` is not the last one."""
    return (int.from_bytes(hash_, "big") + 1).to_bytes(HASH_SIZE, "big")


def end_of_hash(hash_: bytes) -> bytes:
    """The row key above all rows of this and lower hashes."""
    return prefix_end(hash_)
