"""Carries one TransactGetItems out: two looks at every item. If no item was marked in either and none has changed, then
at the moment between the two all of them were what was read. Within one partition a single look is that moment."""

from __future__ import annotations

from collections.abc import Sequence

from cluster.requests.call import Call
from cluster.wire import storage_pb2
from dynamo.errors import ApiError
from router.context import RequestContext
from router.transactions import Part, Read, judge_reads, parts_of


async def read_together(context: RequestContext, reads: Sequence[Read]) -> list[storage_pb2.ItemReply]:
    """The items, in order, as they were at one moment. Raises ApiError: `TransactionCanceledException` for conflicts,
    or one of retryable kinds."""
    parts = parts_of(reads, context.catalog.topology)
    first = await _look(context, parts, versions_only=False)
    second = await _look(context, parts, versions_only=True) if len(parts) > 1 else []
    items = judge_reads(parts, first, second)
    if isinstance(items, ApiError):
        raise items
    return items


async def _look(
    context: RequestContext, parts: Sequence[Part[Read]], *, versions_only: bool
) -> list[storage_pb2.Reply]:
    replies = []
    for result in await context.executor.call_all([_call(context, part, versions_only) for part in parts]):
        if isinstance(result, ApiError):
            raise result
        replies.append(result)
    return replies


def _call(context: RequestContext, part: Part[Read], versions_only: bool) -> Call:
    gets = [
        storage_pb2.Get(key=read.row, consistent=True, projection=b"" if versions_only else read.projection)
        for read in part.members
    ]
    operation = storage_pb2.TransactGet(gets=gets, versions_only=versions_only)
    return Call(part.table, part.hash, operation, request_id=context.request_id)
