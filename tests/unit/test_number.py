"""Numbers: what is accepted, how it reads back, and where arithmetic refuses."""

import pytest

from dynamo import number
from dynamo.errors import ApiError

LARGEST = "9" * 38 + "0" * 88  # 9.99…E+125
SMALLEST = "0." + "0" * 129 + "1"  # 1E-130


@pytest.mark.parametrize(
    ("written", "returned"),
    [
        ("0", "0"),
        ("-0", "0"),
        ("0.00", "0"),
        ("+5", "5"),
        ("00042", "42"),
        ("-007.50", "-7.5"),
        (".5", "0.5"),
        ("5.", "5"),
        ("1.0", "1"),
        ("100", "100"),
        ("1E+2", "100"),
        ("1.5e2", "150"),
        ("12345E-2", "123.45"),
        ("1e-3", "0.001"),
        ("9.9999999999999999999999999999999999999E+125", LARGEST),
        ("1E-130", SMALLEST),
        ("-1E-130", "-" + SMALLEST),
        ("1" + "0" * 100, "1" + "0" * 100),
        ("0" * 50 + "1" * 38, "1" * 38),
        ("0.0e126", "0"),
        ("0e125", "0"),
        ("1E" + "0" * 6000 + "2", "100"),
    ],
)
def test_numbers_read_back_in_plain_notation(written: str, returned: str) -> None:
    assert number.normalise(written) == returned


NOT_A_NUMBER = "The parameter cannot be converted to a numeric value"
OVERFLOW = "Number overflow. Attempting to store a number with magnitude larger than supported range"
UNDERFLOW = "Number underflow. Attempting to store a number with magnitude smaller than supported range"
PRECISION = "Attempting to store more than 38 significant digits in a Number"


@pytest.mark.parametrize(
    "text",
    [" 5", "5 ", "1+2", "NaN", "Infinity", "1e", "e2", "+e2", ".", "-", "1.2.3", "++5", "1_000", "0x1", "１", "5\n"],
)
def test_what_is_no_number_is_refused_with_its_text(text: str) -> None:
    assert refusal(text) == f"{NOT_A_NUMBER}: {text}"


def test_the_empty_text_is_refused_without_one() -> None:
    assert refusal("") == NOT_A_NUMBER


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1" * 39, PRECISION),
        ("1." + "1" * 38, PRECISION),
        ("1" + "0" * 37 + "1", PRECISION),
        ("1E126", OVERFLOW),
        ("-1e126", OVERFLOW),
        ("0.1e127", OVERFLOW),
        ("1" + "0" * 126, OVERFLOW),
        ("1E" + "9" * 6000, OVERFLOW),
        ("1E-131", UNDERFLOW),
        ("-0.1E-130", UNDERFLOW),
        ("1E-" + "9" * 6000, UNDERFLOW),
        ("0e126", OVERFLOW),  # Amazon's oddity
    ],
)
def test_numbers_out_of_bounds(text: str, message: str) -> None:
    assert refusal(text) == message


def refusal(text: str) -> str:
    with pytest.raises(ApiError) as caught:
        number.normalise(text)
    assert caught.value.type == "ValidationException"
    return caught.value.message


@pytest.mark.parametrize(
    ("left", "right", "total"),
    [
        ("1", "2", "3"),
        ("0.1", "0.2", "0.3"),
        ("0.5", "-0.5", "0"),
        ("9" * 38, "1", "1" + "0" * 38),
        ("1" + "0" * 125, "-1" + "0" * 125, "0"),
        ("99.5", "0.5", "100"),
        (LARGEST, "0", LARGEST),
    ],
)
def test_sums_are_exact(left: str, right: str, total: str) -> None:
    assert number.add(left, right) == total


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ("1" + "0" * 50, "1", PRECISION),
        ("1", "0." + "0" * 40 + "1", PRECISION),
        (LARGEST, "1" + "0" * 125, OVERFLOW),
        ("-" + LARGEST, "-" + LARGEST, OVERFLOW),
        ("0." + "0" * 128 + "101", "-0." + "0" * 128 + "1", UNDERFLOW),
    ],
)
def test_sums_that_cannot_be_kept_are_refused(left: str, right: str, message: str) -> None:
    with pytest.raises(ApiError) as caught:
        number.add(left, right)
    assert (caught.value.type, caught.value.message) == ("ValidationException", message)


def test_subtraction() -> None:
    assert number.subtract("1", "0.0001") == "0.9999"
    assert number.subtract("5", "5") == "0"
    with pytest.raises(ApiError, match="38 significant digits"):
        number.subtract("1" + "0" * 50, "1")


def test_comparison_is_numeric_and_exact() -> None:
    assert number.compare("9", "10") == -1
    assert number.compare("-9", "-10") == 1
    assert number.compare("0.1", "0.1") == 0
    assert number.compare("1" * 37 + "1", "1" * 37 + "2") == -1


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 1),
        ("1", 2),
        ("42", 2),
        ("-42", 3),
        ("100", 2),
        ("123", 3),
        ("10.5", 3),
        ("0.001", 2),
        ("-0.001", 3),
        ("1.1", 3),
        ("12.34", 3),
        ("1" * 38, 20),
        ("-" + "1" * 38, 21),
        (LARGEST, 20),
        (SMALLEST, 2),
    ],
)
def test_size_counts_pairs_of_significant_digits_on_either_side_of_the_point(text: str, size: int) -> None:
    assert number.size(text) == size


def test_ordered_encoding_is_what_is_on_disks() -> None:
    assert number.encode_ordered("0") == bytes.fromhex("02")
    assert number.encode_ordered("42") == bytes.fromhex("038342")
    assert number.encode_ordered("123.4") == bytes.fromhex("03841234")
    assert number.encode_ordered("-42") == bytes.fromhex("017c57ff")
    assert number.encode_ordered(SMALLEST) == bytes.fromhex("030010")
    assert number.encode_ordered(LARGEST) == bytes.fromhex("03ff" + "99" * 19)
    assert number.encode_ordered("-" + LARGEST) == bytes.fromhex("0100" + "00" * 19 + "ff")


def test_the_longest_encoding_is_as_long_as_promised() -> None:
    assert len(number.encode_ordered("-" + "1" * 38)) == number.ENCODED_SIZE_MAX
