"""Checks that need a request's values: the types of operands, and the bounds of BETWEEN.

A compiled expression keeps them as a list of functions from the values, in slot order, to DynamoDB's text or None. They
run with every request, while the tree that they belong to is cached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from dynamo.values import AttributeValue, compare

Check: TypeAlias = Callable[[Sequence[AttributeValue]], str | None]

ORDERED = frozenset(["S", "N", "B"])
"""Types that `<` and its like compare."""

PREFIXED = frozenset(["S", "B"])
SIZED = frozenset(["S", "B", "SS", "NS", "BS", "L", "M"])
NUMBER = frozenset(["N"])
LIST = frozenset(["L"])
SETS = frozenset(["SS", "NS", "BS"])
ADDABLE = NUMBER | SETS

ANY_TYPE = "{NS,SS,L,BS,N,M,B,BOOL,NULL,S}"
"""The type of an operand that is known only with the item, as DynamoDB words it."""

_TYPE_NAMES = frozenset(["S", "SS", "N", "NS", "B", "BS", "BOOL", "NULL", "L", "M"])
_VALID_TYPES = "{B,NULL,SS,BOOL,L,BS,N,NS,S,M}"
_LONG_NAMES = {
    "S": "STRING",
    "N": "NUMBER",
    "B": "BINARY",
    "BOOL": "BOOLEAN",
    "NULL": "NULL",
    "L": "LIST",
    "M": "MAP",
    "SS": "STRING_SET",
    "NS": "NUMBER_SET",
    "BS": "BINARY_SET",
}


def type_of(value: AttributeValue) -> str:
    """The tag of a value."""
    (kind,) = value
    return kind


def wrong_operand(function: str, kind: str) -> str:
    """DynamoDB's text for an operand that an operator or function cannot take."""
    return f"Incorrect operand type for operator or function; operator or function: {function}, operand type: {kind}"


def operand_type(slot: int, allowed: frozenset[str], function: str) -> Check:
    """The value must have one of these types."""

    def check(values: Sequence[AttributeValue]) -> str | None:
        (kind,) = values[slot]
        return None if kind in allowed else wrong_operand(function, kind)

    return check


def action_type(slot: int, allowed: frozenset[str], section: str) -> Check:
    """The value of ADD or DELETE must have one of these types."""

    def check(values: Sequence[AttributeValue]) -> str | None:
        (kind,) = values[slot]
        if kind in allowed:
            return None
        return (
            f"Incorrect operand type for operator or function; operator: {section}, "
            f"operand type: {_LONG_NAMES[kind]}, typeSet: ALLOWED_FOR_{section}_OPERAND"
        )

    return check


def type_name(slot: int) -> Check:
    """The value must name a type, for `attribute_type`."""

    def check(values: Sequence[AttributeValue]) -> str | None:
        ((kind, content),) = values[slot].items()
        if kind != "S":
            return wrong_operand("attribute_type", kind)
        if content not in _TYPE_NAMES:
            return f"Invalid attribute type name found; type: {content}, valid types: {_VALID_TYPES}"
        return None

    return check


def bounds(low: int, high: int) -> Check:
    """The bounds of BETWEEN must have one type and be in order."""

    def check(values: Sequence[AttributeValue]) -> str | None:
        lower, upper = values[low], values[high]
        operands = f"lower bound operand: {_shown(lower)}, upper bound operand: {_shown(upper)}"
        if type_of(lower) != type_of(upper):
            return f"The BETWEEN operator requires same data type for lower and upper bounds; {operands}"
        if compare(lower, upper) == 1:
            return f"The BETWEEN operator requires upper bound to be greater than or equal to lower bound; {operands}"
        return None

    return check


def _shown(value: AttributeValue) -> str:
    ((kind, content),) = value.items()
    return f"AttributeValue: {{{kind}:{content}}}"
