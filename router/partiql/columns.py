"""From items as nodes project them to the rows of a SELECT: each path a column, named by its last step."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from dynamo.expressions import tree
from dynamo.expressions.operands import value_at
from dynamo.values import Item, dump
from router.partiql.statements import Select


def has_columns(select: Select) -> bool:
    """Whether rows have to be made of items: not if every path is an attribute, which is called by its own name."""
    return any(len(path.steps) > 1 for path in select.projection or ())


def node_projection(select: Select) -> tree.Projection | None:
    """What a node is asked for: whole attributes where there are columns, since list elements move in a projection."""
    if select.projection is None:
        return None
    names = dict.fromkeys(str(path.steps[0]) for path in select.projection)
    return tuple([tree.Path((name,)) for name in names])


def rows(select: Select, items: Sequence[bytes]) -> bytes:
    """The rows as JSON, separated by commas; `items` are the nodes', JSON separated by commas."""
    together = b",".join(items)
    if not together or not has_columns(select):
        return together
    return b",".join([dump(_row(select, item)) for item in orjson.loads(b"[%b]" % together)])


def _row(select: Select, item: Item) -> Item:
    columns = zip(select.names, select.projection or (), strict=True)
    found = [(name, value_at(item, path.steps)) for name, path in columns]
    return {name: value for name, value in found if value is not None}
