"""The condition of a write, from `ConditionExpression` or the older `Expected`, as it goes to the storage node."""

from __future__ import annotations

from typing import Any

import orjson

from cluster.wire import storage_pb2
from dynamo.expressions.compile import compile_expressions


def write_condition(body: dict[str, Any]) -> storage_pb2.Condition | None:
    """The condition of a PutItem or DeleteItem; None if it has none. Raises ValidationException."""
    compiled = compile_expressions(
        condition=body.get("ConditionExpression"),
        names=body.get("ExpressionAttributeNames"),
        values=body.get("ExpressionAttributeValues"),
    )
    if compiled.condition is None:
        return None
    return storage_pb2.Condition(
        tree=compiled.encoded_condition,
        values=orjson.dumps(compiled.values),
        return_old=body.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD",
    )
