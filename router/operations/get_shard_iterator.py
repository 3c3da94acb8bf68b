"""GetShardIterator."""

from __future__ import annotations

from typing import Any

import orjson

from cluster.topology import Partition
from cluster.wire import storage_pb2
from dynamo.errors import validation
from dynamo.table import Stream, Table
from router.context import RequestContext
from router.plan import Call, Plan, Work
from router.streams import (
    HORIZON,
    Place,
    ShardIterator,
    encode_iterator,
    find_stream,
    partition_of_shard,
    place_of,
    stream_arn,
    trimmed_data,
)

BY_SEQUENCE = ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER")


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """An iterator at a place that is settled now, so that it does not move while it waits to be used."""
    kind = body["ShardIteratorType"]
    if kind in BY_SEQUENCE and "SequenceNumber" not in body:
        raise validation(f"SequenceNumber must be specified for ShardIteratorType {kind}")
    if kind == "AT_TIMESTAMP" and "Timestamp" not in body:
        raise validation(f"Timestamp must be specified for ShardIteratorType {kind}")

    async def run() -> bytes:
        table, stream = await find_stream(body["StreamArn"], context)
        partition = partition_of_shard(body["ShardId"], table, stream, context)
        place = await _place(body, table, stream, partition, context)
        iterator = ShardIterator(table.id, stream.label, partition.id, place, int(context.clock.wall() * 1000))
        text = encode_iterator(iterator, stream_arn(table, stream, context.region))
        return orjson.dumps({"ShardIterator": text})

    return Work(run)


async def _place(
    body: dict[str, Any], table: Table, stream: Stream, partition: Partition, context: RequestContext
) -> Place:
    """Where the iterator begins. Raises ApiError."""
    kind = body["ShardIteratorType"]
    if kind == "TRIM_HORIZON":
        return HORIZON
    read = storage_pb2.ReadStream(label=stream.label)
    if kind == "AT_TIMESTAMP":
        read.since_ms = max(1, int(body["Timestamp"] * 1000))
    reply = (await context.executor.call(Call(table, partition.low, read, request_id=context.request_id))).stream
    if kind == "AT_TIMESTAMP":
        return Place(reply.next_position)
    if kind == "LATEST":
        return Place(reply.end or reply.applied + 1)
    return _at_sequence(body["SequenceNumber"], reply, after=kind == "AFTER_SEQUENCE_NUMBER")


def _at_sequence(sequence: str, reply: storage_pb2.StreamReply, *, after: bool) -> Place:
    place = place_of(sequence)
    if place is None or not reply.first < place.position <= (reply.end or reply.applied + 1):
        raise validation(f"Invalid SequenceNumber: {sequence} is not in the range of the shard")
    if place.position <= reply.trimmed:
        raise trimmed_data()
    return place._replace(number=place.number + 1) if after else place
