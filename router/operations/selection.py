"""What Query and Scan have in common: Select, and the message to a partition."""

from __future__ import annotations

from typing import Any

import orjson

from cluster.wire import storage_pb2
from dynamo.errors import request_validation, validation
from dynamo.expressions.compile import Compiled


def check_select(body: dict[str, Any]) -> None:
    """`Select` against what else says which attributes are wanted. Raises ValidationException."""
    select = body.get("Select")
    projection = next((name for name in ("ProjectionExpression", "AttributesToGet") if name in body), None)
    if select is None:
        return
    if select == "SPECIFIC_ATTRIBUTES":
        if projection is None:
            raise request_validation(
                "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"
            )
        return
    if projection is not None:
        wanted = "only the Count" if select == "COUNT" else select
        raise validation(f"Cannot specify the {projection} when choosing to get {wanted}")
    if select == "ALL_PROJECTED_ATTRIBUTES" and "IndexName" not in body:
        raise validation("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")


def wire_query(compiled: Compiled, body: dict[str, Any]) -> storage_pb2.Query:
    """What every partition is asked, without the range of rows."""
    return storage_pb2.Query(
        consistent=body.get("ConsistentRead", False),
        filter=compiled.encoded_filter,
        values=orjson.dumps(compiled.values) if compiled.encoded_filter else b"",
        projection=compiled.encoded_projection,
        count_only=body.get("Select") == "COUNT",
    )
