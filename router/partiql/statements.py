"""A statement as it is understood: the trees of the plain operations' expressions, with a slot for each value.

Slots are filled by the statement's own literals and by the request's parameters, see `values.py`.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from dynamo.expressions import tree


class Source(msgspec.Struct, frozen=True):
    """`"table"."index"`; the index is "" for the table itself."""

    table: str
    index: str = ""


class OrderKey(msgspec.Struct, frozen=True):
    """One key of ORDER BY."""

    attribute: str
    descending: bool = False


class Select(msgspec.Struct, frozen=True):
    """`projection` is None for `*`; `names` are what its paths are called in the answer."""

    source: Source
    projection: tree.Projection | None = None
    names: tuple[str, ...] = ()
    where: tree.Condition | None = None
    order: tuple[OrderKey, ...] = ()


class Insert(msgspec.Struct, frozen=True):
    """The item is the map in slot `item`."""

    source: Source
    item: int


Returning: TypeAlias = Literal["ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"]


class Update(msgspec.Struct, frozen=True):
    """An update of the one item whose key `where` names."""

    source: Source
    update: tree.Update
    where: tree.Condition | None = None
    returning: Returning | None = None


class Delete(msgspec.Struct, frozen=True):
    """A delete of the one item whose key `where` names."""

    source: Source
    where: tree.Condition | None = None
    returning: Returning | None = None


class Exists(msgspec.Struct, frozen=True):
    """`EXISTS(SELECT …)`: a condition check, for transactions only."""

    select: Select


Statement: TypeAlias = Select | Insert | Update | Delete | Exists


def is_read(statement: Statement) -> bool:
    """Whether the statement is a SELECT."""
    return isinstance(statement, Select)


def source_of(statement: Statement) -> Source:
    """The table and index that a statement names."""
    return statement.select.source if isinstance(statement, Exists) else statement.source
