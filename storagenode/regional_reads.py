"""What a partition tells of itself to the regions of a global table: changes in order, how far a region has come,
checksums and rows of a range. Pure functions of the applied state.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from hashlib import blake2b
from itertools import islice
from typing import Final, NamedTuple

from cluster.wire import storage_pb2
from dynamo import codec
from dynamo.change import Change, Touch, decode_change
from dynamo.codec import stamp_milliseconds
from dynamo.keys import next_key, prefix_end
from dynamo.regions import OWN, region_of
from dynamo.table import Table
from storagenode.change_readers import ChangeReaders, region_fill, region_reader
from storagenode.index_commands import encode_touch
from storagenode.regional_commands import Tombstone
from storagenode.storage import layout
from storagenode.storage.store import Store

SLICE_ITEMS: Final = 128
SLICE_BYTES: Final = 512 << 10
"""A slice ends after so many items or bytes, and with the changes of its last position."""
FILL_ITEMS: Final = 128
FILL_BYTES: Final = 512 << 10
"""Items named by one entry while a region is filled; a larger item goes alone."""
DIGEST_ITEMS: Final = 512
LOOK_ROWS: Final = 1_000
"""Change rows looked at to tell how far a region is behind."""
TOMBSTONE_ROWS: Final = 1_000
"""Tombstones looked at in one go: a few milliseconds."""
TOMBSTONES_GONE: Final = 256
"""Those that one entry lets go."""
_MODULUS: Final = 1 << 128

Row = storage_pb2.RegionalRow


class Slice(NamedTuple):
    """Changes for a region, in order; everything up to `next` is there, or was before."""

    rows: list[Row]
    next: int
    more: bool


def changes_after(store: Store, table: Table, number: int, after: int) -> Slice:
    """The next changes for the region with this number: those that were made here, and what was touched for it. Raises
    CorruptItem."""
    found: list[Row] = []
    looked = size = 0
    last = after
    with closing(store.rows(layout.change_key(after + 1), layout.prefix_end(layout.CHANGE))) as rows:
        for key, value in rows:
            position, _ = layout.change_place(key)
            if (looked >= SLICE_ITEMS or size >= SLICE_BYTES) and position != last:
                return Slice(found, last, True)
            change = decode_change(value)
            if isinstance(change, Change):
                told = [_told(table, change.key, change.after, position)] if _is_own(change.after) else []
            else:
                told = list(_touched(store, table, number, change, position))
            found += told
            looked += max(1, len(told))
            size += len(value) + sum(len(row.body) for row in told)
            last = position
    return Slice(found, store.applied().position, False)


def _is_own(stored: bytes) -> bool:
    return codec.header_of(stored).origin == OWN


def _touched(store: Store, table: Table, number: int, touch: Touch, position: int) -> Iterator[Row]:
    """The items that a touch names as they are now, whoever wrote them."""
    if touch.index_table != region_fill(number):
        return
    for key in touch.keys:
        stored = store.get(key) or store.row(layout.tombstone_key(key))
        if stored is not None:
            yield _told(table, key, stored, position)


def _told(table: Table, key: bytes, stored: bytes, position: int) -> Row:
    codec.verify(key, stored)
    header = codec.header_of(stored)
    return Row(
        key=key,
        body=codec.body_of(stored),
        deleted=bool(header.flags & codec.TOMBSTONE),
        size=header.size,
        stamp=header.stamp,
        region=region_of(table, header.origin),
        position=position,
    )


def next_fill(store: Store, number: int, through: bytes) -> bytes:
    """The entry that touches what follows `through` for a region: items, then tombstones."""
    keys: list[bytes] = []
    size, last, done = 0, through, True
    start = through + b"\0" if through else layout.ITEM
    with closing(store.rows(start, layout.prefix_end(layout.TOMBSTONE))) as rows:
        for key, value in rows:
            if keys and (len(keys) >= FILL_ITEMS or size + len(value) > FILL_BYTES):
                done = False
                break
            keys.append(key[1:])
            size += len(value)
            last = key
    return encode_touch(region_fill(number), keys, last, done=done)


def has_change(store: Store, after: int, to: int) -> bool:
    """Whether there is a change row above one position and up to another."""
    with closing(store.rows(layout.change_key(after + 1), layout.change_key(to + 1))) as rows:
        return next(rows, None) is not None


def is_filled(readers: ChangeReaders, number: int, taken: int) -> bool:
    """Whether a region that has taken everything up to a position has what was there before it came."""
    fill = readers.fills.get(region_fill(number))
    return fill is not None and fill.done and taken >= fill.position


def state_of(store: Store, readers: ChangeReaders, number: int, taken: int = 0) -> storage_pb2.RegionReply:
    """How far a region has come, which has taken everything up to a position. Raises CorruptItem."""
    applied, cursor = store.applied(), max(taken, readers.positions.get(region_reader(number), 0))
    reply = storage_pb2.RegionReply(
        cursor=cursor,
        applied=applied.position,
        filled=is_filled(readers, number, cursor),
        cut_off=number in readers.cut_off,
        tombstones=_has_tombstones(store),
    )
    if region_reader(number) not in readers.positions:
        return reply
    settled = applied.stamp
    highest = 0
    with closing(store.rows(layout.change_key(cursor + 1), layout.prefix_end(layout.CHANGE))) as rows:
        for _, value in islice(rows, LOOK_ROWS):
            change = decode_change(value)
            if isinstance(change, Touch):
                reply.waiting += change.index_table == region_fill(number)
                continue
            header = codec.header_of(change.after)
            if header.origin == OWN:
                if not reply.waiting_since_ms:
                    reply.waiting_since_ms = stamp_milliseconds(header.stamp)
                    settled = header.stamp - 1
                reply.waiting += 1
            highest = max(highest, header.stamp)
        if next(rows, None) is not None:
            reply.waiting = max(reply.waiting, applied.position - cursor)
            settled = min(settled, highest)
    reply.settled = settled if reply.filled else 0
    return reply


def _has_tombstones(store: Store) -> bool:
    with closing(store.rows(layout.TOMBSTONE, layout.prefix_end(layout.TOMBSTONE))) as rows:
        return next(rows, None) is not None


def oldest_change_ms(store: Store, after: int) -> int:
    """When the first change above a position was made, or taken, milliseconds since the epoch; 0: there is none. Raises
    CorruptItem."""
    with closing(store.rows(layout.change_key(after + 1), layout.prefix_end(layout.CHANGE))) as rows:
        for _, value in rows:
            change = decode_change(value)
            if isinstance(change, Change):
                return stamp_milliseconds(change.clock)
    return 0


def old_tombstones(
    store: Store, through: bytes, stamp: int, numbers: frozenset[int] | None
) -> tuple[list[Tombstone], bytes]:
    """Tombstones up to a stamp among the next ones behind a whole key, and the key to go on behind (empty: all were
    looked at). `numbers` are the regions whose tombstones may go; None: anyone's."""
    found: list[Tombstone] = []
    start, looked, last = through + b"\0" if through else layout.TOMBSTONE, 0, b""
    with closing(store.rows(start, layout.prefix_end(layout.TOMBSTONE))) as rows:
        for key, stored in rows:
            if looked >= TOMBSTONE_ROWS or len(found) >= TOMBSTONES_GONE:
                return found, last
            header = codec.header_of(stored)
            if header.stamp <= stamp and (numbers is None or header.origin in numbers):
                found.append(Tombstone(key[1:], header.stamp))
            looked, last = looked + 1, key
    return found, b""


