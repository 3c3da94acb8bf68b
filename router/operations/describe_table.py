"""DescribeTable."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import orjson

from cluster.topology import Partition
from cluster.wire import storage_pb2
from dynamo.errors import ApiError
from dynamo.table import Table
from router.context import RequestContext
from router.index_description import Counts
from router.plan import Call, Plan, Work
from router.table_description import describe
from router.table_lookup import find_table

STATISTICS_SECONDS = 1.0
"""How long to wait for a partition's leader, and then for any other replica: counts may be old, no answer may hang."""

_log = logging.getLogger(__name__)


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """The catalog's description, with the counts of all partitions."""

    async def run() -> bytes:
        table = await find_table(body["TableName"], context)
        items, size, local_indexes = await counts(table, context)
        description = describe(
            table,
            context.region,
            context.clock.wall(),
            items=items,
            size=size,
            local_indexes=local_indexes,
            global_indexes=await index_counts(table, context),
        )
        return orjson.dumps({"Table": description})

    return Work(run)


async def counts(table: Table, context: RequestContext) -> tuple[int, int, dict[str, Counts]]:
    """Items, their size in DynamoDB's bytes, and what each local index holds, by name; over all partitions."""
    if table.status in ("CREATING", "DELETING"):
        return 0, 0, {}
    partitions = context.catalog.topology.partitions_of(table.id)
    replies = await asyncio.gather(*(_statistics(table, partition, context) for partition in partitions))
    local_indexes = {
        index.name: _sum([reply.local_indexes[number] for reply in replies if reply.local_indexes])
        for number, index in enumerate(table.local_indexes)
    }
    items, size = _sum(replies)
    return items, size, local_indexes


def _sum(parts: Sequence[storage_pb2.StatisticsReply | storage_pb2.IndexStatistics]) -> Counts:
    return Counts(sum(part.items for part in parts), sum(part.size for part in parts))


async def index_counts(table: Table, context: RequestContext) -> dict[str, Counts]:
    """What each global index holds, by name."""
    tables = [(index.name, context.catalog.topology.table(index.table)) for index in table.global_indexes]
    known = [(name, rows) for name, rows in tables if rows is not None]
    found = await asyncio.gather(*(counts(rows, context) for _, rows in known))
    return {name: Counts(items, size) for (name, _), (items, size, _) in zip(known, found, strict=True)}


async def _statistics(table: Table, partition: Partition, context: RequestContext) -> storage_pb2.StatisticsReply:
    """A partition's counts: its leader's, or any replica's when the leader is silent."""
    for any_replica in (False, True):
        call = Call(
            table, partition.low, storage_pb2.Statistics(), any_replica=any_replica, request_id=context.request_id
        )
        try:
            async with asyncio.timeout(STATISTICS_SECONDS):
                return (await context.executor.call(call)).statistics
        except (ApiError, TimeoutError) as error:
            _log.info("no statistics of partition %d: %s", partition.id, error or "no answer in time")
    return storage_pb2.StatisticsReply()
