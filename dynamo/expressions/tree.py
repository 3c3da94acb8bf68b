"""The one tree behind every expression and every legacy parameter, resolved and ready to evaluate.

Names are already substituted. Values are *slots*: indexes into the request's list of attribute values, so that a tree
can be cached by text and names while its values change with each request. Trees are immutable, and travel from router
to storage node as msgpack (`encode`, `decode_condition`, `decode_update`, `decode_projection`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, TypeAlias

import msgspec


class Node(msgspec.Struct, frozen=True, array_like=True, tag=True, tag_field="node"):
    """Base of every tree node; `array_like` and the tag keep the encoding short."""


# --- operands ---


class Path(Node, tag="p", frozen=True):
    """A document path: attribute names and list indexes, the first always a name."""

    steps: tuple[str | int, ...]


class Value(Node, tag="v", frozen=True):
    """The attribute value in this slot of the request's values."""

    slot: int


class Size(Node, tag="s", frozen=True):
    """`size(path)`; DynamoDB takes the size of a value as well."""

    path: Path | Value


class IfNotExists(Node, tag="ine", frozen=True):
    """`if_not_exists(path, operand)`."""

    path: Path
    otherwise: Operand


class ListAppend(Node, tag="la", frozen=True):
    """`list_append(first, second)`."""

    first: Operand
    second: Operand


class Arithmetic(Node, tag="ar", frozen=True):
    """`left + right` or `left - right`."""

    operator: Literal["+", "-"]
    left: Operand
    right: Operand


Operand: TypeAlias = Path | Value | Size | IfNotExists | ListAppend | Arithmetic


# --- conditions (also filters) ---


class And(Node, tag="and", frozen=True):
    left: Condition
    right: Condition


class Or(Node, tag="or", frozen=True):
    left: Condition
    right: Condition


class Not(Node, tag="not", frozen=True):
    condition: Condition


class Compare(Node, tag="cmp", frozen=True):
    operator: Literal["=", "<>", "<", "<=", ">", ">="]
    left: Operand
    right: Operand


class Between(Node, tag="btw", frozen=True):
    operand: Operand
    low: Operand
    high: Operand


class In(Node, tag="in", frozen=True):
    operand: Operand
    choices: tuple[Operand, ...]


class AttributeExists(Node, tag="ex", frozen=True):
    path: Path


class AttributeNotExists(Node, tag="nex", frozen=True):
    path: Path


class AttributeType(Node, tag="ty", frozen=True):
    path: Path
    type: Operand


class BeginsWith(Node, tag="bw", frozen=True):
    operand: Operand
    prefix: Operand


class Contains(Node, tag="ct", frozen=True):
    operand: Operand
    member: Operand


Condition: TypeAlias = (
    And
    | Or
    | Not
    | Compare
    | Between
    | In
    | AttributeExists
    | AttributeNotExists
    | AttributeType
    | BeginsWith
    | Contains
)


# --- updates ---


class Set(Node, tag="set", frozen=True):
    path: Path
    operand: Operand


class Remove(Node, tag="rem", frozen=True):
    path: Path


class Add(Node, tag="add", frozen=True):
    """`ADD path :value`: to a number or to a set; where `legacy` (AttributeUpdates), also to the end of a list."""

    path: Path
    value: Value
    legacy: bool = False


class DeleteFrom(Node, tag="del", frozen=True):
    """`DELETE path :set`: takes members out of a set; `legacy` (AttributeUpdates) only changes the text of an error."""

    path: Path
    value: Value
    legacy: bool = False


Action: TypeAlias = Set | Remove | Add | DeleteFrom
Update: TypeAlias = tuple[Action, ...]
Projection: TypeAlias = tuple[Path, ...]

_encoder = msgspec.msgpack.Encoder()
_condition_decoder = msgspec.msgpack.Decoder(Condition)
_update_decoder = msgspec.msgpack.Decoder(Update)
_projection_decoder = msgspec.msgpack.Decoder(Projection)


def encode(tree: Condition | Update | Projection) -> bytes:
    """The tree as msgpack."""
    return _encoder.encode(tree)


@lru_cache(maxsize=1024)
def decode_condition(data: bytes) -> Condition:
    """The condition that `encode` wrote; cached, as a table's requests repeat a few trees."""
    return _condition_decoder.decode(data)


@lru_cache(maxsize=1024)
def decode_update(data: bytes) -> Update:
    """The update that `encode` wrote."""
    return _update_decoder.decode(data)


@lru_cache(maxsize=1024)
def decode_projection(data: bytes) -> Projection:
    """The projection that `encode` wrote."""
    return _projection_decoder.decode(data)


def attributes_of(*trees: object) -> set[str]:
    """The attributes that the paths in these trees, and in tuples of trees, begin with."""
    found: set[str] = set()
    waiting: list[object] = list(trees)
    while waiting:
        node = waiting.pop()
        if isinstance(node, Path):
            found.add(str(node.steps[0]))
        elif isinstance(node, Node):
            waiting += [getattr(node, name) for name in node.__struct_fields__]
        elif isinstance(node, tuple):
            waiting += node
    return found
