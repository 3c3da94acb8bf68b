"""Raw tree to resolved tree: names substituted, values turned into slots, and the checks that need both.

What depends on the values of a request is only noted here, as functions in `Resolver.checks`, in the order in which
DynamoDB would find fault; a resolved tree can so be used again with other values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from dynamo.expressions import types
from dynamo.expressions.parser import MalformedError
from dynamo.expressions.paths import check_apart, check_depth, shown
from dynamo.expressions.raw import (
    RawAction,
    RawArithmetic,
    RawBetween,
    RawCall,
    RawCompare,
    RawCondition,
    RawIn,
    RawLogical,
    RawNot,
    RawOperand,
    RawPath,
    RawProjection,
    RawUpdate,
    RawValue,
)
from dynamo.expressions.tree import (
    Action,
    Add,
    And,
    Arithmetic,
    AttributeExists,
    AttributeNotExists,
    AttributeType,
    BeginsWith,
    Between,
    Compare,
    Condition,
    Contains,
    DeleteFrom,
    IfNotExists,
    In,
    ListAppend,
    Not,
    Operand,
    Or,
    Path,
    Projection,
    Remove,
    Set,
    Size,
    Update,
    Value,
)

CHOICES_MAX = 100
"""Operands in the brackets of IN."""


class Resolver:
    """Resolves the expressions of one request, which share their placeholders.

    `names` maps placeholders to attribute names, `slots` value placeholders to slots. Methods raise `MalformedError`.
    """

    def __init__(self, names: Mapping[str, str], slots: Mapping[str, int]) -> None:
        self._names = names
        self._slots = slots
        self.checks: list[types.Check] = []
        self.used_names: set[str] = set()
        self.used_values: set[str] = set()
        self.attributes: set[str] = set()  # that paths begin with
        self.nested_attributes: set[str] = set()  # that paths lead into

    # --- conditions ---

    def condition(self, node: RawCondition) -> Condition:
        """The resolved condition. One call per level of the tree, whose depth the limit on operators bounds."""
        match node:
            case RawLogical(operator, left, right):
                resolved = self.condition(left)
                return (And if operator == "AND" else Or)(resolved, self.condition(right))
            case RawNot(condition):
                return Not(self.condition(condition))
            case RawCompare():
                return self._compare(node)
            case RawBetween():
                return self._between(node)
            case RawIn():
                return self._in(node)
            case RawCall():
                return self._condition_call(node)

    def _compare(self, node: RawCompare) -> Condition:
        left, right = self._operand(node.left), self._operand(node.right)
        _check_distinct(node.operator, left, right)
        if node.operator not in ("=", "<>"):
            self._require(left, types.ORDERED, node.operator)
            self._require(right, types.ORDERED, node.operator)
        return Compare(node.operator, left, right)

    def _between(self, node: RawBetween) -> Condition:
        operand, low, high = self._operand(node.operand), self._operand(node.low), self._operand(node.high)
        _check_distinct("BETWEEN", operand, low, high)
        for each in (operand, low, high):
            self._require(each, types.ORDERED, "BETWEEN")
        if isinstance(low, Value) and isinstance(high, Value):
            self.checks.append(types.bounds(low.slot, high.slot))
        return Between(operand, low, high)

    def _in(self, node: RawIn) -> Condition:
        operand = self._operand(node.operand)
        choices = tuple([self._operand(choice) for choice in node.choices])
        if len(choices) > CHOICES_MAX:
            raise MalformedError(
                f"The IN operator is provided with too many operands; number of operands: {len(choices)}"
            )
        _check_distinct("IN", operand, *choices)
        return In(operand, choices)

    def _condition_call(self, call: RawCall) -> Condition:
        arguments = [self._operand(argument) for argument in call.arguments]
        first = arguments[0]
        if call.name in ("attribute_exists", "attribute_not_exists"):
            path = _document_path(call.name, first)
            return AttributeExists(path) if call.name == "attribute_exists" else AttributeNotExists(path)
        second = arguments[1]
        if call.name == "attribute_type":
            path = _document_path(call.name, first)
            _check_distinct(call.name, first, second)
            return AttributeType(path, self._type_operand(second))
        _check_distinct(call.name, first, second)
        if call.name == "contains":
            return Contains(first, second)
        self._require(first, types.PREFIXED, call.name)
        self._require(second, types.PREFIXED, call.name)
        return BeginsWith(first, second)

    def _type_operand(self, operand: Operand) -> Operand:
        if not isinstance(operand, Value):
            kind = "N" if isinstance(operand, Size) else types.ANY_TYPE
            raise MalformedError(types.wrong_operand("attribute_type", kind))
        self.checks.append(types.type_name(operand.slot))
        return operand

    # --- updates ---

    def update(self, update: RawUpdate) -> Update:
        """The resolved update; its paths are compared before its values are looked at."""
        paths = [self._path(action.path) for action in update.actions]
        check_apart([path.steps for path in paths])
        return tuple([self._action(action, path) for action, path in zip(update.actions, paths, strict=True)])

    def _action(self, action: RawAction, path: Path) -> Action:
        if action.operand is None:
            return Remove(path)
        if action.section == "SET":
            return Set(path, self._update_operand(action.operand))
        value = cast(Value, self._operand(action.operand))
        if action.section == "ADD":
            self.checks.append(types.action_type(value.slot, types.ADDABLE, "ADD"))
            return Add(path, value)
        self.checks.append(types.action_type(value.slot, types.SETS, "DELETE"))
        return DeleteFrom(path, value)

    def _update_operand(self, operand: RawOperand) -> Operand:
        """One call per level, as calls nest a few hundred deep."""
        if isinstance(operand, RawArithmetic):
            left = self._update_operand(operand.left)
            right = self._update_operand(operand.right)
            self._require(left, types.NUMBER, operand.operator)
            self._require(right, types.NUMBER, operand.operator)
            return Arithmetic(operand.operator, left, right)
        if not isinstance(operand, RawCall):
            return self._operand(operand)
        first = self._update_operand(operand.arguments[0])
        second = self._update_operand(operand.arguments[1])
        if operand.name == "if_not_exists":
            return IfNotExists(_document_path(operand.name, first), second)
        self._require(first, types.LIST, operand.name)
        self._require(second, types.LIST, operand.name)
        return ListAppend(first, second)

    # --- projections ---

    def projection(self, paths: RawProjection) -> Projection:
        """The resolved paths of a projection."""
        resolved = tuple([self._path(path) for path in paths])
        check_apart([path.steps for path in resolved])
        return resolved

    # --- operands ---

    def _operand(self, operand: RawOperand) -> Operand:
        match operand:
            case RawPath():
                return self._path(operand)
            case RawValue(name):
                return self._value(name)
            case RawCall(_, (argument,)):  # size: the only function that `shape` lets through
                return self._size(self._operand(argument))
        raise AssertionError(operand)

    def _size(self, argument: Operand) -> Operand:
        self._require(argument, types.SIZED, "size")
        return Size(cast(Any, argument))

    def _value(self, name: str) -> Value:
        slot = self._slots.get(name)
        if slot is None:
            raise MalformedError(
                f"An expression attribute value used in expression is not defined; attribute value: {name}"
            )
        self.used_values.add(name)
        return Value(slot)

    def _path(self, path: RawPath) -> Path:
        steps = tuple([self._step(step) for step in path.steps])
        check_depth(steps)
        attribute = cast(str, steps[0])
        self.attributes.add(attribute)
        if len(steps) > 1:
            self.nested_attributes.add(attribute)
        return Path(steps)

    def _step(self, step: str | int) -> str | int:
        if isinstance(step, int) or step[0] != "#":
            return step
        name = self._names.get(step)
        if name is None:
            raise MalformedError(
                f"An expression attribute name used in the document path is not defined; attribute name: {step}"
            )
        self.used_names.add(step)
        return name

    def _require(self, operand: Operand, allowed: frozenset[str], function: str) -> None:
        """The operand must have one of these types, as far as that can be known without the item."""
        if isinstance(operand, Value):
            self.checks.append(types.operand_type(operand.slot, allowed, function))
        elif isinstance(operand, Size) and "N" not in allowed:
            raise MalformedError(types.wrong_operand(function, "N"))


def _document_path(function: str, operand: Operand) -> Path:
    if not isinstance(operand, Path):
        raise MalformedError(f"Operator or function requires a document path; operator or function: {function}")
    return operand


def _check_distinct(operator: str, first: Operand, *others: Operand) -> None:
    if isinstance(first, Path) and first in others:
        raise MalformedError(
            "The first operand must be distinct from the remaining operands for this operator or function; "
            f"operator: {operator}, first operand: {shown(first.steps)}"
        )
