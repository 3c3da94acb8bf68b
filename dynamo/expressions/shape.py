"""Checks of a raw tree that need neither names nor values: words, functions and where they stand, list indexes.

They run over the whole expression, in the order it is written, before any placeholder is looked up.
"""

from __future__ import annotations

from dynamo.expressions.parser import MalformedError
from dynamo.expressions.raw import (
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
)
from dynamo.expressions.reserved import is_reserved

INDEX_MAX = 2**31 - 1

_CONDITION_FUNCTIONS = {
    "attribute_exists": 1,
    "attribute_not_exists": 1,
    "attribute_type": 2,
    "begins_with": 2,
    "contains": 2,
}
_OPERAND_FUNCTIONS = {"size": 1}
_UPDATE_FUNCTIONS = {"if_not_exists": 2, "list_append": 2}
_OPERANDS = _CONDITION_FUNCTIONS | _OPERAND_FUNCTIONS | _UPDATE_FUNCTIONS
"""How many operands each function takes. Function names are case-sensitive."""


def check_condition(node: RawCondition) -> None:
    """Raises `MalformedError` for a condition whose words or functions are wrong."""
    match node:
        case RawLogical(_, left, right):
            check_condition(left)
            check_condition(right)
        case RawNot(condition):
            check_condition(condition)
        case RawCall():
            _check_condition_call(node, _CONDITION_FUNCTIONS)
        case RawCompare(_, left_operand, right_operand):
            _check_operands(left_operand, right_operand)
        case RawBetween(operand, low, high):
            _check_operands(operand, low, high)
        case RawIn(operand, choices):
            _check_operands(operand, *choices)


def check_update(update: RawUpdate) -> None:
    """Raises `MalformedError` for an update whose words, functions or sections are wrong."""
    for action in update.actions:
        _check_path(action.path)
        if action.operand is not None:
            _check_update_operand(action.operand)
    for position, section in enumerate(update.sections):
        if section in update.sections[:position]:
            raise MalformedError(f'The "{section}" section can only be used once in an update expression;')


def check_projection(paths: RawProjection) -> None:
    """Raises `MalformedError` for a projection that uses a reserved word or an impossible index."""
    for path in paths:
        _check_path(path)


def _check_operands(*operands: RawOperand) -> None:
    for operand in operands:
        if isinstance(operand, RawCall):
            _check_condition_call(operand, _OPERAND_FUNCTIONS)
        elif isinstance(operand, RawPath):
            _check_path(operand)


def _check_condition_call(call: RawCall, allowed: dict[str, int]) -> None:
    _check_function(call)
    if call.name in _UPDATE_FUNCTIONS:
        raise MalformedError(f"The function is not allowed in a condition expression; function: {call.name}")
    if call.name not in allowed:
        raise MalformedError(f"The function is not allowed to be used this way in an expression; function: {call.name}")
    _check_count(call)
    _check_operands(*call.arguments)


def _check_update_operand(operand: RawOperand) -> None:
    match operand:
        case RawPath():
            _check_path(operand)
        case RawArithmetic(_, left, right):
            _check_update_operand(left)
            _check_update_operand(right)
        case RawCall(name, arguments):
            _check_function(operand)
            if name not in _UPDATE_FUNCTIONS:
                raise MalformedError(f"The function is not allowed in an update expression; function: {name}")
            _check_count(operand)
            for argument in arguments:
                _check_update_operand(argument)


def _check_function(call: RawCall) -> None:
    if call.name not in _OPERANDS:
        raise MalformedError(f"Invalid function name; function: {call.name}")


def _check_count(call: RawCall) -> None:
    if len(call.arguments) != _OPERANDS[call.name]:
        raise MalformedError(
            "Incorrect number of operands for operator or function; "
            f"operator or function: {call.name}, number of operands: {len(call.arguments)}"
        )


def _check_path(path: RawPath) -> None:
    for step in path.steps:
        if isinstance(step, int):
            if step > INDEX_MAX:
                raise MalformedError(f"List index is not within the allowable range; index: [{step}]")
        elif is_reserved(step):  # a placeholder begins with "#", which no reserved word does
            raise MalformedError(f"Attribute name is a reserved keyword; reserved keyword: {step}")
