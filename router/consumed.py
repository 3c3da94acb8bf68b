"""What answers say about capacity and item collections: `ConsumedCapacity` and `ItemCollectionMetrics`, as JSON."""

from __future__ import annotations

from typing import Any

import orjson

from dynamo.table import Table
from dynamo.values import Item

COLLECTION_SIZE_RANGE = (0.0, 1.0)
"""SizeEstimateRangeGB of every item collection: its size is not kept, and only tables with local indexes show it."""


def consumed(table: Table, units: float, detail: str) -> dict[str, Any]:
    """One table's `ConsumedCapacity`; `detail` is ReturnConsumedCapacity, TOTAL or INDEXES."""
    capacity: dict[str, Any] = {"TableName": table.name, "CapacityUnits": units}
    if detail == "INDEXES":
        capacity["Table"] = {"CapacityUnits": units}
    return capacity


def consumed_member(table: Table, units: float, detail: str | None) -> bytes:
    """`,"ConsumedCapacity":{…}` for an answer's body, empty unless it was asked for."""
    if detail is None or detail == "NONE":
        return b""
    return b',"ConsumedCapacity":' + orjson.dumps(consumed(table, units, detail))


def collection(table: Table, key: Item) -> dict[str, Any]:
    """The `ItemCollectionMetrics` of the collection that `key`'s item belongs to."""
    name = table.keys.hash[0]
    return {"ItemCollectionKey": {name: key[name]}, "SizeEstimateRangeGB": COLLECTION_SIZE_RANGE}


def collection_member(table: Table, key: Item, wanted: str | None) -> bytes:
    """`,"ItemCollectionMetrics":{…}`: for SIZE, and only where the table has local indexes."""
    if wanted != "SIZE" or not table.local_indexes:
        return b""
    return b',"ItemCollectionMetrics":' + orjson.dumps(collection(table, key))


def body_of(*members: bytes) -> bytes:
    """A JSON object of members that each begin with a comma, or are empty."""
    return b"{" + b"".join(members)[1:] + b"}"
