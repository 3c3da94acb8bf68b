"""BatchWriteItem: up to 25 puts and deletes, each done on its own; all are checked before any is done."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec
import orjson

from cluster.topology import Topology
from cluster.wire import storage_pb2
from dynamo.capacity import write_units
from dynamo.errors import ApiError, validation
from dynamo.indexes import check_put_size
from dynamo.item import ITEM_SIZE_MAX, item_size, item_too_large
from dynamo.keys import HASH_SIZE, key_of, row_key, validate_index_keys, validate_item_key, validate_key
from dynamo.table import Table
from dynamo.values import Item, canonical_item, dump
from router.consumed import body_of, collection, consumed, units_by_index
from router.context import RequestContext
from router.operations.replies import failure, retryable
from router.operations.tables import with_tables
from router.plan import Call, NodeOperation, Plan, Work
from router.transactions import partition_id

REQUESTS_MAX = 25
GROUP_BYTES = 512 << 10
"""Members of one partition share a request and an entry of its log, up to this many bytes of items."""


@dataclass(slots=True)
class _Write:
    """One member: a put of `item`, or a delete of the item with that key."""

    raw: dict[str, Any]
    item: Item
    put: bool
    size: int


class _Place(msgspec.Struct, frozen=True):
    """The request's `index`-th member, and the row that it writes."""

    index: int
    table: Table
    row: bytes
    write: _Write

    def put(self) -> storage_pb2.Put:
        """What a storage node is to do for a put."""
        return storage_pb2.Put(key=self.row, item=dump(self.write.item), size=self.write.size)

    def action(self) -> storage_pb2.Action:
        """The same for any member, as a part of a batch."""
        if self.write.put:
            return storage_pb2.Action(put=self.put())
        return storage_pb2.Action(delete=storage_pb2.Delete(key=self.row))


@dataclass(slots=True)
class _Written:
    """What became of one table's members."""

    units: float = 0.0
    local_units: Counter[str] = field(default_factory=Counter)
    global_units: Counter[str] = field(default_factory=Counter)
    unprocessed: list[Any] = field(default_factory=list)
    collections: dict[str, Any] = field(default_factory=dict)


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """What a BatchWriteItem request asks for. Raises ApiError."""
    requests: dict[str, list[dict[str, Any]]] = body["RequestItems"]
    writes = {name: _writes(name, members) for name, members in requests.items()}
    if sum(len(members) for members in writes.values()) > REQUESTS_MAX:
        raise validation("Too many items requested for the BatchWriteItem call")

    def for_tables(tables: dict[str, Table]) -> Plan:
        places: list[_Place] = []
        seen: set[tuple[int, bytes]] = set()
        for name, table in tables.items():
            places += _places(table, writes[name], len(places), seen)
        groups = _grouped(places, context.catalog.topology)

        async def run() -> bytes:
            results = await context.executor.call_all([_call(group, context) for group in groups])
            counted = "ReturnConsumedCapacity" in body or "ReturnItemCollectionMetrics" in body
            written = _distribute(_by_member(groups, results), writes, tables, counted=counted)
            return _body(body, tables, written)

        return Work(run)

    return with_tables(context, list(writes), for_tables)


def _writes(name: str, members: list[dict[str, Any]]) -> list[_Write]:
    if not members:
        raise validation(f"The batch write request list for a table cannot be null or empty: {name}")
    return [_write(member) for member in members]


def _write(member: dict[str, Any]) -> _Write:
    if ("PutRequest" in member) is ("DeleteRequest" in member):
        raise validation(
            "Supplied AttributeValue has more than one datatypes set, "
            "must contain exactly one of the supported datatypes"
        )
    if "DeleteRequest" in member:
        return _Write(member, canonical_item(member["DeleteRequest"]["Key"]), False, 0)
    item = canonical_item(member["PutRequest"]["Item"])
    size = item_size(item)
    if size > ITEM_SIZE_MAX:
        raise item_too_large()
    return _Write(member, item, True, size)


def _places(table: Table, writes: list[_Write], first: int, seen: set[tuple[int, bytes]]) -> list[_Place]:
    """One table's members with their rows, the first of which is the request's member number `first`.

    `seen` are the rows of the request so far: a table may be named twice, by name and by ARN. Raises ApiError.
    """
    places = []
    for index, write in enumerate(writes, first):
        if write.put:
            validate_item_key(table, write.item)
            validate_index_keys(table, write.item)
            check_put_size(table, write.item, write.size)
        else:
            validate_key(table, write.item)
        row = row_key(table.keys, table.attribute_types, write.item)
        if (table.id, row) in seen:
            raise validation("Provided list of item keys contains duplicates")
        seen.add((table.id, row))
        places.append(_Place(index, table, row, write))
    return places


