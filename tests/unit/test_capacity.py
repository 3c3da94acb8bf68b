"""Capacity units at the edges of their steps, and the token bucket under a clock of the test."""

import pytest

from dynamo import capacity
from dynamo.capacity import TokenBucket


@pytest.mark.parametrize(
    ("size", "consistent", "eventual"),
    [(0, 1.0, 0.5), (1, 1.0, 0.5), (4096, 1.0, 0.5), (4097, 2.0, 1.0), (8193, 3.0, 1.5), (409_600, 100.0, 50.0)],
)
def test_reads_cost_a_unit_for_4_kib_and_half_if_eventual(size: int, consistent: float, eventual: float) -> None:
    assert capacity.read_units(size, True) == consistent
    assert capacity.read_units(size, False) == eventual
    assert capacity.transactional_read_units(size) == 2 * consistent


@pytest.mark.parametrize(
    ("old", "new", "units"),
    [(0, 0, 1.0), (0, 1, 1.0), (0, 1024, 1.0), (0, 1025, 2.0), (3000, 10, 3.0), (5000, 0, 5.0), (0, 409_600, 400.0)],
)
def test_writes_cost_a_unit_for_1_kib_of_the_larger_image(old: int, new: int, units: float) -> None:
    assert capacity.write_units(old, new) == units
    assert capacity.transactional_write_units(old, new) == 2 * units


@pytest.mark.parametrize(
    ("old", "new", "same_key", "changed", "units"),
    [
        (0, 0, True, True, 0.0),
        (100, 100, True, False, 0.0),
        (0, 1500, True, True, 2.0),
        (1500, 0, True, True, 2.0),
        (1500, 2500, True, True, 3.0),
        (1500, 2500, False, True, 2.0 + 3.0),
    ],
)
def test_an_index_charges_by_the_change_of_its_entry(
    old: int, new: int, same_key: bool, changed: bool, units: float
) -> None:
    assert capacity.index_write_units(old, new, same_key=same_key, changed=changed) == units


def test_a_bucket_starts_full_and_refills_to_its_capacity() -> None:
    bucket = TokenBucket(rate=10, capacity=30, now=100.0)
    assert bucket.try_take(30, now=100.0)
    assert not bucket.try_take(1, now=100.0)
    assert bucket.try_take(5, now=100.5)
    assert bucket.tokens(now=200.0) == 30


def test_a_refused_cost_takes_nothing() -> None:
    bucket = TokenBucket(rate=1, capacity=10, now=0.0)
    assert not bucket.try_take(11, now=0.0)
    assert bucket.try_take(10, now=0.0)


def test_debt_is_paid_before_anything_is_admitted() -> None:
    bucket = TokenBucket(rate=10, capacity=10, now=0.0)
    bucket.take(30, now=0.0)
    assert bucket.tokens(now=0.0) == -20
    assert not bucket.try_take(1, now=2.0)
    assert bucket.try_take(1, now=2.25)


def test_a_clock_that_stands_or_runs_back_gives_nothing() -> None:
    bucket = TokenBucket(rate=10, capacity=10, now=5.0)
    bucket.take(10, now=5.0)
    assert bucket.tokens(now=4.0) == 0
    assert bucket.tokens(now=5.5) == 5


def test_a_new_rate_counts_from_its_change() -> None:
    bucket = TokenBucket(rate=10, capacity=100, now=0.0)
    bucket.take(100, now=0.0)
    bucket.set_rate(20, 40, now=1.0)
    assert bucket.tokens(now=1.0) == 10
    assert bucket.tokens(now=2.0) == 30
    assert bucket.tokens(now=9.0) == 40
