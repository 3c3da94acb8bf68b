"""DynamoDB's numbers: decimal texts of up to 38 significant digits, magnitudes 1E-130 to 9.99…E+125, or zero.

A *normalised* number is the text that DynamoDB returns: plain notation, no plus sign, no needless zeros, never "-0".
Equal numbers have equal normalised texts. Everything here but `normalise` takes normalised texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Context, Decimal, Inexact, Overflow
from decimal import InvalidOperation as InvalidDecimal
from typing import NamedTuple

from dynamo.errors import ApiError, validation

DIGITS_MAX = 38
MAGNITUDE_MAX = 125  # power of ten of the first significant digit
MAGNITUDE_MIN = -130

_GRAMMAR = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?")
_EXPONENT_DIGITS_MAX = 9  # a longer exponent is out of range whatever the digits before it say

# `Overflow` and `Inexact` are exactly "too large" and "more than 38 digits"; too small is found by hand.
_EXACT = Context(prec=DIGITS_MAX, Emax=MAGNITUDE_MAX, Emin=-999, traps=[Overflow, Inexact, InvalidDecimal])


def not_a_number(text: str) -> ApiError:
    """The text is no number at all."""
    reason = f": {text}" if text else ""
    return validation(f"The parameter cannot be converted to a numeric value{reason}")


def too_precise() -> ApiError:
    """More than 38 significant digits, given or computed."""
    return validation("Attempting to store more than 38 significant digits in a Number")


def too_large() -> ApiError:
    """A magnitude of 1E+126 or more."""
    return validation(
        "Number overflow. Attempting to store a number with magnitude larger than supported range",
    )


def too_small() -> ApiError:
    """A magnitude below 1E-130 that is not zero."""
    return validation(
        "Number underflow. Attempting to store a number with magnitude smaller than supported range",
    )


class _Parts(NamedTuple):
    """The value is (-1 if negative) * 0.digits * 10 ** exponent; digits have no outer zeros and are empty for zero."""

    negative: bool
    digits: str
    exponent: int


def normalise(text: str) -> str:
    """The normalised form of a number as a request may write it.

    Raises a ValidationException for texts that are no number (blanks are not skipped), too precise, too large or
    too small.
    """
    if len(text) <= DIGITS_MAX and text.isascii():
        if text.isdigit() and (text[0] != "0" or text == "0"):
            return text
        if _is_normal(text):
            return text
    return _plain(_parse(text))


def _is_normal(text: str) -> bool:
    """Whether a short text is plainly normalised: most signed and fractional numbers are. False says nothing."""
    whole, point, fraction = text.removeprefix("-").partition(".")
    if not whole.isdigit() or (whole[0] == "0" and not (point and whole == "0")):
        return False
    return not point or (fraction.isdigit() and fraction[-1] != "0")


def add(left: str, right: str) -> str:
    """The exact sum, normalised; ValidationException if it has more than 38 digits or is out of range."""
    return _computed(_exactly(_EXACT.add, left, right))


def subtract(left: str, right: str) -> str:
    """The exact difference, normalised; ValidationException if it has more than 38 digits or is out of range."""
    return _computed(_exactly(_EXACT.subtract, left, right))


def compare(left: str, right: str) -> int:
    """-1, 0 or 1 as left is less than, equal to or greater than right, at full precision."""
    if left == right:
        return 0
    return -1 if Decimal(left) < Decimal(right) else 1


def sort_key(text: str) -> Decimal:
    """A key that sorts numbers by value."""
    return Decimal(text)


def size(text: str) -> int:
    """Bytes that the number counts for in an item's size.

    One byte, one for every two significant digits before the point and after it (each rounded up), one for a minus
    sign. Source: dynoxide's measurements of 2026.
    """
    if text.isdigit():
        return 1 + (len(text.rstrip("0")) + 1) // 2
    negative, digits, exponent = _split(text)
    before = min(max(exponent, 0), len(digits))
    return 1 + (before + 1) // 2 + (len(digits) - before + 1) // 2 + negative


# The ordered encoding, never to be changed: byte 0 is the sign; byte 1 the exponent, one of 256 values; then two digits
# a byte. Negative numbers have exponent and digits complemented, and an end mark above every pair of digits, so that
# the longer of two that begin alike comes first.
_NEGATIVE, _POSITIVE = 1, 3
_ZERO = b"\x02"
_EXPONENT_BIAS = 129  # exponents run from -129 to 126
_EXPONENT_HIGH = 126
_END = b"\xff"
_COMPLEMENT = str.maketrans("0123456789", "9876543210")

ENCODED_SIZE_MAX = 2 + DIGITS_MAX // 2 + 1


def encode_ordered(text: str) -> bytes:
    """Bytes whose order is the numeric order; at most `ENCODED_SIZE_MAX`, equal for equal numbers."""
    if text.isdigit():
        negative, digits, exponent = False, text.rstrip("0"), len(text)
    else:
        negative, digits, exponent = _split(text)
    if not digits:
        return _ZERO
    if len(digits) % 2:
        digits += "0"
    if negative:
        digits = digits.translate(_COMPLEMENT)
        return bytes((_NEGATIVE, _EXPONENT_HIGH - exponent)) + bytes.fromhex(digits) + _END
    return bytes((_POSITIVE, _EXPONENT_BIAS + exponent)) + bytes.fromhex(digits)


def decode_ordered(data: bytes) -> str:
    """The normalised number that `encode_ordered` was given."""
    if data == _ZERO:
        return "0"
    if data[0] == _POSITIVE:
        return _plain(_Parts(False, data[2:].hex().rstrip("0"), data[1] - _EXPONENT_BIAS))
    digits = data[2:-1].hex().translate(_COMPLEMENT)
    return _plain(_Parts(True, digits.rstrip("0"), _EXPONENT_HIGH - data[1]))


def _parse(text: str) -> _Parts:
    match = _GRAMMAR.fullmatch(text)
    if match is None:
        raise not_a_number(text)
    sign, whole, fraction, power = match.groups()
    fraction = fraction or ""
    written = whole + fraction
    if not written:
        raise not_a_number(text)
    shift = _power(power) if power else 0
    significant = written.lstrip("0")
    if not significant:
        # Amazon refuses 0e126 but takes 0.0e126: it looks at the magnitude that the last written zero stands for.
        if shift - len(fraction) > MAGNITUDE_MAX:
            raise too_large()
        return _Parts(False, "", 0)
    exponent = len(whole) + shift - (len(written) - len(significant))
    parts = _Parts(sign == "-", significant.rstrip("0"), exponent)
    _check(parts)
    return parts


def _power(text: str) -> int:
    digits = text.lstrip("+-").lstrip("0")
    power = int(digits or "0") if len(digits) <= _EXPONENT_DIGITS_MAX else 10**_EXPONENT_DIGITS_MAX
    return -power if text[0] == "-" else power


def _check(parts: _Parts) -> None:
    magnitude = parts.exponent - 1
    if magnitude > MAGNITUDE_MAX:
        raise too_large()
    if magnitude < MAGNITUDE_MIN:
        raise too_small()
    if len(parts.digits) > DIGITS_MAX:
        raise too_precise()


def _plain(parts: _Parts) -> str:
    negative, digits, exponent = parts
    if not digits:
        return "0"
    if exponent <= 0:
        text = "0." + "0" * -exponent + digits
    elif exponent >= len(digits):
        text = digits + "0" * (exponent - len(digits))
    else:
        text = digits[:exponent] + "." + digits[exponent:]
    return "-" + text if negative else text


def _split(text: str) -> _Parts:
    """The parts of a normalised number."""
    negative = text[0] == "-"
    if negative:
        text = text[1:]
    whole, point, fraction = text.partition(".")
    if not point:
        digits = whole.rstrip("0")
        return _Parts(negative, digits, len(whole) if digits else 0)
    if whole == "0":
        digits = fraction.lstrip("0")
        return _Parts(negative, digits, len(digits) - len(fraction))
    return _Parts(negative, whole + fraction, len(whole))


def _exactly(operation: Callable[[Decimal, Decimal], Decimal], left: str, right: str) -> Decimal:
    try:
        return operation(Decimal(left), Decimal(right))
    except Overflow:
        raise too_large() from None
    except Inexact:
        raise too_precise() from None


def _computed(value: Decimal) -> str:
    if not value:
        return "0"
    if value.adjusted() < MAGNITUDE_MIN:
        raise too_small()
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
