"""The part of an item that a projection names."""

from __future__ import annotations

from typing import Any, TypeAlias, cast

from dynamo.expressions.tree import Path, Projection
from dynamo.values import AttributeValue, Item

_Wanted: TypeAlias = dict[str | int, Any]
"""Steps to what is wanted below each; None: all of it."""


def project(paths: Projection, item: Item) -> Item:
    """The values at these paths, each in its place in the document; list elements move together, in the list's order.

    The paths must not overlap. The result shares parts with the item.
    """
    if all(len(path.steps) == 1 for path in paths):
        names = [cast(str, path.steps[0]) for path in paths]
        return {name: item[name] for name in names if name in item}
    return _members(_tree(paths), item)


def _tree(paths: Projection) -> _Wanted:
    root: _Wanted = {}
    for path in paths:
        place = root
        for step in path.steps[:-1]:
            place = place.setdefault(step, {})
        place[path.steps[-1]] = None
    return root


def _members(wanted: _Wanted, members: Item) -> Item:
    found: Item = {}
    for step, below in wanted.items():
        value = members.get(cast(str, step))
        part = _part(below, value)
        if part is not None:
            found[cast(str, step)] = part
    return found


def _part(wanted: _Wanted | None, value: AttributeValue | None) -> AttributeValue | None:
    """What is wanted of a value; None where there is nothing of it."""
    if wanted is None or value is None:
        return value
    ((kind, content),) = value.items()
    if kind == "M":
        members = _members(wanted, content)
        return {"M": members} if members else None
    if kind == "L":
        elements = _elements(wanted, content)
        return {"L": elements} if elements else None
    return None


def _elements(wanted: _Wanted, elements: list[AttributeValue]) -> list[AttributeValue]:
    indexes = sorted([step for step in wanted if isinstance(step, int) and step < len(elements)])
    parts = [_part(wanted[index], elements[index]) for index in indexes]
    return [part for part in parts if part is not None]


def paths_of(names: list[str]) -> Projection:
    """The projection of whole attributes."""
    return tuple([Path((name,)) for name in names])
