"""What Query and Scan have in common: Select, indexes, and the message to a partition."""

from __future__ import annotations

from typing import Any

import orjson

from cluster.wire import storage_pb2
from dynamo.errors import validation
from dynamo.expressions.compile import Compiled
from dynamo.table import Index, Table


def check_select(body: dict[str, Any]) -> None:
    """`Select` against what else says which attributes are wanted. Raises ValidationException."""
    select = body.get("Select")
    projection = next((name for name in ("ProjectionExpression", "AttributesToGet") if name in body), None)
    if select is None:
        return
    if select == "SPECIFIC_ATTRIBUTES":
        if projection is None:
            raise validation(
                "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"
            )
        return
    if projection is not None:
        wanted = "only the Count" if select == "COUNT" else select
        raise validation(f"Cannot specify the {projection} when choosing to get {wanted}")
    if select == "ALL_PROJECTED_ATTRIBUTES" and "IndexName" not in body:
        raise validation("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")


def check_index(table: Table, body: dict[str, Any]) -> None:
    """Checks a read of an index. Raises ValidationException: in the end for every index, as none can be read yet."""
    name = body.get("IndexName")
    if name is None:
        return
    index = _index_named(table.global_indexes, name)
    if index is not None:
        _check_global(index, body)
    elif _index_named(table.local_indexes, name) is None:
        raise validation(f"The table does not have the specified index: {name}")
    raise validation(f"Trizone cannot read secondary indexes yet: {name}")


def _index_named(indexes: tuple[Index, ...], name: str) -> Index | None:
    return next((index for index in indexes if index.name == name), None)


def _check_global(index: Index, body: dict[str, Any]) -> None:
    if body.get("ConsistentRead"):
        raise validation("Consistent reads are not supported on global secondary indexes")
    if body.get("Select") == "ALL_ATTRIBUTES" and index.projection != "ALL":
        raise validation(
            "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for global "
            f"secondary index {index.name} because its projection type is not ALL"
        )


def wire_query(compiled: Compiled, body: dict[str, Any]) -> storage_pb2.Query:
    """What every partition is asked, without the range of rows."""
    return storage_pb2.Query(
        consistent=body.get("ConsistentRead", False),
        filter=compiled.encoded_filter,
        values=orjson.dumps(compiled.values) if compiled.encoded_filter else b"",
        projection=compiled.encoded_projection,
        count_only=body.get("Select") == "COUNT",
    )
