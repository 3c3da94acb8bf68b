"""The one tree behind every expression and every legacy parameter, resolved and ready to evaluate.

Names are already substituted. Values are *slots*: indexes into the request's list of attribute values, so that a tree can be
cached by text and names while its values change with each request. Trees are immutable, and travel from router to
storage node as msgpack (`encode`, `decode_condition`, `decode_update`, `decode_projection`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, TypeAlias

import msgspec


class Node(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Base of every tree node; `array_like` and the tag keep the encoding short."""


# --- operands ---


class Path(Node, tag="p"):
    """A document path: attribute names and list indexes, the first always a name."""

    steps: tuple[str | int, ...]


class Value(Node, tag="v"):
    """The attribute value in this slot of the request's values."""

    slot: int


class Size(Node, tag="s"):
    """`size(path)`."""

    path: Path


class IfNotExists(Node, tag="ine"):
    """`if_not_exists(path, operand)`."""

    path: Path
    otherwise: Operand


class ListAppend(Node, tag="la"):
    """`list_append(first, second)`."""

    first: Operand
    second: Operand


class Arithmetic(Node, tag="ar"):
    """`left + right` or `left - right`."""

    operator: Literal["+", "-"]
    left: Operand
    right: Operand


Operand: TypeAlias = Path | Value | Size | IfNotExists | ListAppend | Arithmetic


# --- conditions (also filters) ---


class And(Node, tag="and"):
    left: Condition
    right: Condition


class Or(Node, tag="or"):
    left: Condition
    right: Condition


class Not(Node, tag="not"):
    condition: Condition


class Compare(Node, tag="cmp"):
    operator: Literal["=", "<>", "<", "<=", ">", ">="]
    left: Operand
    right: Operand


class Between(Node, tag="btw"):
    operand: Operand
    low: Operand
    high: Operand


class In(Node, tag="in"):
    operand: Operand
    choices: tuple[Operand, ...]


class AttributeExists(Node, tag="ex"):
    path: Path


class AttributeNotExists(Node, tag="nex"):
    path: Path


class AttributeType(Node, tag="ty"):
    path: Path
    type: Operand


class BeginsWith(Node, tag="bw"):
    operand: Operand
    prefix: Operand


class Contains(Node, tag="ct"):
    operand: Operand
    member: Operand


Condition: TypeAlias = (
    And | Or | Not | Compare | Between | In | AttributeExists | AttributeNotExists | AttributeType | BeginsWith | Contains
)


# --- updates ---


class Set(Node, tag="set"):
    path: Path
    operand: Operand


class Remove(Node, tag="rem"):
    path: Path


class Add(Node, tag="add"):
    path: Path
    value: Value


class DeleteFrom(Node, tag="del"):
    """`DELETE path :set`: takes members out of a set."""

    path: Path
    value: Value


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


@lru_cache(maxsize=4096)
def decode_condition(data: bytes) -> Condition:
    """The condition that `encode` wrote; cached, as a table's requests repeat a few trees."""
    return _condition_decoder.decode(data)


@lru_cache(maxsize=4096)
def decode_update(data: bytes) -> Update:
    """The update that `encode` wrote."""
    return _update_decoder.decode(data)


@lru_cache(maxsize=4096)
def decode_projection(data: bytes) -> Projection:
    """The projection that `encode` wrote."""
    return _projection_decoder.decode(data)
