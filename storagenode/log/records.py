"""Records: what a batch of the node's log is made of.

A record is a header of 32 bytes, little-endian, and a payload:

    length u32 | type u8 | entry kind u8 | 0 u16 | partition u64 | a u64 | b u64 | payload

| type             | a          | b        | payload            |
| ENTRY            | epoch      | position | the entry's bytes  |
| HARD_STATE       | epoch      | vote     |                    |
| MEMBERSHIP       | replica    | version  | as below, at 0     |
| PARTITION_OPENED | replica    | 0        |                    |
| PARTITION_DROPPED| replica    | 0        |                    |
| SNAPSHOT         | epoch      | position |                    |
| INCARNATION      | number     | 0        |  (partition is 0)  |
| RESTARTED        | epoch      | position |                    |
| MEMBERSHIP_AT    | replica    | position | opaque to the log  |

MEMBERSHIP_AT: in force after that position, 0 for what the partition began with; whatever the log held from there on is
void. An entry of the kind "membership" is one too, at its own position. MEMBERSHIP is how it was written before members
could change.

SNAPSHOT: a durable snapshot of this node's covers the log up to there. RESTARTED: one was brought from another node,
and what the log held was not the log that it is of: the log begins anew after that position.

A sequence of ENTRY records is also how entries travel between nodes (`Append.entries`), so that a follower can put the
bytes that it received into its log as they are. Checksums are the business of what carries records: a batch of the log
(`frames.py`), or the connection. A number here never changes its meaning.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from replication.messages import Entry

ENTRY: Final = 1
HARD_STATE: Final = 2
MEMBERSHIP: Final = 3
PARTITION_OPENED: Final = 4
PARTITION_DROPPED: Final = 5
SNAPSHOT: Final = 6
INCARNATION: Final = 7
RESTARTED: Final = 8
MEMBERSHIP_AT: Final = 9

HEADER: Final = struct.Struct("<IBBHQQQ")
HEADER_BYTES: Final = HEADER.size

_pack = HEADER.pack
_unpack_from = HEADER.unpack_from


def frame_record(record_type: int, partition: int, a: int, b: int, payload: bytes = b"") -> bytes:
    """One record of any type but ENTRY; `a` and `b` as in the table above."""
    return _pack(len(payload), record_type, 0, 0, partition, a, b) + payload


def frame_entries(partition: int, entries: Sequence[Entry]) -> bytes:
    """Entries of one partition as a sequence of ENTRY records, for the log and for the wire."""
    parts: list[bytes] = []
    add = parts.append
    for entry in entries:
        payload = entry.payload
        add(_pack(len(payload), ENTRY, entry.kind, 0, partition, entry.epoch, entry.position))
        add(payload)
    return b"".join(parts)


def parse_entries(data: bytes, partition: int | None = None) -> tuple[Entry, ...]:
    """The entries framed in `data`. Raises ValueError unless it is whole ENTRY records, of `partition` if given."""
    entries: list[Entry] = []
    add = entries.append
    offset, end = 0, len(data)
    try:
        while offset < end:
            length, record_type, kind, zero, owner, epoch, position = _unpack_from(data, offset)
            start = offset + HEADER_BYTES
            offset = start + length
            if record_type != ENTRY or offset > end or zero or (partition is not None and owner != partition):
                raise ValueError("not a sequence of entries of the partition")
            add(Entry(epoch, position, data[start:offset], kind))
    except struct.error as error:
        raise ValueError("a record is cut short") from error
    return tuple(entries)
