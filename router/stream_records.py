"""Stream records as GetRecords shows them."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import orjson

from cluster.wire import storage_pb2
from dynamo.table import Stream
from router.streams import Place, sequence_number

EVENT_VERSION = "1.1"
EVENT_SOURCE = "aws:dynamodb"
SERVICE_IDENTITY = {"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"}
"""Whose writes are the service's own. The wire has the model's names; what Lambda sees is spelt otherwise."""

_EVENTS = {
    storage_pb2.StreamRecord.INSERT: "INSERT",
    storage_pb2.StreamRecord.MODIFY: "MODIFY",
    storage_pb2.StreamRecord.REMOVE: "REMOVE",
}


def shown_record(record: storage_pb2.StreamRecord, stream: Stream, partition: int, region: str) -> dict[str, Any]:
    """The record, ready for orjson; items are the bytes that they came as."""
    change: dict[str, Any] = {
        "ApproximateCreationDateTime": record.time_ms // 1000,
        "Keys": orjson.Fragment(record.keys),
    }
    if record.new_image:
        change["NewImage"] = orjson.Fragment(record.new_image)
    if record.old_image:
        change["OldImage"] = orjson.Fragment(record.old_image)
    sequence = sequence_number(Place(record.position, record.number))
    change |= {"SequenceNumber": sequence, "SizeBytes": record.size, "StreamViewType": stream.view}
    shown: dict[str, Any] = {
        "eventID": event_id(stream, partition, sequence),
        "eventName": _EVENTS[record.event],
        "eventVersion": EVENT_VERSION,
        "eventSource": EVENT_SOURCE,
        "awsRegion": region,
        "dynamodb": change,
    }
    if record.by_service:
        shown["userIdentity"] = SERVICE_IDENTITY
    return shown


def event_id(stream: Stream, partition: int, sequence: str) -> str:
    """32 hexadecimal digits, always the same for one record and different for all others."""
    return blake2b(f"{stream.label} {partition} {sequence}".encode(), digest_size=16).hexdigest()
