"""ListStreams."""

from __future__ import annotations

from typing import Any

import orjson

from router.context import RequestContext
from router.plan import Plan, Work
from router.streams import readable_streams, stream_arn
from router.table_lookup import find_table

STREAMS_MAX = 100


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """All streams that can be read, or those of one table, in order of their ARNs."""

    async def run() -> bytes:
        if "TableName" in body:
            tables = [await find_table(body["TableName"], context)]
        else:
            await context.catalog.refresh()
            topology = context.catalog.topology
            tables = [table for name in topology.table_names() if (table := topology.table_named(name)) is not None]
        found = sorted(
            (stream_arn(table, stream, context.region), table.name, stream.label)
            for table in tables
            for stream in readable_streams(table, context)
        )
        after = body.get("ExclusiveStartStreamArn", "")
        left = [stream for stream in found if stream[0] > after]
        page = left[: body.get("Limit", STREAMS_MAX)]
        answer: dict[str, Any] = {
            "Streams": [{"StreamArn": arn, "TableName": name, "StreamLabel": label} for arn, name, label in page]
        }
        if len(page) < len(left):
            answer["LastEvaluatedStreamArn"] = page[-1][0]
        return orjson.dumps(answer)

    return Work(run)
