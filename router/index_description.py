"""Secondary indexes as DescribeTable and its like show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dynamo.table import Index, Table
from router.description_parts import (
    key_schema,
    on_demand_throughput,
    provisioned_throughput,
    warm_throughput,
    warm_units,
)


class Counts(NamedTuple):
    """What an index holds: entries, and their size in DynamoDB's bytes."""

    items: int = 0
    size: int = 0


def describe_global(table: Table, table_arn: str, now: float, counts: Mapping[str, Counts]) -> dict[str, Any]:
    """The GlobalSecondaryIndexes member, {} for a table without any. `counts` by name."""
    if not table.global_indexes:
        return {}
    shown = [_global(table, index, table_arn, now, counts.get(index.name, Counts())) for index in table.global_indexes]
    return {"GlobalSecondaryIndexes": shown}


def describe_local(table: Table, table_arn: str, counts: Mapping[str, Counts]) -> dict[str, Any]:
    """The LocalSecondaryIndexes member, {} for a table without any. `counts` by name."""
    if not table.local_indexes:
        return {}
    shown = [index_members(index, table_arn, counts.get(index.name, Counts())) for index in table.local_indexes]
    return {"LocalSecondaryIndexes": shown}


def index_members(index: Index, table_arn: str, counts: Counts) -> dict[str, Any]:
    """What every index shows."""
    projection: dict[str, Any] = {"ProjectionType": index.projection}
    if index.non_key_attributes:
        projection["NonKeyAttributes"] = list(index.non_key_attributes)
    return {
        "IndexName": index.name,
        "KeySchema": key_schema(index.keys),
        "Projection": projection,
        "IndexSizeBytes": counts.size,
        "ItemCount": counts.items,
        "IndexArn": f"{table_arn}/index/{index.name}",
    }


def index_warm_units(table: Table, index: Index) -> tuple[int, int]:
    """A global index's warm throughput, (read, write) units a second."""
    return warm_units(table.billing, index.throughput, index.warm_read, index.warm_write)


def _global(table: Table, index: Index, table_arn: str, now: float, counts: Counts) -> dict[str, Any]:
    shown = index_members(index, table_arn, counts) | {
        "IndexStatus": index.status,
        "ProvisionedThroughput": provisioned_throughput(index.throughput, now),
        "WarmThroughput": warm_throughput(index_warm_units(table, index)),
    }
    if index.status == "CREATING" and table.status != "CREATING":
        shown["Backfilling"] = index.backfilling
    if table.billing == "PAY_PER_REQUEST":
        shown |= on_demand_throughput(index.on_demand_read, index.on_demand_write)
    return shown
