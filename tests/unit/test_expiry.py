"""When items expire."""

from __future__ import annotations

import pytest

from dynamo.expiry import PAST_SECONDS_MAX, expires_at, is_expired, needle_of
from dynamo.values import Item, dump


def time_of(item: Item, attribute: str = "ttl") -> int | None:
    return expires_at(dump(item), attribute, needle_of(attribute))


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("1700000000", 1_700_000_000),
        ("1700000000.9", 1_700_000_000),
        ("17E8", 1_700_000_000),
        ("0", None),
        ("-1700000000", None),
        ("0.5", None),
        ("9223372036854775807", 9_223_372_036_854_775_807),
        ("9223372036854775808", None),
        ("1E125", None),
    ],
)
def test_numbers_are_seconds(text: str, time: int | None) -> None:
    assert time_of({"pk": {"S": "a"}, "ttl": {"N": text}}) == time


@pytest.mark.parametrize(
    "item",
    [
        {"ttl": {"S": "1700000000"}},
        {"ttl": {"L": [{"N": "1700000000"}]}},
        {"m": {"M": {"ttl": {"N": "1700000000"}}}},
        {"x": {"S": "ttl"}},
        {},
    ],
)
def test_what_never_expires(item: Item) -> None:
    """Case 138."""
    assert time_of(item) is None


@pytest.mark.parametrize("attribute", ['quo"ted', "back\\slash", "größe", "new\nline"])
def test_any_name_will_do(attribute: str) -> None:
    assert time_of({attribute: {"N": "5"}}, attribute) == 5


def test_a_table_without_time_to_live_has_no_times() -> None:
    assert time_of({"ttl": {"N": "5"}}, "") is None


def test_expired_is_past_but_not_five_years() -> None:
    now = 2_000_000_000
    assert [is_expired(now + offset, now) for offset in (-1, 0, 1)] == [True, False, False]
    assert is_expired(now - PAST_SECONDS_MAX, now)
    assert not is_expired(now - PAST_SECONDS_MAX - 1, now)
