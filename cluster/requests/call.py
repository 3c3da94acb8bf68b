"""One request to a partition, as whoever makes it hands it to the executor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from cluster.wire import storage_pb2
from dynamo.errors import ApiError
from dynamo.table import Table

NodeOperation: TypeAlias = (
    storage_pb2.Get
    | storage_pb2.Put
    | storage_pb2.Update
    | storage_pb2.Delete
    | storage_pb2.Query
    | storage_pb2.Statistics
    | storage_pb2.IndexWrite
    | storage_pb2.ReadStream
    | storage_pb2.Transact
    | storage_pb2.Prepare
    | storage_pb2.Finish
    | storage_pb2.TransactGet
    | storage_pb2.Batch
    | storage_pb2.RegionalWrite
    | storage_pb2.ReadChanges
    | storage_pb2.ReadRegion
    | storage_pb2.DropTombstones
    | storage_pb2.Digest
    | storage_pb2.ReadRange
)


@dataclass(slots=True)
class Call:
    """One request to the partition that holds `hash`.

    `any_replica`: an eventually consistent read, which any replica may answer. `operation_id` is 0 for reads.
    `request_id` is the HTTP request's, for logs.
    """

    table: Table
    hash: bytes
    operation: NodeOperation
    operation_id: int = 0
    any_replica: bool = False
    request_id: str = ""


class StalePlanError(ApiError):
    """The table changed since the plan was made, and the catalog by now holds the change: plan again, with the same
    operation ids. Whoever does not plan again may show it to the client: SDKs retry it."""

    def __init__(self) -> None:
        super().__init__("InternalServerError", "The table changed while the request was under way", status=500)
