"""The raw tree: what the parser read, with names and values still as they were written.

A path's steps are attribute names, placeholders (`#n`) and list indexes. Parentheses leave no trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Section: TypeAlias = Literal["SET", "REMOVE", "ADD", "DELETE"]


@dataclass(frozen=True, slots=True)
class RawPath:
    steps: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class RawValue:
    """A value placeholder, with its colon."""

    name: str


@dataclass(frozen=True, slots=True)
class RawCall:
    """A function call; in a condition it may stand for an operand or for a condition."""

    name: str
    arguments: tuple[RawOperand, ...]


@dataclass(frozen=True, slots=True)
class RawArithmetic:
    operator: Literal["+", "-"]
    left: RawOperand
    right: RawOperand


RawOperand: TypeAlias = RawPath | RawValue | RawCall | RawArithmetic


@dataclass(frozen=True, slots=True)
class RawLogical:
    operator: Literal["AND", "OR"]
    left: RawCondition
    right: RawCondition


@dataclass(frozen=True, slots=True)
class RawNot:
    condition: RawCondition


@dataclass(frozen=True, slots=True)
class RawCompare:
    operator: Literal["=", "<>", "<", "<=", ">", ">="]
    left: RawOperand
    right: RawOperand


@dataclass(frozen=True, slots=True)
class RawBetween:
    operand: RawOperand
    low: RawOperand
    high: RawOperand


@dataclass(frozen=True, slots=True)
class RawIn:
    operand: RawOperand
    choices: tuple[RawOperand, ...]


RawCondition: TypeAlias = RawLogical | RawNot | RawCompare | RawBetween | RawIn | RawCall


@dataclass(frozen=True, slots=True)
class RawAction:
    """One action of an update; `operand` is None for REMOVE."""

    section: Section
    path: RawPath
    operand: RawOperand | None


@dataclass(frozen=True, slots=True)
class RawUpdate:
    """The actions in the order written, and the sections in the order written, with repetitions."""

    actions: tuple[RawAction, ...]
    sections: tuple[Section, ...]


RawProjection: TypeAlias = tuple[RawPath, ...]
