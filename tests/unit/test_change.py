"""Change rows: what is written is read back, and nothing that was damaged passes."""

from __future__ import annotations

import pytest

from dynamo.change import Change, Touch, decode_change, encode_change, encode_touch
from dynamo.codec import CorruptItem

ROWS = [
    (encode_change(b"key", b"before", b"after"), Change(b"key", b"before", b"after")),
    (encode_change(b"k" * 1_040, b"", b"x" * 100_000), Change(b"k" * 1_040, b"", b"x" * 100_000)),
    (encode_change(b"", b"b", b""), Change(b"", b"b", b"")),
    (encode_change(b"key", b"before", b"after", 1 << 63), Change(b"key", b"before", b"after", 1 << 63)),
    (encode_touch(1 << 63, [b"a", b"", b"c" * 300]), Touch(1 << 63, (b"a", b"", b"c" * 300))),
    (encode_touch(7, []), Touch(7, ())),
]


@pytest.mark.parametrize(("row", "meant"), ROWS)
def test_a_row_comes_back(row: bytes, meant: Change | Touch) -> None:
    assert decode_change(row) == meant


@pytest.mark.parametrize("row", [row for row, _ in ROWS if len(row) < 1_000])
def test_a_flipped_bit_and_a_cut_are_found(row: bytes) -> None:
    for at in range(len(row)):
        with pytest.raises(CorruptItem):
            decode_change(row[:at] + bytes((row[at] ^ 0x10,)) + row[at + 1 :])
        with pytest.raises(CorruptItem):
            decode_change(row[:at])


def test_a_row_of_another_version_is_not_guessed_at() -> None:
    from zlib import crc32

    body = b"\x02\x01rest"
    with pytest.raises(CorruptItem, match="version 2"):
        decode_change(crc32(body).to_bytes(4, "little") + body)
