"""What answers say about capacity and item collections: `ConsumedCapacity` and `ItemCollectionMetrics`, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import orjson

from dynamo.table import Index, Table
from dynamo.values import Item

GIGABYTE = 1 << 30

NONE: Mapping[str, float] = MappingProxyType({})


def consumed(
    table: Table,
    units: float,
    detail: str,
    *,
    local_indexes: Mapping[str, float] = NONE,
    global_indexes: Mapping[str, float] = NONE,
) -> dict[str, Any]:
    """One table's `ConsumedCapacity`; `detail` is ReturnConsumedCapacity, TOTAL or INDEXES. `units` are the table's
    own, those of indexes are given by name."""
    total = units + sum(local_indexes.values()) + sum(global_indexes.values())
    capacity: dict[str, Any] = {"TableName": table.name, "CapacityUnits": total}
    if detail == "INDEXES":
        capacity["Table"] = {"CapacityUnits": units}
        for member, indexes in (("LocalSecondaryIndexes", local_indexes), ("GlobalSecondaryIndexes", global_indexes)):
            if indexes:
                capacity[member] = {name: {"CapacityUnits": float(of_index)} for name, of_index in indexes.items()}
    return capacity


def consumed_member(
    table: Table,
    units: float,
    detail: str | None,
    *,
    local_indexes: Mapping[str, float] = NONE,
    global_indexes: Mapping[str, float] = NONE,
) -> bytes:
    """`,"ConsumedCapacity":{…}` for an answer's body, empty unless it was asked for. As `consumed`."""
    if detail is None or detail == "NONE":
        return b""
    capacity = consumed(table, units, detail, local_indexes=local_indexes, global_indexes=global_indexes)
    return b',"ConsumedCapacity":' + orjson.dumps(capacity)


def units_by_index(indexes: Sequence[Index], units: Sequence[int]) -> dict[str, int]:
    """Write units by index, from a reply that has them in the table's order, without indexes that charge nothing."""
    return {index.name: of_index for index, of_index in zip(indexes, units, strict=False) if of_index}


def collection(table: Table, key: Item, size: int) -> dict[str, Any]:
    """The `ItemCollectionMetrics` of the collection that `key`'s item belongs to, of `size` DynamoDB's bytes with its
    entries in local indexes."""
    name = table.keys.hash[0]
    low = float(size // GIGABYTE)
    return {"ItemCollectionKey": {name: key[name]}, "SizeEstimateRangeGB": (low, low + 1)}


def collection_member(table: Table, key: Item, size: int, wanted: str | None) -> bytes:
    """`,"ItemCollectionMetrics":{…}`: for SIZE, and only where the table has local indexes. As `collection`."""
    if wanted != "SIZE" or not table.local_indexes:
        return b""
    return b',"ItemCollectionMetrics":' + orjson.dumps(collection(table, key, size))


def body_of(*members: bytes) -> bytes:
    """A JSON object of members that each begin with a comma, or are empty."""
    return b"{" + b"".join(members)[1:] + b"}"
