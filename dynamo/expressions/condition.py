"""Does an item meet a condition or filter?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import ge, gt, le, lt

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

_ORDER: dict[str, Callable[[int, int], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


def holds(tree: Condition, item: Item, values: Sequence[AttributeValue]) -> bool:
    """Whether the condition holds for an item, empty where there is none. `values` are the request's, by slot.

    Never fails. An attribute that is missing, or of a type that the operator does not compare, makes a comparison
    false: all but `<>`, which is the opposite of `=`.
    """
    match tree:
        case And(left, right):
            return holds(left, item, values) and holds(right, item, values)
        case Or(left, right):
            return holds(left, item, values) or holds(right, item, values)
        case Not(condition):
            return not holds(condition, item, values)
        case AttributeExists(path):
            return value_at(item, path.steps) is not None
        case AttributeNotExists(path):
            return value_at(item, path.steps) is None
        case Compare():
            return _compare(tree, item, values)
        case _:
            return _other(tree, item, values)


def _compare(tree: Compare, item: Item, values: Sequence[AttributeValue]) -> bool:
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


def _other(
    tree: Between | In | AttributeType | BeginsWith | Contains, item: Item, values: Sequence[AttributeValue]
) -> bool:
    match tree:
        case Between(operand, low, high):
            value = value_of(operand, item, values)
            return _ordered(">=", value, value_of(low, item, values)) and _ordered(
                "<=", value, value_of(high, item, values)
            )
        case In(operand, choices):
            value = value_of(operand, item, values)
            return value is not None and value in [value_of(choice, item, values) for choice in choices]
        case AttributeType(path, kind):
            value = value_at(item, path.steps)
            name = value_of(kind, item, values)
            return value is not None and name is not None and name.get("S") in value
        case BeginsWith(operand, prefix):
            return _both(begins_with, value_of(operand, item, values), value_of(prefix, item, values))
        case Contains(operand, member):
            return _both(contains, value_of(operand, item, values), value_of(member, item, values))


def _both(
    test: Callable[[AttributeValue, AttributeValue], bool], left: AttributeValue | None, right: AttributeValue | None
) -> bool:
    return left is not None and right is not None and test(left, right)
