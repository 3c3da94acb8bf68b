"""From a request's description of a secondary index to the catalog's."""

from __future__ import annotations

from typing import Any

from dynamo.table import Index, KeySchema, Throughput


def index_of(element: dict[str, Any]) -> Index:
    """An element of LocalSecondaryIndexes or GlobalSecondaryIndexes, or the Create of an index update, once checked."""
    schema, projection = element["KeySchema"], element["Projection"]
    throughput = element.get("ProvisionedThroughput") or {}
    ceilings = element.get("OnDemandThroughput") or {}
    warm = element.get("WarmThroughput") or {}
    return Index(
        name=element["IndexName"],
        keys=KeySchema(hash=_names(schema, "HASH"), range=_names(schema, "RANGE")),
        projection=projection["ProjectionType"],
        non_key_attributes=tuple(projection.get("NonKeyAttributes") or ()),
        throughput=Throughput(throughput.get("ReadCapacityUnits", 0), throughput.get("WriteCapacityUnits", 0)),
        on_demand_read=ceilings.get("MaxReadRequestUnits", -1),
        on_demand_write=ceilings.get("MaxWriteRequestUnits", -1),
        warm_read=warm.get("ReadUnitsPerSecond", 0),
        warm_write=warm.get("WriteUnitsPerSecond", 0),
    )


def _names(schema: list[dict[str, str]], kind: str) -> tuple[str, ...]:
    return tuple(element["AttributeName"] for element in schema if element["KeyType"] == kind)
