"""The parameters of before expressions, compiled to the same trees.

Expected, QueryFilter, ScanFilter and KeyConditions map attributes to conditions; AttributeUpdates maps them to actions;
AttributesToGet lists them. Attributes are whole ones here: a dot in a name is part of the name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from dynamo.errors import validation
from dynamo.expressions.compile import Compiled, Template
from dynamo.expressions.projection import paths_of
from dynamo.expressions.tree import (
    Action,
    Add,
    And,
    AttributeExists,
    AttributeNotExists,
    BeginsWith,
    Between,
    Compare,
    Condition,
    Contains,
    DeleteFrom,
    In,
    Not,
    Or,
    Path,
    Projection,
    Remove,
    Set,
    Update,
    Value,
)
from dynamo.expressions.types import ADDABLE, SETS, type_of
from dynamo.values import AttributeValue, canonical_value, check_attribute_name, compare

_INVALID = "One or more parameter values were invalid: "

_SCALARS = frozenset(["S", "N", "B"])
_COMPARISONS: dict[str, Literal["=", "<>", "<=", "<", ">=", ">"]] = {
    "EQ": "=",
    "NE": "<>",
    "LE": "<=",
    "LT": "<",
    "GE": ">=",
    "GT": ">",
}
_ARGUMENTS = {"NULL": 0, "NOT_NULL": 0, "BETWEEN": 2}
"""How many values an operator takes; one if it is not here, any number but none for IN."""

_TYPES = {
    "LE": _SCALARS,
    "LT": _SCALARS,
    "GE": _SCALARS,
    "GT": _SCALARS,
    "CONTAINS": _SCALARS,
    "NOT_CONTAINS": _SCALARS,
    "BEGINS_WITH": frozenset(["S", "B"]),
    "IN": _SCALARS,
    "BETWEEN": _SCALARS,
}
"""Types of the values of operators that do not take all types."""

_NOT_FOR_KEYS = frozenset(["NULL", "NOT_NULL", "NE", "CONTAINS", "NOT_CONTAINS", "IN"])
_LIST_ADDABLE = ADDABLE | {"L"}


def compile_legacy(
    *,
    expected: Mapping[str, Any] | None = None,
    filter: Mapping[str, Any] | None = None,  # noqa: A002
    conditional_operator: str | None = None,
    attribute_updates: Mapping[str, Any] | None = None,
    attributes_to_get: Sequence[str] | None = None,
    key_conditions: Mapping[str, Any] | None = None,
) -> Compiled:
    """Checks and compiles legacy parameters as they came in JSON; `filter` is QueryFilter or ScanFilter.

    Raises a ValidationException with DynamoDB's text.
    """
    _check_conditional_operator(conditional_operator, expected, filter)
    slots = Slots()
    join = Or if conditional_operator == "OR" else And
    template = Template(
        update=None if attribute_updates is None else _update(attribute_updates, slots),
        condition=_joined(join, [_expected(name, each, slots) for name, each in (expected or {}).items()]),
        key_condition=compile_key_conditions(key_conditions or {}, slots),
        filter=_joined(join, [_condition(name, each, slots) for name, each in (filter or {}).items()]),
        projection=None if attributes_to_get is None else _projection(attributes_to_get),
        filter_attributes=frozenset(filter or ()),
        legacy_filter=True,
    )
    return Compiled(template, slots.values)


class Slots:
    """Collects values, in canonical form, and numbers them."""

    def __init__(self, values: Sequence[AttributeValue] = ()) -> None:
        self.values = list(values)

    def take(self, value: AttributeValue) -> Value:
        """The slot of a value, which is canonical."""
        self.values.append(value)
        return Value(len(self.values) - 1)


def compile_key_conditions(conditions: Mapping[str, Any], slots: Slots) -> Condition | None:
    """The KeyConditions of a Query as a key condition; None if there are none."""
    for condition in conditions.values():
        if condition["ComparisonOperator"] in _NOT_FOR_KEYS:
            raise validation("Attempted conditional constraint is not an indexable operation")
    return _joined(And, [_condition(name, each, slots) for name, each in conditions.items()])


def _attribute(name: str) -> Path:
    """The path to a whole attribute, whose name may be one."""
    check_attribute_name(name)
    return Path((name,))


# --- conditions ---


def _check_conditional_operator(
    operator: str | None, expected: Mapping[str, Any] | None, filter_: Mapping[str, Any] | None
) -> None:
    if operator is None:
        return
    if expected is None and filter_ is None:
        raise validation("ConditionalOperator cannot be used without Filter or Expected")
    if any(len(conditions) < 2 for conditions in (expected, filter_) if conditions is not None):
        raise validation("ConditionalOperator can only be used when Filter or Expected has two or more elements")


def _joined(join: type[And] | type[Or], conditions: Sequence[Condition]) -> Condition | None:
    """The conditions joined to a tree as low as can be; None if there are none."""
    if not conditions:
        return None
    if len(conditions) == 1:
        return conditions[0]
    middle = len(conditions) // 2
    left, right = _joined(join, conditions[:middle]), _joined(join, conditions[middle:])
    assert left is not None
    assert right is not None
    return join(left, right)


def _expected(name: str, condition: Mapping[str, Any], slots: Slots) -> Condition:
    """One member of Expected: a condition, or the older pair of Exists and Value."""
    arguments, value = condition.get("AttributeValueList"), condition.get("Value")
    operator, exists = condition.get("ComparisonOperator"), condition.get("Exists")
    if arguments is not None and value is not None:
        raise validation(f"{_INVALID}Value and AttributeValueList cannot be used together for Attribute: {name}")
    if operator is None:
        if arguments is not None:
            raise validation(
                f"{_INVALID}AttributeValueList can only be used with a ComparisonOperator for Attribute: {name}"
            )
        return _existence(name, exists, value, slots)
    if exists is not None:
        raise validation(f"{_INVALID}Exists and ComparisonOperator cannot be used together for Attribute: {name}")
    if arguments is None and value is None and operator not in ("NULL", "NOT_NULL"):
        raise validation(
            f"{_INVALID}Value or AttributeValueList must be used with ComparisonOperator: {operator} "
            f"for Attribute: {name}"
        )
    return _compared(name, operator, arguments if value is None else [value], slots)


def _existence(name: str, exists: bool | None, value: Any, slots: Slots) -> Condition:
    if exists is False:
        if value is not None:
            raise validation(f"{_INVALID}Value cannot be used when Exists is false for Attribute: {name}")
        return AttributeNotExists(_attribute(name))
    if value is None:
        shown = "null" if exists is None else "true"
        raise validation(f"{_INVALID}Value must be provided when Exists is {shown} for Attribute: {name}")
    return Compare("=", _attribute(name), slots.take(canonical_value(value)))


def _condition(name: str, condition: Mapping[str, Any], slots: Slots) -> Condition:
    return _compared(name, condition["ComparisonOperator"], condition.get("AttributeValueList"), slots)


def _compared(name: str, operator: str, arguments: Sequence[Any] | None, slots: Slots) -> Condition:
    values = [canonical_value(argument) for argument in arguments or ()]
    _check_arguments(operator, values)
    path = _attribute(name)
    taken = [slots.take(value) for value in values]
    if operator in _COMPARISONS:
        return Compare(_COMPARISONS[operator], path, taken[0])
    match operator:
        case "NULL":
            return AttributeNotExists(path)
        case "NOT_NULL":
            return AttributeExists(path)
        case "BETWEEN":
            return Between(path, taken[0], taken[1])
        case "IN":
            return In(path, tuple(taken))
        case "BEGINS_WITH":
            return BeginsWith(path, taken[0])
        case "CONTAINS":
            return Contains(path, taken[0])
        case _:
            return Not(Contains(path, taken[0]))


def _check_arguments(operator: str, values: Sequence[AttributeValue]) -> None:
    count = len(values)
    if (count == 0) if operator == "IN" else (count != _ARGUMENTS.get(operator, 1)):
        raise validation(f"{_INVALID}Invalid number of argument(s) for the {operator} ComparisonOperator")
    kinds = [type_of(value) for value in values]
    if len(set(kinds)) > 1:
        raise validation(f"{_INVALID}AttributeValues inside AttributeValueList must be of same type")
    if operator in _TYPES and not _TYPES[operator].issuperset(kinds):
        raise validation(f"{_INVALID}ComparisonOperator {operator} is not valid for {kinds[0]} AttributeValue type")
    if operator == "BETWEEN" and compare(values[0], values[1]) == 1:
        raise validation(
            "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound"
        )


# --- updates and projections ---


def _update(updates: Mapping[str, Any], slots: Slots) -> Update:
    return tuple([_action(name, each, slots) for name, each in updates.items()])


def _action(name: str, update: Mapping[str, Any], slots: Slots) -> Action:
    path, action, raw = _attribute(name), update.get("Action") or "PUT", update.get("Value")
    if raw is None:
        if action != "DELETE":
            raise validation(f"{_INVALID}Only DELETE action is allowed when no attribute value is specified")
        return Remove(path)
    value = canonical_value(raw)
    kind = type_of(value)
    if action == "DELETE":
        if kind not in SETS:
            raise validation(f"{_INVALID}DELETE action with value is not supported for the type {kind}")
        return DeleteFrom(path, slots.take(value), legacy=True)
    if action == "ADD":
        if kind not in _LIST_ADDABLE:
            raise validation(f"{_INVALID}ADD action is not supported for the type {kind}")
        return Add(path, slots.take(value), legacy=True)
    return Set(path, slots.take(value))


def _projection(names: Sequence[str]) -> Projection:
    seen = set()
    for name in names:
        if name in seen:
            raise validation(f"{_INVALID}Duplicate value in attribute name: {name}")
        check_attribute_name(name)
        seen.add(name)
    return paths_of(list(names))
