"""Stored items: their layout, and that no flipped bit goes unseen."""

import pytest

from dynamo import codec

HEADER = codec.ItemHeader(
    flags=codec.WRITTEN_BY_SERVICE, origin=3, size=409_600, stamp=codec.make_stamp(2**48 - 1, 7), position=2**63
)
KEY = b"\x00hash and sort key\xff"
BODY = b'{"pk":{"S":"a"}}'


def test_layout_of_version_1() -> None:
    stored = codec.encode(b"k", b"{}", codec.ItemHeader(flags=1, origin=2, size=3, stamp=4, position=5))
    fields = bytes.fromhex("01 01 0200 03000000 0400000000000000 0500000000000000")
    assert stored[:24] == fields
    assert len(stored) == codec.HEADER_SIZE + 2
    assert stored[codec.HEADER_SIZE :] == b"{}"


def test_header_and_body_come_back() -> None:
    stored = codec.encode(KEY, BODY, HEADER)
    for data in (stored, memoryview(stored)):
        assert codec.header_of(data) == HEADER
        assert codec.body_of(data) == BODY
        codec.verify(KEY, data)


def test_a_tombstone_has_no_body() -> None:
    stored = codec.encode(KEY, b"", HEADER._replace(flags=codec.TOMBSTONE, size=0))
    codec.verify(KEY, stored)
    assert codec.body_of(stored) == b""
    assert codec.header_of(stored).flags & codec.TOMBSTONE


def test_every_flipped_bit_is_found() -> None:
    stored = codec.encode(KEY, BODY, HEADER)
    for bit in range(8 * len(stored)):
        damaged = bytearray(stored)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(codec.CorruptItem):
            codec.verify(KEY, bytes(damaged))


def test_an_item_at_another_key_is_found() -> None:
    with pytest.raises(codec.CorruptItem):
        codec.verify(KEY + b"x", codec.encode(KEY, BODY, HEADER))


def test_bytes_moved_between_key_and_body_are_found() -> None:
    with pytest.raises(codec.CorruptItem):
        codec.verify(KEY + BODY[:1], codec.encode(KEY, BODY, HEADER)[: codec.HEADER_SIZE] + BODY[1:])


@pytest.mark.parametrize("size", range(codec.HEADER_SIZE))
def test_a_cut_header_is_corrupt(size: int) -> None:
    stored = codec.encode(KEY, BODY, HEADER)[:size]
    with pytest.raises(codec.CorruptItem):
        codec.header_of(stored)
    with pytest.raises(codec.CorruptItem):
        codec.verify(KEY, stored)


def test_a_format_of_the_future_is_not_guessed_at() -> None:
    stored = bytes((codec.VERSION + 1,)) + codec.encode(KEY, BODY, HEADER)[1:]
    with pytest.raises(codec.CorruptItem, match="version 2"):
        codec.header_of(stored)


def test_stamps_order_by_time_then_counter() -> None:
    assert codec.make_stamp(1000, 0xFFFF) < codec.make_stamp(1001, 0)
    assert codec.stamp_milliseconds(codec.make_stamp(1234, 0xFFFF)) == 1234
    assert codec.make_stamp(2**48 - 1, 0xFFFF) == 2**64 - 1
