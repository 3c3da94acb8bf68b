"""The Condition of a policy's statement: its operators, and what they say of a request.

Source: IAM's reference of JSON policy elements. Stricter than it in one place: where an operator without ForAllValues
or ForAnyValue meets a key with several values, an Allow needs all of them to fit, a Deny any.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, TypeAlias

from dynamo.wildcards import filled, glob

Quantifier: TypeAlias = Literal["", "ForAllValues", "ForAnyValue"]
Context: TypeAlias = Mapping[str, tuple[str, ...]]
"""What is known of a request, by key in lower case; what is not known is not in it."""

_Fits: TypeAlias = Callable[[str, str], bool]
"""Whether a request's value fits a policy's."""


class ConditionError(Exception):
    """What is wrong with a condition, as the rest of a sentence."""


def _same(value: str, wanted: str) -> bool:
    return value == wanted


def _same_in_any_case(value: str, wanted: str) -> bool:
    return value.casefold() == wanted.casefold()


def _alike(value: str, wanted: str) -> bool:
    return glob(wanted).matches(value)


def _in_network(value: str, wanted: str) -> bool:
    try:
        return ipaddress.ip_address(value) in ipaddress.ip_network(wanted, strict=False)
    except ValueError:
        return False


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _time(text: str) -> Decimal | None:
    """Seconds since the epoch, of them or of ISO-8601."""
    number = _number(text)
    if number is not None:
        return number
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return Decimal((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _compared(read: Callable[[str], Decimal | None], holds: Callable[[Decimal, Decimal], bool]) -> _Fits:
    def fits(value: str, wanted: str) -> bool:
        left, right = read(value), read(wanted)
        return left is not None and right is not None and holds(left, right)

    return fits


_ORDERS: dict[str, Callable[[Decimal, Decimal], bool]] = {
    "Equals": lambda left, right: left == right,
    "LessThan": lambda left, right: left < right,
    "LessThanEquals": lambda left, right: left <= right,
    "GreaterThan": lambda left, right: left > right,
    "GreaterThanEquals": lambda left, right: left >= right,
}
_FITS: dict[str, _Fits] = {
    "StringEquals": _same,
    "StringEqualsIgnoreCase": _same_in_any_case,
    "StringLike": _alike,
    "ArnEquals": _alike,
    "ArnLike": _alike,
    "Bool": _same_in_any_case,
    "IpAddress": _in_network,
    **{f"Numeric{order}": _compared(_number, holds) for order, holds in _ORDERS.items()},
    **{f"Date{order}": _compared(_time, holds) for order, holds in _ORDERS.items()},
}
_WILD = frozenset({"StringLike", "ArnLike", "ArnEquals"})
_NEGATED = {
    "StringNotEquals": "StringEquals",
    "StringNotEqualsIgnoreCase": "StringEqualsIgnoreCase",
    "StringNotLike": "StringLike",
    "ArnNotEquals": "ArnEquals",
    "ArnNotLike": "ArnLike",
    "NotIpAddress": "IpAddress",
    "NumericNotEquals": "NumericEquals",
    "DateNotEquals": "DateEquals",
}
_CHECKS: dict[str, tuple[Callable[[str], bool], str]] = {
    "Bool": (lambda text: text.lower() in ("true", "false"), "true or false"),
    "Null": (lambda text: text.lower() in ("true", "false"), "true or false"),
    "IpAddress": (lambda text: _is_network(text), "an IP address or a range such as 10.0.0.0/8"),
    "Numeric": (lambda text: _number(text) is not None, "a number"),
    "Date": (lambda text: _time(text) is not None, "a time in ISO-8601's form or seconds since the epoch"),
}


@dataclass(frozen=True, slots=True)
class Condition:
    """One key under one operator. `operator` is never a negated one: `negated` says so. `key` is in lower case."""

    quantifier: Quantifier
    operator: str
    negated: bool
    if_exists: bool
    key: str
    wanted: tuple[str, ...]

    def holds(self, context: Context, *, strict: bool) -> bool:
        """Whether the request fulfils it; `strict`: for an Allow."""
        values = context.get(self.key)
        if self.operator == "Null":
            return any((want.lower() == "true") == (not values) for want in self.wanted)
        if not values:
            return self.if_exists or self.quantifier == "ForAllValues" or (self.negated and not self.quantifier)
        found = [self._fits(value, context) != self.negated for value in values]
        if self.quantifier:
            return all(found) if self.quantifier == "ForAllValues" else any(found)
        return all(found) if strict or self.negated else any(found)

    def _fits(self, value: str, context: Context) -> bool:
        fits, wild = _FITS[self.operator], self.operator in _WILD
        for each in self.wanted:
            want = filled(each, context, wild=wild)
            if want is not None and fits(value, want):
                return True
        return False

    def bound(self, context: Context) -> Condition:
        """The condition with the values of those variables that `context` has, for requests that share it."""
        wild = self.operator in _WILD
        known = tuple(filled(each, context, wild=wild) or each for each in self.wanted)
        return self if known == self.wanted else replace(self, wanted=known)


def conditions_of(document: Any) -> tuple[Condition, ...]:
    """The conditions of a statement's Condition, all of which have to hold. Raises ConditionError."""
    if not isinstance(document, dict):
        raise ConditionError("Condition must be an object")
    return tuple(
        _condition(operator, key, wanted)
        for operator, keys in document.items()
        for key, wanted in _members(operator, keys).items()
    )


def _members(operator: str, keys: Any) -> dict[str, Any]:
    if not isinstance(keys, dict) or not keys:
        raise ConditionError(f"the condition operator {operator} must be an object with keys")
    return keys


def _condition(name: str, key: str, wanted: Any) -> Condition:
    quantifier, found, operator = name.rpartition(":")
    if found and quantifier not in ("ForAllValues", "ForAnyValue"):
        raise ConditionError(f"there is no condition operator {name}")
    if_exists = operator.endswith("IfExists")
    operator = operator.removesuffix("IfExists")
    base = _NEGATED.get(operator, operator)
    if (base not in _FITS and base != "Null") or (base == "Null" and (quantifier or if_exists)):
        raise ConditionError(f"there is no condition operator {name}")
    texts = tuple(_text(key, each) for each in (wanted if isinstance(wanted, list) else [wanted]))
    if not texts:
        raise ConditionError(f"the condition key {key} has no values")
    for kind, (check, told) in _CHECKS.items():
        if base.startswith(kind):
            for text in texts:
                if "${" not in text and not check(text):
                    raise ConditionError(f"{text!r} for the condition key {key} is not {told}")
    return Condition(quantifier, base, base != operator, if_exists, key.lower(), texts)  # type: ignore[arg-type]


def _text(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str):
        return value
    raise ConditionError(f"a value of the condition key {key} is no text, number, true or false")


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True
