"""Does an item meet a condition or filter?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import ge, gt, le, lt
from typing import Any, TypeAlias

from dynamo.expressions.operands import begins_with, contains, value_at, value_of
from dynamo.expressions.tree import (
    And,
    AttributeExists,
    AttributeNotExists,
    AttributeType,
    BeginsWith,
    Between,
    Compare,
    Condition,
    Contains,
    In,
    Not,
    Or,
)
from dynamo.values import AttributeValue, Item, compare, equal

_Values: TypeAlias = Sequence[AttributeValue]

_ORDER: dict[str, Callable[[int, int], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


def holds(tree: Condition, item: Item, values: Sequence[AttributeValue]) -> bool:
    """Whether the condition holds for an item, empty where there is none. `values` are the request's, by slot.

    Never fails. An attribute that is missing, or of a type that the operator does not compare, makes a comparison
    false: all but `<>`, which is the opposite of `=`.
    """
    return _HOLDS[type(tree)](tree, item, values)


def _and(tree: And, item: Item, values: _Values) -> bool:
    left, right = tree.left, tree.right
    return _HOLDS[type(left)](left, item, values) and _HOLDS[type(right)](right, item, values)


def _or(tree: Or, item: Item, values: _Values) -> bool:
    left, right = tree.left, tree.right
    return _HOLDS[type(left)](left, item, values) or _HOLDS[type(right)](right, item, values)


def _not(tree: Not, item: Item, values: _Values) -> bool:
    condition = tree.condition
    return not _HOLDS[type(condition)](condition, item, values)


def _exists(tree: AttributeExists, item: Item, _values: _Values) -> bool:
    return value_at(item, tree.path.steps) is not None


def _not_exists(tree: AttributeNotExists, item: Item, _values: _Values) -> bool:
    return value_at(item, tree.path.steps) is None


def _compare(tree: Compare, item: Item, values: _Values) -> bool:
    left, right = value_of(tree.left, item, values), value_of(tree.right, item, values)
    if tree.operator == "=":
        return left is not None and right is not None and equal(left, right)
    if tree.operator == "<>":
        return left is None or right is None or not equal(left, right)
    return _ordered(tree.operator, left, right)


def _ordered(operator: str, left: AttributeValue | None, right: AttributeValue | None) -> bool:
    if left is None or right is None:
        return False
    order = compare(left, right)
    return order is not None and _ORDER[operator](order, 0)


def _between(tree: Between, item: Item, values: _Values) -> bool:
    value = value_of(tree.operand, item, values)
    low, high = value_of(tree.low, item, values), value_of(tree.high, item, values)
    return _ordered(">=", value, low) and _ordered("<=", value, high)


def _in(tree: In, item: Item, values: _Values) -> bool:
    value = value_of(tree.operand, item, values)
    if value is None:
        return False
    choices = [value_of(choice, item, values) for choice in tree.choices]
    return any(choice is not None and equal(value, choice) for choice in choices)


def _type(tree: AttributeType, item: Item, values: _Values) -> bool:
    value, name = value_at(item, tree.path.steps), value_of(tree.type, item, values)
    return value is not None and name is not None and name.get("S") in value


def _begins_with(tree: BeginsWith, item: Item, values: _Values) -> bool:
    value, prefix = value_of(tree.operand, item, values), value_of(tree.prefix, item, values)
    return value is not None and prefix is not None and begins_with(value, prefix)


def _contains(tree: Contains, item: Item, values: _Values) -> bool:
    container, member = value_of(tree.operand, item, values), value_of(tree.member, item, values)
    return container is not None and member is not None and contains(container, member)


# A table, since a filter meets every item that a Scan passes: `match` takes several times as long.
_HOLDS: dict[type[Any], Callable[[Any, Item, _Values], bool]] = {
    And: _and,
    Or: _or,
    Not: _not,
    Compare: _compare,
    Between: _between,
    In: _in,
    AttributeExists: _exists,
    AttributeNotExists: _not_exists,
    AttributeType: _type,
    BeginsWith: _begins_with,
    Contains: _contains,
}