def _grouped(places: list[_Place], topology: Topology) -> list[list[_Place]]:
    """The members by partition, in groups of at most `GROUP_BYTES`, or of one larger member."""
    groups: list[list[_Place]] = []
    open_groups: dict[tuple[int, int], tuple[list[_Place], int]] = {}
    for place in places:
        partition = partition_id(topology, place.table.id, place.row)
        key = (place.table.id, partition)
        group, size = open_groups.get(key, ([], 0))
        if not group or size + place.write.size > GROUP_BYTES:
            group, size = [], 0
            groups.append(group)
        group.append(place)
        open_groups[key] = (group, size + place.write.size)
    return groups


def _call(group: list[_Place], context: RequestContext) -> Call:
    """The call for one group; a lone member goes as the single write that it is."""
    first = group[0]
    operation: NodeOperation
    if len(group) == 1:
        operation = first.put() if first.write.put else storage_pb2.Delete(key=first.row)
    else:
        operation = storage_pb2.Batch(actions=[place.action() for place in group])
    return Call(
        first.table,
        first.row[:HASH_SIZE],
        operation,
        context.operation_id(first.index),
        request_id=context.request_id,
    )


def _by_member(
    groups: list[list[_Place]], results: list[storage_pb2.Reply | ApiError]
) -> list[storage_pb2.Reply | storage_pb2.ActionResult | ApiError]:
    """The groups' results, in the order of the members."""
    by_member: dict[int, storage_pb2.Reply | storage_pb2.ActionResult | ApiError] = {}
    for group, result in zip(groups, results, strict=True):
        if isinstance(result, ApiError) or not result.HasField("transact"):
            by_member.update((place.index, result) for place in group)
        else:
            by_member.update(zip([place.index for place in group], result.transact.results, strict=True))
    return [by_member[index] for index in range(len(by_member))]


def _distribute(
    results: list[storage_pb2.Reply | storage_pb2.ActionResult | ApiError],
    writes: dict[str, list[_Write]],
    tables: dict[str, Table],
    *,
    counted: bool,
) -> dict[str, _Written]:
    """What became of each table's members. Raises ApiError if none at all could be done, or for a final error.

    `counted`: the client wants to know of capacity or item collections.
    """
    written = {name: _Written() for name in writes}
    done = 0
    last_error: ApiError | None = None
    replies = iter(results)
    for name, members in writes.items():
        part, table = written[name], tables[name]
        for write in members:
            result = next(replies)
            if isinstance(result, ApiError) or result.HasField("failure"):
                error = result if isinstance(result, ApiError) else failure(result)
                if not retryable(error):
                    raise error
                last_error = error
                part.unprocessed.append(write.raw)
                continue
            done += 1
            if counted:
                _count(part, table, write, result.write)
    if last_error is not None and not done:
        raise last_error
    return written


def _count(part: _Written, table: Table, write: _Write, reply: storage_pb2.WriteReply) -> None:
    """Add what one member came to."""
    part.units += write_units(reply.old_size, reply.new_size)
    part.local_units.update(units_by_index(table.local_indexes, reply.local_index_units))
    part.global_units.update(units_by_index(table.global_indexes, reply.global_index_units))
    if table.local_indexes:
        metrics = collection(table, key_of(table, write.item), reply.collection_size)
        part.collections[dump(metrics["ItemCollectionKey"]).decode()] = metrics


def _body(body: dict[str, Any], tables: dict[str, Table], written: dict[str, _Written]) -> bytes:
    unprocessed = {name: part.unprocessed for name, part in written.items() if part.unprocessed}
    members = [b',"UnprocessedItems":' + orjson.dumps(unprocessed)]
    if body.get("ReturnItemCollectionMetrics") == "SIZE":
        collections = {
            name: list(written[name].collections.values()) for name, table in tables.items() if table.local_indexes
        }
        members.append(b',"ItemCollectionMetrics":' + orjson.dumps(collections))
    detail = body.get("ReturnConsumedCapacity", "NONE")
    if detail != "NONE":
        shown = [_consumed(table, written[name], detail) for name, table in tables.items()]
        members.append(b',"ConsumedCapacity":' + orjson.dumps(shown))
    return body_of(*members)


def _consumed(table: Table, part: _Written, detail: str) -> dict[str, Any]:
    return consumed(table, part.units, detail, local_indexes=part.local_units, global_indexes=part.global_units)
