"""Which attributes a read returns, from `ProjectionExpression` or the older `AttributesToGet`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dynamo.errors import validation
from dynamo.expressions.compile import compile_expressions
from dynamo.expressions.tree import Path, Projection, encode


def encoded_projection(body: dict[str, Any]) -> bytes:
    """The projection of a GetItem, or of a table in BatchGetItem; empty: the whole item. Raises ValidationException."""
    names = body.get("AttributesToGet")
    if names is not None:
        return encode(attributes_projection(names))
    return compile_expressions(
        projection=body.get("ProjectionExpression"), names=body.get("ExpressionAttributeNames")
    ).encoded_projection


def attributes_projection(names: Sequence[str]) -> Projection:
    """The projection to these top-level attributes. Raises ValidationException for one that stands there twice."""
    seen = set()
    for name in names:
        if name in seen:
            raise validation(f"One or more parameter values were invalid: Duplicate value in attribute name: {name}")
        seen.add(name)
    return tuple(Path((name,)) for name in names)
