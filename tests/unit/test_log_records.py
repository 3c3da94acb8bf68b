"""Records: what travels between nodes and lies in the log."""

from __future__ import annotations

import pytest

from replication.messages import FIRST_OF_EPOCH, Entry
from storagenode.log import frame_entries, parse_entries
from storagenode.log.records import HARD_STATE, HEADER_BYTES, frame_record

ENTRIES = (Entry(3, 7, b""), Entry(3, 8, b"payload"), Entry(4, 9, b"\x00" * 5000, FIRST_OF_EPOCH))


def test_entries_come_back_as_they_were() -> None:
    assert parse_entries(frame_entries(12, ENTRIES), 12) == ENTRIES
    assert parse_entries(b"") == ()


def test_framing_is_a_concatenation() -> None:
    assert frame_entries(12, ENTRIES) == b"".join(frame_entries(12, (entry,)) for entry in ENTRIES)


def test_a_header_is_little_endian_and_32_bytes_long() -> None:
    framed = frame_entries(0x0102, (Entry(3, 4, b"xy", 2),))
    assert framed == bytes.fromhex("02000000 01 02 0000 0201000000000000 0300000000000000 0400000000000000") + b"xy"


def test_bytes_cut_anywhere_but_between_records_are_refused() -> None:
    framed = frame_entries(1, ENTRIES[:2])
    whole = {0, HEADER_BYTES, len(framed)}
    for cut in range(len(framed)):
        if cut not in whole:
            with pytest.raises(ValueError, match=r"record|entries"):
                parse_entries(framed[:cut])


def test_entries_of_another_partition_are_refused() -> None:
    with pytest.raises(ValueError, match="partition"):
        parse_entries(frame_entries(1, ENTRIES), 2)


def test_other_records_are_no_entries() -> None:
    with pytest.raises(ValueError, match="entries"):
        parse_entries(frame_record(HARD_STATE, 1, 2, 3))
