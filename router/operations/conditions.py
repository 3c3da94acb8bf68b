"""Conditions and updates as they go to the storage node."""

from __future__ import annotations

from typing import Any

import orjson

from cluster.wire import storage_pb2
from dynamo.errors import validation
from dynamo.expressions.compile import Compiled
from dynamo.values import Item, dump


def wire_condition(compiled: Compiled, body: dict[str, Any]) -> storage_pb2.Condition | None:
    """The condition among the compiled expressions of `body`; None if there is none."""
    if compiled.condition is None:
        return None
    return storage_pb2.Condition(
        tree=compiled.encoded_condition,
        values=orjson.dumps(compiled.values),
        return_old=body.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD",
    )


def wire_update(row: bytes, key: Item, compiled: Compiled, body: dict[str, Any]) -> storage_pb2.Update:
    """The update of the item with this row key and key attributes, by the compiled expressions of `body`."""
    return storage_pb2.Update(
        key=row,
        key_attributes=dump(key),
        tree=compiled.encoded_update,
        condition=compiled.encoded_condition,
        values=orjson.dumps(compiled.values) if compiled.values else b"",
        condition_return_old=body.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD",
        return_values=body.get("ReturnValues", "NONE"),
    )


def check_return_values(body: dict[str, Any]) -> None:
    """PutItem and DeleteItem return the old item or nothing. Raises ValidationException."""
    if body.get("ReturnValues", "NONE") not in ("NONE", "ALL_OLD"):
        raise validation("ReturnValues can only be ALL_OLD or NONE")
