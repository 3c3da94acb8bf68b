"""GetRecords."""

from __future__ import annotations

from typing import Any

import orjson

from cluster.wire import storage_pb2
from dynamo.errors import resource_not_found
from router.context import RequestContext
from router.plan import Call, Plan, Work
from router.stream_records import shown_record
from router.streams import (
    GET_RECORDS_BYTES_MAX,
    Place,
    check_age,
    decode_iterator,
    encode_iterator,
    find_stream,
    trimmed_data,
)

RECORDS_MAX = 1_000


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """The next records of a shard, and where to go on unless it is closed and all of it was read."""
    arn, iterator = decode_iterator(body["ShardIterator"])
    check_age(iterator, context.clock.wall())

    async def run() -> bytes:
        table, stream = await find_stream(arn, context)
        partition = context.catalog.topology.partition(iterator.partition)
        if table.id != iterator.table or partition is None:
            raise resource_not_found(f"Requested resource not found: Stream: {arn} not found")
        read = storage_pb2.ReadStream(
            label=stream.label,
            position=iterator.place.position,
            number=iterator.place.number,
            limit=body.get("Limit", RECORDS_MAX),
            max_bytes=GET_RECORDS_BYTES_MAX,
        )
        reply = (await context.executor.call(Call(table, partition.low, read, request_id=context.request_id))).stream
        if 0 < iterator.place.position <= reply.trimmed:
            raise trimmed_data()
        records = [shown_record(record, stream, partition.id, context.region) for record in reply.records]
        answer: dict[str, Any] = {"Records": records}
        if not (stream.disabled and not reply.known) and not 0 < reply.end <= reply.next_position:
            place = Place(reply.next_position, reply.next_number)
            following = iterator._replace(place=place, issued_ms=int(context.clock.wall() * 1000))
            answer["NextShardIterator"] = encode_iterator(following, arn)
        return orjson.dumps(answer)

    return Work(run)
