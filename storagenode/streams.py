"""Records of a table's stream, read from the change rows of one partition.

A record is one change row: its place is the row's, position and number among the changes of that entry, and so is the
same whoever leads. Changes that change nothing have no record.
"""

from __future__ import annotations

from contextlib import closing
from itertools import islice
from typing import Final

from cluster.wire import storage_pb2
from dynamo import codec
from dynamo.change import Change, Touch, decode_change
from dynamo.codec import stamp_milliseconds
from dynamo.item import item_size
from dynamo.keys import key_of
from dynamo.table import Stream, Table
from dynamo.values import dump, load
from storagenode.storage import layout
from storagenode.storage.store import Store
from storagenode.stream_ranges import StreamRange, StreamRanges

SLICE_ROWS: Final = 64
"""Change rows read in one go: a few milliseconds."""

_OLD: Final = ("OLD_IMAGE", "NEW_AND_OLD_IMAGES")
_NEW: Final = ("NEW_IMAGE", "NEW_AND_OLD_IMAGES")

Record = storage_pb2.StreamRecord


def begin(store: Store, request: storage_pb2.ReadStream, table: Table, ranges: StreamRanges) -> storage_pb2.StreamReply:
    """The stream's bounds, and where reading begins. Raises CorruptItem."""
    applied = store.applied().position
    known = ranges.get(request.label)
    if known is None or stream_of(table, request.label) is None:
        return storage_pb2.StreamReply(applied=applied, next_position=applied + 1)
    reply = storage_pb2.StreamReply(
        known=True, first=known.first, end=known.end, trimmed=known.trimmed, applied=applied
    )
    low, high = known.trimmed + 1, known.end or applied + 1
    if request.since_ms:
        reply.next_position = place_of_time(store, low, high, request.since_ms)
    elif request.position < low:
        reply.next_position = low
    else:
        reply.next_position, reply.next_number = request.position, request.number
    return reply


def read_slice(
    store: Store,
    request: storage_pb2.ReadStream,
    table: Table,
    ranges: StreamRanges,
    reply: storage_pb2.StreamReply,
) -> bool:
    """Add some more records to what `begin` gave; whether that is all. Raises CorruptItem."""
    known, stream = ranges.get(request.label), stream_of(table, request.label)
    if not request.limit or request.since_ms or known is None or stream is None:
        return True
    high = known.end or store.applied().position + 1
    if (start := layout.change_key(reply.next_position, reply.next_number)) >= layout.change_key(high):
        return True
    size = sum(_size(record) for record in reply.records)
    with closing(store.rows(start, layout.change_key(high))) as rows:
        for key, row in islice(rows, SLICE_ROWS):
            position, number = layout.change_place(key)
            change = decode_change(row)
            if isinstance(change, Change) and (record := _record(position, number, change, table, stream)) is not None:
                size += _size(record)
                if reply.records and size > request.max_bytes:
                    return True
                reply.records.append(record)
            reply.next_position, reply.next_number = position, number + 1
            if len(reply.records) >= request.limit or size >= request.max_bytes:
                return True
        if next(rows, None) is not None:
            return False
    reply.next_position, reply.next_number = high, 0
    return True


def place_of_time(store: Store, low: int, high: int, time_ms: int) -> int:
    """The first position from `low` that no change before `time_ms` stands at or above; at the most `high`.

    Found by halving: stamps rise with positions. If a change stands below it, one stands right before it. Raises
    CorruptItem.
    """
    while low < high:
        middle = (low + high) // 2
        found = _first_change(store, middle, high)
        if found is None or found[1] >= time_ms:
            high = middle
        else:
            low = found[0] + 1
    return low


def trimmed_before(store: Store, known: StreamRange, time_ms: int) -> int:
    """Up to where a stream can be trimmed of what was written before `time_ms`; 0: there is nothing to trim.

    Raises CorruptItem.
    """
    low, high = known.trimmed + 1, known.end or store.applied().position + 1
    place = place_of_time(store, low, high, time_ms)
    if known.end and _first_change(store, place, known.end) is None:
        return known.end
    return place - 1 if place > low else 0


def stream_of(table: Table, label: str) -> Stream | None:
    """The table's stream of this label."""
    return next((stream for stream in table.streams if stream.label == label), None)


def _first_change(store: Store, low: int, high: int) -> tuple[int, int] | None:
    """Position and time, in milliseconds, of the first change in this range."""
    with closing(store.rows(layout.change_key(low), layout.change_key(high))) as rows:
        for key, row in rows:
            change = decode_change(row)
            if not isinstance(change, Touch):
                return layout.change_place(key)[0], stamp_milliseconds(change.clock)
    return None


def _record(position: int, number: int, change: Change, table: Table, stream: Stream) -> Record | None:
    header = codec.header_of(change.after)
    old = codec.body_of(change.before) if change.before else b""
    new = codec.body_of(change.after)
    if old == new:  # canonical: equal items have equal bytes
        return None
    keys = key_of(table, load(new or old))
    shows_old, shows_new = bool(old) and stream.view in _OLD, bool(new) and stream.view in _NEW
    return Record(
        position=position,
        number=number,
        event=Record.REMOVE if not new else Record.MODIFY if old else Record.INSERT,
        keys=dump(keys),
        old_image=old if shows_old else b"",
        new_image=new if shows_new else b"",
        time_ms=stamp_milliseconds(change.clock),
        by_service=bool(header.flags & codec.WRITTEN_BY_SERVICE),
        size=item_size(keys) + shows_new * header.size + (codec.size_of(change.before) if shows_old else 0),
    )


def _size(record: Record) -> int:
    return len(record.keys) + len(record.old_image) + len(record.new_image)
