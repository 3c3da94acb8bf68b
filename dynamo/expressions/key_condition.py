"""A key condition against the keys of a table or index: which partition, and which range of sort keys.

Indexes may have up to four partition and four sort key attributes. Every partition key attribute needs `=`; sort key
attributes are used from the first on without a gap, and only the last one used may have another operator than `=`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from dynamo.errors import ApiError, validation
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
    Operand,
    Or,
    Path,
    Value,
)
from dynamo.item import value_size
from dynamo.keys import HASH_KEY_SIZE_MAX, RANGE_KEY_SIZE_MAX, hash_key_too_large, range_key_too_large
from dynamo.table import KeySchema, ScalarType
from dynamo.values import AttributeValue

RangeOperator: TypeAlias = Literal["eq", "lt", "le", "gt", "ge", "between", "begins_with"]

_OPERATORS: dict[str, RangeOperator] = {"=": "eq", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_REVERSED: dict[RangeOperator, RangeOperator] = {"eq": "eq", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_EMPTY = {"S": "string", "B": "binary"}


class RangeCondition(msgspec.Struct, frozen=True):
    """A condition on one sort key attribute: one value, or the two bounds of "between"."""

    attribute: str
    operator: RangeOperator
    values: tuple[AttributeValue, ...]


class KeyCondition(msgspec.Struct, frozen=True):
    """Partition key values, and conditions on the sort key attributes in use, all but the last of which are "eq"; both
    in the schema's order."""

    hash: tuple[AttributeValue, ...]
    range: tuple[RangeCondition, ...] = ()


def resolve_key_condition(
    tree: Condition, values: Sequence[AttributeValue], keys: KeySchema, types: Mapping[str, ScalarType]
) -> KeyCondition:
    """The key condition of a Query as values; `types` gives the type of each key attribute.

    Raises a ValidationException with DynamoDB's text.
    """
    given = _conditions(tree, values)
    if len(keys.hash) == 1 and len(keys.range) <= 1 and len(given) > 2:
        raise validation("Conditions can be of length 1 or 2 only")
    if len(keys.hash) == 1 and not keys.range and len(given) > 1:
        raise _not_supported()
    partition = [_partition_value(name, given, types) for name in keys.hash]
    if sum(map(value_size, partition)) > HASH_KEY_SIZE_MAX:
        raise hash_key_too_large()
    return KeyCondition(tuple(partition), _range_conditions(keys, given, types))


# --- from the tree to conditions by attribute ---


def _conditions(tree: Condition, values: Sequence[AttributeValue]) -> dict[str, RangeCondition]:
    """The conditions that the tree joins with AND, by attribute, in the order written."""
    found: dict[str, RangeCondition] = {}
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, And):
            waiting += [node.right, node.left]
            continue
        condition = _condition(node, values)
        if condition.attribute in found:
            raise validation("KeyConditionExpressions must only contain one condition per key")
        found[condition.attribute] = condition
    return found


def _condition(node: Condition, values: Sequence[AttributeValue]) -> RangeCondition:
    match node:
        case Compare(operator, left, right) if operator != "<>":
            return _comparison(_OPERATORS[operator], left, right, values)
        case Between(operand, low, high):
            return _headed("BETWEEN", "between", operand, (low, high), values)
        case BeginsWith(operand, prefix):
            return _headed("begins_with", "begins_with", operand, (prefix,), values)
    raise validation(f"Invalid operator used in KeyConditionExpression: {_name(node)}")


def _name(node: Condition) -> str:
    match node:
        case Or():
            return "OR"
        case Not():
            return "NOT"
        case In():
            return "IN"
        case AttributeExists():
            return "attribute_exists"
        case AttributeNotExists():
            return "attribute_not_exists"
        case AttributeType():
            return "attribute_type"
        case Contains():
            return "contains"
    return "<>"


def _comparison(
    operator: RangeOperator, left: Operand, right: Operand, values: Sequence[AttributeValue]
) -> RangeCondition:
    _check_operands(left, right)
    if isinstance(left, Path):
        return RangeCondition(_attribute(left), operator, _literals((right,), values))
    if isinstance(right, Path):
        return RangeCondition(_attribute(right), _REVERSED[operator], _literals((left,), values))
    raise validation("Invalid condition in KeyConditionExpression: No key attribute specified")


def _headed(
    name: str,
    operator: RangeOperator,
    first: Operand,
    others: tuple[Operand, ...],
    values: Sequence[AttributeValue],
) -> RangeCondition:
    """A condition whose first operand has to be the attribute."""
    _check_operands(first, *others)
    if not isinstance(first, Path):
        raise validation(
            f"Invalid condition in KeyConditionExpression: {name} operator must have the key attribute "
            "as its first operand"
        )
    return RangeCondition(_attribute(first), operator, _literals(others, values))


def _check_operands(*operands: Operand) -> None:
    for operand in operands:
        if not isinstance(operand, (Path, Value)):
            raise validation("KeyConditionExpressions cannot contain nested operations")
    if sum(isinstance(operand, Path) for operand in operands) > 1:
        raise validation("Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition")


def _attribute(path: Path) -> str:
    name = path.steps[0]
    if len(path.steps) > 1 or not isinstance(name, str):
        raise validation("KeyConditionExpressions cannot have conditions on nested attributes")
    return name


def _literals(operands: tuple[Operand, ...], values: Sequence[AttributeValue]) -> tuple[AttributeValue, ...]:
    return tuple([values[operand.slot] for operand in operands if isinstance(operand, Value)])


# --- against the schema ---


def _partition_value(name: str, given: Mapping[str, RangeCondition], types: Mapping[str, ScalarType]) -> AttributeValue:
    condition = given.get(name)
    if condition is None:
        raise _missed(name)
    _check_key_values(condition, types[name])
    if condition.operator != "eq":
        raise _not_supported()
    return condition.values[0]


def _range_conditions(
    keys: KeySchema, given: Mapping[str, RangeCondition], types: Mapping[str, ScalarType]
) -> tuple[RangeCondition, ...]:
    wanted = len(given) - len(keys.hash)
    for name in keys.range[:wanted]:
        if name not in given:
            raise _missed(name)
    if wanted > len(keys.range):
        raise _not_supported()
    conditions = [given[name] for name in keys.range[:wanted]]
    for condition in conditions:
        _check_key_values(condition, types[condition.attribute])
    if any(condition.operator != "eq" for condition in conditions[:-1]):
        raise _not_supported()
    _check_range_size(conditions)
    return tuple(conditions)


def _check_range_size(conditions: Sequence[RangeCondition]) -> None:
    """All sort key attributes together have one limit, which each bound of the last has to keep."""
    if not conditions:
        return
    equal = sum([value_size(condition.values[0]) for condition in conditions[:-1]])
    for bound in conditions[-1].values:
        if equal + value_size(bound) > RANGE_KEY_SIZE_MAX:
            raise range_key_too_large()


def _check_key_values(condition: RangeCondition, kind: ScalarType) -> None:
    for value in condition.values:
        content = value.get(kind)
        if content is None:
            raise validation(
                "One or more parameter values were invalid: Condition parameter type does not match schema type"
            )
        if not content:
            raise validation(
                "One or more parameter values are not valid. The AttributeValue for a key attribute "
                f"cannot contain an empty {_EMPTY[kind]} value. Key: {condition.attribute}"
            )


def _missed(name: str) -> ApiError:
    return validation(f"Query condition missed key schema element: {name}")


def _not_supported() -> ApiError:
    return validation("Query key condition not supported")
