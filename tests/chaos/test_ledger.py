"""The checks of the kill test, on promises kept and broken."""

from __future__ import annotations

import pytest

from tests.chaos.gaps import longest_gap, percentile
from tests.chaos.ledger import Ledger


def ledger() -> Ledger:
    """a is 3; b was 2 and may be 3; c may be 1 or missing; counter n has 5 adds and perhaps 2 more."""
    ledger = Ledger(acknowledged={"a": 3, "b": 2}, uncertain={"b": 3, "c": 1})
    ledger.added["n"], ledger.perhaps_added["n"] = 5, 2
    return ledger


@pytest.mark.parametrize("found", [{"a": 3, "b": 2}, {"a": 3, "b": 3, "c": 1}])
def test_kept_items(found: dict[str, int]) -> None:
    assert ledger().faults_of_items(found) == []


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        ({"b": 2}, "a is None and not one of [3]"),
        ({"a": 2, "b": 2}, "a is 2 and not one of [3]"),
        ({"a": 3}, "b is None and not one of [2, 3]"),
        ({"a": 3, "b": 2, "c": 2}, "c is 2 and not one of [1, None]"),
        ({"a": 3, "b": 2, "d": 1}, "d is 1 and not one of [None]"),
    ],
    ids=["lost", "old", "lost and uncertain", "never written", "invented"],
)
def test_broken_items(found: dict[str, int], fault: str) -> None:
    assert ledger().faults_of_items(found) == [fault]


@pytest.mark.parametrize(("value", "kept"), [(4, False), (5, True), (7, True), (8, False)])
def test_counters(value: int, kept: bool) -> None:
    assert (ledger().faults_of_counters({"n": value}) == []) is kept


def test_a_counter_is_exact_without_failures() -> None:
    exact = Ledger()
    exact.added["n"] = 5
    assert exact.faults_of_counters({"n": 5}) == []
    assert exact.faults_of_counters({"n": 6}) == ["n is 6 and not between 5 and 5"]
    assert exact.faults_of_counters({}) == ["n is 0 and not between 5 and 5"]


def test_uncertain_keys_are_not_written_again() -> None:
    assert [key for key in "abcd" if ledger().may_write(key)] == ["a", "d"]


def test_longest_gap() -> None:
    times = [0.0, 1.0, 1.5, 4.0, 4.5, 9.0]
    assert longest_gap(times, 1.2, 4.2) == 2.5
    assert longest_gap(times, 1.6, 1.7) == 2.5
    assert longest_gap(reversed(times), 0.0, 9.0) == 4.5


@pytest.mark.parametrize(("first", "last"), [(-1.0, 4.0), (1.0, 9.5)])
def test_a_gap_without_an_end_is_none(first: float, last: float) -> None:
    with pytest.raises(ValueError, match="before and after"):
        longest_gap([0.0, 9.0], first, last)


def test_percentile() -> None:
    values = [float(value) for value in range(100, 0, -1)]
    assert [percentile(values, part) for part in (0.0, 0.5, 0.99, 1.0)] == [1.0, 50.0, 99.0, 100.0]
    assert percentile([], 0.5) == 0.0
