"""The expressions of a write, from the newer or the older parameters, as they go to the storage node."""

from __future__ import annotations

from typing import Any

import orjson

from cluster.wire import storage_pb2
from dynamo.expressions.compile import Compiled, compile_expressions


def write_expressions(body: dict[str, Any]) -> Compiled:
    """The update and condition of a write. Raises ValidationException."""
    return compile_expressions(
        update=body.get("UpdateExpression"),
        condition=body.get("ConditionExpression"),
        names=body.get("ExpressionAttributeNames"),
        values=body.get("ExpressionAttributeValues"),
    )


def write_condition(body: dict[str, Any]) -> storage_pb2.Condition | None:
    """The condition of a PutItem or DeleteItem; None if it has none. Raises ValidationException."""
    expressions = write_expressions(body)
    if expressions.condition is None:
        return None
    return storage_pb2.Condition(
        tree=expressions.encoded_condition,
        values=orjson.dumps(expressions.values),
        return_old=body.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD",
    )
