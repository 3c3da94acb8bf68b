"""Strategies for expressions, and the text of raw trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

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
    RawUpdate,
    RawValue,
    Section,
)

NAMES = ("#n", "#o")
VALUES = (":any", ":list", ":number", ":set")
COMPARATORS = ("=", "<>", "<", "<=", ">", ">=")

_TOKENS = (
    *(
        "a",
        "b.c",
        "l[0]",
        "#n",
        ":number",
        "(",
        ")",
        ",",
        ".",
        "[",
        "]",
        "+",
        "-",
        "=",
        "<>",
        "<",
        "<=",
        "!",
        "_",
        "#",
        ":",
    ),
    *(
        "AND",
        "or",
        "NOT",
        "between",
        "IN",
        "SET",
        "remove",
        "ADD",
        "DELETE",
        "size(",
        "contains(",
        "0",
        "17",
        "\n",
        "é",
    ),
)

arbitrary_texts: st.SearchStrategy[str] = st.one_of(
    st.text(max_size=60), st.lists(st.sampled_from(_TOKENS), max_size=20).map(" ".join)
)
"""Texts that are rarely expressions, but often look like them."""

_steps: st.SearchStrategy[str | int] = st.sampled_from(["a", "b", *NAMES]) | st.integers(0, 3)
paths: st.SearchStrategy[RawPath] = st.builds(
    lambda head, rest: RawPath((head, *rest)), st.sampled_from(["a", "b", "c", *NAMES]), st.lists(_steps, max_size=3)
)
raw_values: st.SearchStrategy[RawValue] = st.builds(RawValue, st.sampled_from(VALUES))


def _call(name: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[RawCall]:
    return st.builds(lambda *given: RawCall(name, given), *arguments)


operands: st.SearchStrategy[RawOperand] = paths | raw_values | _call("size", paths)

_terms: st.SearchStrategy[RawCondition] = st.one_of(
    st.builds(RawCompare, st.sampled_from(COMPARATORS), operands, operands),
    st.builds(RawBetween, operands, operands, operands),
    st.builds(RawIn, operands, st.lists(operands, min_size=1, max_size=4).map(tuple)),
    _call("attribute_exists", paths),
    _call("attribute_not_exists", paths),
    _call("attribute_type", paths, raw_values),
    _call("begins_with", operands, operands),
    _call("contains", operands, operands),
)


def _joined(conditions: st.SearchStrategy[RawCondition]) -> st.SearchStrategy[RawCondition]:
    return st.builds(RawNot, conditions) | st.builds(RawLogical, st.sampled_from(["AND", "OR"]), conditions, conditions)


raw_conditions: st.SearchStrategy[RawCondition] = st.recursive(_terms, _joined, max_leaves=8)

_number = st.just(RawValue(":number"))
_list = st.just(RawValue(":list"))
_set = st.just(RawValue(":set"))
_numeric: st.SearchStrategy[RawOperand] = _number | _call("if_not_exists", paths, _number) | paths
_lists: st.SearchStrategy[RawOperand] = st.recursive(
    _list | _call("if_not_exists", paths, _list), lambda inner: _call("list_append", inner, inner), max_leaves=4
)
_assignable: st.SearchStrategy[RawOperand] = st.one_of(
    raw_values,
    paths,
    _call("if_not_exists", paths, raw_values),
    _lists,
    st.builds(RawArithmetic, st.sampled_from(["+", "-"]), _numeric, _numeric),
)
_OPERANDS: dict[Section, st.SearchStrategy[Any]] = {
    "SET": _assignable,
    "REMOVE": st.none(),
    "ADD": _number | _set,
    "DELETE": _set,
}


@st.composite
def raw_updates(draw: Callable[..., Any]) -> RawUpdate:
    """Updates whose sections are all different; paths seldom overlap, as most begin with different names."""
    sections = draw(st.lists(st.sampled_from(sorted(_OPERANDS)), min_size=1, max_size=3, unique=True))
    actions = []
    for section in sections:
        for _ in range(draw(st.integers(1, 2))):
            head = draw(st.sampled_from("abcdef"))
            tail = draw(st.lists(_steps, max_size=2) if draw(st.booleans()) else st.just([]))
            actions.append(RawAction(section, RawPath((head, *tail)), draw(_OPERANDS[section])))
    return RawUpdate(tuple(actions), tuple(sections))


# --- printing ---


def condition_text(node: RawCondition) -> str:
    """A text that reads as this tree: every condition within another stands in brackets."""
    match node:
        case RawLogical(operator, left, right):
            return f"{_bracketed(left)} {operator} {_bracketed(right)}"
        case RawNot(condition):
            return f"NOT {_bracketed(condition)}"
        case RawCompare(operator, first, second):
            return f"{operand_text(first)} {operator} {operand_text(second)}"
        case RawBetween(operand, low, high):
            return f"{operand_text(operand)} BETWEEN {operand_text(low)} AND {operand_text(high)}"
        case RawIn(operand, choices):
            return f"{operand_text(operand)} IN ({', '.join(map(operand_text, choices))})"
        case RawCall():
            return operand_text(node)


def _bracketed(node: RawCondition) -> str:
    return f"({condition_text(node)})"


def operand_text(operand: RawOperand) -> str:
    match operand:
        case RawPath(steps):
            return path_text(steps)
        case RawValue(name):
            return name
        case RawCall(name, arguments):
            return f"{name}({', '.join(map(operand_text, arguments))})"
        case RawArithmetic(operator, left, right):
            return f"{operand_text(left)} {operator} {operand_text(right)}"


def path_text(steps: tuple[str | int, ...]) -> str:
    return "".join([f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps]).removeprefix(".")


def update_text(update: RawUpdate) -> str:
    parts = []
    for section in update.sections:
        actions = [_action_text(action) for action in update.actions if action.section == section]
        parts.append(f"{section} {', '.join(actions)}")
    return " ".join(parts)


def _action_text(action: RawAction) -> str:
    path = path_text(action.path.steps)
    if action.operand is None:
        return path
    return f"{path}{' = ' if action.section == 'SET' else ' '}{operand_text(action.operand)}"