# --- comparing ---


def digest_of(store: Store, table: Table, request: storage_pb2.Digest) -> storage_pb2.DigestReply:
    """The sum of the hashes of the next items of a range. Raises CorruptItem."""
    total = items = 0
    after = b""
    start = next_key(request.after) if request.after else request.low
    with closing(store.scan(start, _end(request.high))) as rows:
        for key, stored in rows:
            if items >= DIGEST_ITEMS:
                break
            codec.verify(key, stored)
            total += _hash_of(table, key, stored)
            items, after = items + 1, key
        else:
            after = b""
    return storage_pb2.DigestReply(sum=(total % _MODULUS).to_bytes(16, "big"), items=items, after=after)


def _hash_of(table: Table, key: bytes, stored: bytes) -> int:
    """Of what every region has of an item: its key, what its last write is known by, and its attributes."""
    header = codec.header_of(stored)
    region = region_of(table, header.origin).encode()
    digest = blake2b(len(key).to_bytes(2, "big") + key + header.stamp.to_bytes(8, "big"), digest_size=16)
    digest.update(len(region).to_bytes(2, "big") + region)
    digest.update(codec.body_of(stored))
    return int.from_bytes(digest.digest(), "big")


def range_of(store: Store, table: Table, request: storage_pb2.ReadRange, now_ms: int) -> storage_pb2.RangeReply:
    """The next items, or tombstones, of a range. Raises CorruptItem."""
    prefix = layout.TOMBSTONE if request.tombstones else layout.ITEM
    start = next_key(request.after) if request.after else request.low
    end = _end(request.high)
    reply = storage_pb2.RangeReply(read_ms=now_ms)
    size = 0
    high = prefix + end if end else layout.prefix_end(prefix)
    with closing(store.rows(prefix + start, high)) as rows:
        for key, stored in rows:
            if len(reply.rows) >= SLICE_ITEMS or size >= SLICE_BYTES:
                reply.after = reply.rows[-1].key
                break
            reply.rows.append(_told(table, key[1:], stored, 0))
            size += len(stored)
    return reply


def _end(high: bytes) -> bytes:
    """The first row key beyond all those whose hash is at most `high`; empty: there is none."""
    return b"" if high == b"\xff" * len(high) else prefix_end(high)
