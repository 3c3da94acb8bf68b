"""Numbers against exact fractions: texts, arithmetic, and the order of their encoding."""

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo import number
from dynamo.errors import ApiError

from .values import numbers, written_numbers

LARGEST = Fraction(10**38 - 1) * Fraction(10) ** 88
SMALLEST = Fraction(1, 10**130)


def fits(value: Fraction) -> bool:
    """Whether DynamoDB can hold the value: found by scaling it to its 38 most significant digits."""
    if value == 0:
        return True
    if not SMALLEST <= abs(value) <= LARGEST:
        return False
    scaled = abs(value)
    while scaled < 10**37:
        scaled *= 10
    while scaled >= 10**38:
        scaled /= 10
    return scaled.denominator == 1


@given(written_numbers)
def test_normalising_keeps_the_value(text: str) -> None:
    assert Fraction(number.normalise(text)) == Fraction(text)


@given(written_numbers)
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = number.normalise(text)
    assert number.normalise(once) == once


@given(written_numbers, st.integers(0, 3), st.integers(0, 3), st.booleans())
def test_all_ways_to_write_a_number_read_back_alike(text: str, before: int, after: int, upper: bool) -> None:
    coefficient, _, power = text.partition("e")
    sign = "-" if coefficient.startswith("-") else ""
    padded = sign + "0" * before + coefficient.lstrip("-")
    padded += ("" if "." in padded else ".") + "0" * after
    if power:
        padded += ("E" if upper else "e") + power
    assert number.normalise(padded) == number.normalise(text)


@given(numbers, numbers, st.sampled_from(["add", "subtract"]))
def test_arithmetic_is_exact_or_refused(left: str, right: str, operation: str) -> None:
    exact = Fraction(left) + Fraction(right) if operation == "add" else Fraction(left) - Fraction(right)
    if not fits(exact):
        with pytest.raises(ApiError, match="ValidationException"):
            getattr(number, operation)(left, right)
        return
    result = getattr(number, operation)(left, right)
    assert Fraction(result) == exact
    assert number.normalise(result) == result


@given(numbers, st.integers(-50, 50))
def test_arithmetic_near_the_edge_of_precision(text: str, step: int) -> None:
    """Neighbours at the 37th to 39th digit, where a rounding would show."""
    digits = number.normalise(text).replace(".", "").replace("-", "").strip("0") or "1"
    left, right = digits.ljust(38, "0"), str(step)
    if fits(Fraction(int(left) + step)):
        assert int(number.add(left, right)) == int(left) + step
    else:
        with pytest.raises(ApiError, match="significant digits"):
            number.add(left, right)


@given(numbers, numbers)
def test_comparison_agrees_with_the_values(left: str, right: str) -> None:
    difference = Fraction(left) - Fraction(right)
    assert number.compare(left, right) == (difference > 0) - (difference < 0)


@given(st.lists(numbers, min_size=2, max_size=20))
def test_order_of_encodings_is_order_of_numbers(texts: list[str]) -> None:
    by_value = sorted(set(texts), key=Fraction)
    by_bytes = sorted(set(texts), key=number.encode_ordered)
    assert by_bytes == by_value


@given(numbers)
def test_encodings_decode_to_the_same_text(text: str) -> None:
    encoded = number.encode_ordered(text)
    assert number.decode_ordered(encoded) == text
    assert len(encoded) <= number.ENCODED_SIZE_MAX


def test_order_over_the_whole_range_of_exponents() -> None:
    """Every magnitude, both signs, short and long coefficients: one strictly rising sequence."""
    coefficients = ("1", "1" + "0" * 36 + "1", "15", "150001", "5", "9" * 38)
    positive = [
        number.normalise(f"{coefficient[0]}.{coefficient[1:] or '0'}e{magnitude}")
        for magnitude in range(number.MAGNITUDE_MIN, number.MAGNITUDE_MAX + 1)
        for coefficient in coefficients
    ]
    rising = [f"-{text}" for text in reversed(positive)] + ["0"] + positive
    encoded = [number.encode_ordered(text) for text in rising]
    assert all(low < high for low, high in itertools.pairwise(encoded))
    assert [number.decode_ordered(data) for data in encoded] == rising


@given(numbers)
def test_size_is_that_of_the_significant_digits(text: str) -> None:
    whole, _, fraction = text.removeprefix("-").partition(".")
    if fraction:  # every digit but leading zeros is significant
        before, after = len(whole.lstrip("0")), len(fraction if whole != "0" else fraction.lstrip("0"))
    else:
        before, after = len(whole.rstrip("0")), 0
    assert number.size(text) == 1 + -(-before // 2) + -(-after // 2) + text.startswith("-")
