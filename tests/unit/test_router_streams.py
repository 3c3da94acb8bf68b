"""Names of streams, and enabling them, by the clock."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo.errors import ApiError
from dynamo.table import Stream
from router.stream_definitions import RETENTION_SECONDS, changed_streams, is_readable, new_stream
from router.streams import (
    ITERATOR_SECONDS,
    Place,
    ShardIterator,
    check_age,
    decode_iterator,
    encode_iterator,
    place_of,
    sequence_number,
)
from tests.unit.partition_samples import TABLE

LABEL = "2027-01-15T08:00:00.000"
ARN = f"arn:aws:dynamodb:us-east-1:000000000000:table/shop/stream/{LABEL}"
ON: dict[str, Any] = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
OFF: dict[str, Any] = {"StreamEnabled": False}
NOW = 1_800_000_000.0

ONE = ShardIterator(7, LABEL, 9, Place(11, 1), 1_000)
TEXT = encode_iterator(ONE, ARN)

U64 = st.integers(0, 2**64 - 1)
places = st.builds(Place, U64, st.integers(0, 2**16 - 1))


@given(places, places)
def test_sequence_numbers_are_in_the_order_of_records(a: Place, b: Place) -> None:
    first, second = sequence_number(a), sequence_number(b)
    assert 21 <= len(first) <= 40
    assert (int(first) < int(second), first < second) == (a < b, a < b)
    assert place_of(first) == a


@pytest.mark.parametrize("text", ["", "1" * 25, "2" + "0" * 25, "1" + "x" * 25, "1" * 40])
def test_what_is_no_sequence_number(text: str) -> None:
    assert place_of(text) is None


@given(U64, U64, places, U64)
def test_iterators_read_back(table: int, partition: int, place: Place, issued_ms: int) -> None:
    iterator = ShardIterator(table, LABEL, partition, place, issued_ms)
    text = encode_iterator(iterator, ARN)
    assert decode_iterator(text) == (ARN, iterator)
    assert len(text) <= 2048


@given(st.text(max_size=200).filter(lambda text: text != TEXT) | st.integers(0, len(TEXT) - 1).map(lambda n: TEXT[:n]))
def test_what_is_no_iterator_is_refused(text: str) -> None:
    with pytest.raises(ApiError, match="Invalid ShardIterator"):
        decode_iterator(text)


@pytest.mark.parametrize(("old", "new"), [("|1|", "||"), ("us-east-1", "us-west-2"), ("|AQAAAA", "|AQAAAB")])
def test_an_iterator_that_was_changed_is_refused(old: str, new: str) -> None:
    assert old in TEXT
    with pytest.raises(ApiError, match="Invalid ShardIterator"):
        decode_iterator(TEXT.replace(old, new))


def test_iterators_expire() -> None:
    check_age(ONE, 1.0 + ITERATOR_SECONDS)
    with pytest.raises(ApiError) as caught:
        check_age(ONE, 1.001 + ITERATOR_SECONDS)
    assert caught.value.type == "ExpiredIteratorException"


def test_streams_come_and_go() -> None:
    stream = new_stream(ON, NOW)
    assert stream == Stream(LABEL, "NEW_IMAGE", NOW)
    table = msgspec.structs.replace(TABLE, streams=(stream,))
    (gone,) = changed_streams(table, OFF, NOW + 5)
    assert gone == Stream(LABEL, "NEW_IMAGE", NOW, NOW + 5)
    table = msgspec.structs.replace(TABLE, streams=(gone,))
    assert table.stream is None
    both = changed_streams(table, ON, NOW + 6)
    assert [stream.label for stream in both] == [LABEL, "2027-01-15T08:00:06.000"]
    assert msgspec.structs.replace(TABLE, streams=both).stream == both[1]
    assert [stream.label for stream in changed_streams(table, ON, NOW)] == [LABEL, "2027-01-15T08:00:00.001"]


def test_a_stream_can_be_read_for_a_day_after_its_end() -> None:
    gone = Stream(LABEL, "NEW_IMAGE", NOW, NOW + 5)
    assert is_readable(gone, NOW + 4 + RETENTION_SECONDS)
    assert not is_readable(gone, NOW + 5 + RETENTION_SECONDS)
    table = msgspec.structs.replace(TABLE, streams=(gone,))
    assert len(changed_streams(table, ON, NOW + 5 + RETENTION_SECONDS)) == 1
