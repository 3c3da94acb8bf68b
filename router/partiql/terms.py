"""What the parts of a statement are before it is known what they are for: an attribute, a value, a condition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from lark import Token

from dynamo.expressions import tree


@dataclass(frozen=True, slots=True)
class Attribute:
    """A document path."""

    path: tree.Path
    token: Token


@dataclass(frozen=True, slots=True)
class Scalar:
    """A string, number, boolean or null: its tag and content. A number's text is as written."""

    kind: str
    content: str | bool
    token: Token


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A `?`, with its number from 0."""

    index: int
    token: Token


@dataclass(frozen=True, slots=True)
class Collection:
    """A list or a bag."""

    kind: Literal["list", "bag"]
    members: tuple[Term, ...]
    token: Token


@dataclass(frozen=True, slots=True)
class Tuple:
    """What PartiQL calls a tuple, and DynamoDB a map."""

    members: tuple[tuple[str, Term], ...]
    token: Token


@dataclass(frozen=True, slots=True)
class Call:
    """A function, by its name in small letters. `*` as its argument counts as none."""

    name: str
    arguments: tuple[Term, ...]
    token: Token


@dataclass(frozen=True, slots=True)
class Sum:
    """`left + right` or `left - right`."""

    operator: Literal["+", "-"]
    left: Term
    right: Term
    token: Token


@dataclass(frozen=True, slots=True)
class Test:
    """A condition."""

    condition: tree.Condition
    token: Token


@dataclass(frozen=True, slots=True)
class Missing:
    """The word MISSING."""

    token: Token


Term: TypeAlias = Attribute | Scalar | Placeholder | Collection | Tuple | Call | Sum | Test | Missing
