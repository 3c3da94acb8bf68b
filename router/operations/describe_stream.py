"""DescribeStream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from cluster.topology import Partition
from cluster.wire import storage_pb2
from dynamo.errors import ApiError, validation
from dynamo.table import Stream, Table
from router.context import RequestContext
from router.description_parts import key_schema
from router.plan import Call, Plan, Work
from router.streams import Place, find_stream, sequence_number, shard_id, stream_arn

SHARDS_MAX = 100


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """The stream with a page of its shards; their bounds come from the partitions' leaders."""
    wanted = body.get("ShardFilter") or {}
    if wanted and not (wanted.get("Type") and wanted.get("ShardId")):
        raise validation("ShardFilter must have both Type and ShardId")

    async def run() -> bytes:
        table, stream = await find_stream(body["StreamArn"], context)
        description: dict[str, Any] = {
            "StreamArn": stream_arn(table, stream, context.region),
            "StreamLabel": stream.label,
            "StreamStatus": _status(table, stream),
            "StreamViewType": stream.view,
            "CreationRequestDateTime": round(stream.enabled, 3),
            "TableName": table.name,
            "KeySchema": key_schema(table.keys),
        }
        after = body.get("ExclusiveStartShardId", "")
        left = [shard for shard in _shards(table, stream, wanted.get("ShardId", ""), context) if shard[0] > after]
        page = left[: body.get("Limit", SHARDS_MAX)]
        description["Shards"] = await _described(page, table, stream, context)
        if len(page) < len(left):
            description["LastEvaluatedShardId"] = page[-1][0]
        return orjson.dumps({"StreamDescription": description})

    return Work(run)


def _status(table: Table, stream: Stream) -> str:
    if stream.disabled:
        return "DISABLED"
    return "ENABLING" if table.status == "CREATING" else "ENABLED"


def _shards(table: Table, stream: Stream, parent: str, context: RequestContext) -> list[tuple[str, Partition]]:
    """Shards by their ids, in order; with `parent` only its children, and partitions do not split yet."""
    if parent or table.status == "CREATING":
        return []
    partitions = context.catalog.topology.partitions_of(table.id)
    return sorted(((shard_id(partition, stream), partition) for partition in partitions), key=lambda shard: shard[0])


async def _described(
    shards: Sequence[tuple[str, Partition]], table: Table, stream: Stream, context: RequestContext
) -> list[dict[str, Any]]:
    calls = [
        Call(table, partition.low, storage_pb2.ReadStream(label=stream.label), request_id=context.request_id)
        for _, partition in shards
    ]
    described = []
    for (name, _), reply in zip(shards, await context.executor.call_all(calls), strict=True):
        if isinstance(reply, ApiError):
            raise reply
        described.append({"ShardId": name, "SequenceNumberRange": _range(reply.stream)})
    return described


def _range(reply: storage_pb2.StreamReply) -> dict[str, str]:
    """The first sequence number that a record of the shard may have; and the last one, of a shard that is closed."""
    shown = {"StartingSequenceNumber": sequence_number(Place(reply.first + 1))}
    if reply.end:
        shown["EndingSequenceNumber"] = sequence_number(Place(reply.end))
    elif not reply.known:  # nothing was ever written to it, or nothing is left
        shown["EndingSequenceNumber"] = shown["StartingSequenceNumber"]
    return shown
