"""What a storage node's reply means to the client."""

from __future__ import annotations

from typing import Any

from cluster.wire import storage_pb2
from dynamo.capacity import write_units
from dynamo.errors import ApiError
from dynamo.table import Table
from dynamo.values import Item, load
from router.consumed import body_of, collection_member, consumed_member, units_by_index
from router.plan import StalePlanError

_STATUS = {"InternalServerError": 500, "ServiceUnavailable": 503}


def failure(reply: storage_pb2.Reply | storage_pb2.ActionResult) -> ApiError:
    """The error that a node answered with."""
    failed = reply.failure
    item = load(failed.item) if failed.item else None
    return ApiError(failed.type, failed.message, status=_STATUS.get(failed.type, 400), item=item)


def retryable(error: ApiError) -> bool:
    """Whether a batch's member that met this error may come back as unprocessed, for the client to try again."""
    if error.type == "TransactionConflictException":
        return True
    return error.status >= 500 and not isinstance(error, StalePlanError)


def write_body(reply: storage_pb2.Reply, body: dict[str, Any], table: Table, key: Item) -> bytes:
    """The answer to a PutItem, UpdateItem or DeleteItem `body`. Raises ApiError for a failed condition and the like."""
    if reply.HasField("failure"):
        raise failure(reply)
    write = reply.write
    attributes = write.attributes
    if not attributes and "ReturnConsumedCapacity" not in body and "ReturnItemCollectionMetrics" not in body:
        return b"{}"
    return body_of(
        b',"Attributes":' + attributes if attributes else b"",
        consumed_member(
            table,
            write_units(write.old_size, write.new_size),
            body.get("ReturnConsumedCapacity"),
            local_indexes=units_by_index(table.local_indexes, write.local_index_units),
            global_indexes=units_by_index(table.global_indexes, write.global_index_units),
        ),
        collection_member(table, key, write.collection_size, body.get("ReturnItemCollectionMetrics")),
    )
