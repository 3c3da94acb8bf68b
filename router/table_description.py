"""A table as DescribeTable and its like show it, built from the catalog's description."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from dynamo.regions import replica_of
from dynamo.table import Table
from router import description_parts as parts
from router.context import ACCOUNT_ID
from router.index_description import Counts, describe_global, describe_local
from router.replicas import describe_replicas

NO_COUNTS: Mapping[str, Counts] = MappingProxyType({})


def table_arn(region: str, name: str) -> str:
    """The table's ARN."""
    return f"arn:aws:dynamodb:{region}:{ACCOUNT_ID}:table/{name}"


def describe(
    table: Table,
    region: str,
    now: float,
    *,
    items: int = 0,
    size: int = 0,
    status: str = "",
    local_indexes: Mapping[str, Counts] = NO_COUNTS,
    global_indexes: Mapping[str, Counts] = NO_COUNTS,
) -> dict[str, Any]:
    """The TableDescription. `size` is in DynamoDB's bytes, `now` in seconds since the epoch; `status` is shown instead
    of the table's own where an answer speaks of what has just begun. What indexes hold is given by their names."""
    arn = table_arn(region, table.name)
    description: dict[str, Any] = {
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": type_} for name, type_ in table.attribute_types.items()
        ],
        "TableName": table.name,
        "KeySchema": parts.key_schema(table.keys),
        "TableStatus": status or _status(table),
        "CreationDateTime": round(table.created, 3),
        "ProvisionedThroughput": parts.provisioned_throughput(table.throughput, now),
        "TableSizeBytes": size,
        "ItemCount": items,
        "TableArn": arn,
        "TableId": table.table_id,
        "DeletionProtectionEnabled": table.deletion_protection,
        "WarmThroughput": parts.warm_throughput(warm_units(table)),
    }
    description.update(_billing(table))
    description.update(_optional(table, arn))
    description.update(describe_local(table, arn, local_indexes))
    description.update(describe_global(table, arn, now, global_indexes))
    description.update(describe_replicas(table))
    return description


def _status(table: Table) -> str:
    """A table whose region is about to leave it is deleted once the others have heard of that."""
    own = replica_of(table, table.region) if table.region else None
    return "DELETING" if own is not None and own.state in ("DELETING", "REMOVED") else table.status


def being_deleted(table: Table) -> Table:
    """The table as the answer to its deletion shows it: the indexes go with it."""
    indexes = tuple(msgspec.structs.replace(index, status="DELETING") for index in table.global_indexes)
    return msgspec.structs.replace(table, global_indexes=indexes)


def being_created(table: Table) -> Table:
    """The table as the answer to its creation shows it, which comes when all is done."""
    indexes = tuple(msgspec.structs.replace(index, status="CREATING") for index in table.global_indexes)
    return msgspec.structs.replace(table, status="CREATING", global_indexes=indexes)


def warm_units(table: Table) -> tuple[int, int]:
    """The table's warm throughput, (read, write) units a second: what was asked for, or its billing mode's default."""
    return parts.warm_units(table.billing, table.throughput, table.warm_read, table.warm_write)


def decreases_today(table: Table, now: float) -> int:
    """How often the provisioned throughput was lowered on this day (UTC)."""
    return parts.decreases_today(table.throughput, now)


def _billing(table: Table) -> dict[str, Any]:
    """Tables that were never on demand have no summary, as on DynamoDB."""
    if table.billing == "PROVISIONED" and not table.on_demand_since:
        return {}
    summary: dict[str, Any] = {"BillingMode": table.billing}
    if table.on_demand_since:
        summary["LastUpdateToPayPerRequestDateTime"] = round(table.on_demand_since, 3)
    return {"BillingModeSummary": summary}


def _optional(table: Table, arn: str) -> dict[str, Any]:
    """What is shown only where it was set."""
    shown: dict[str, Any] = {}
    if table.table_class:
        shown["TableClassSummary"] = {"TableClass": table.table_class}
        if table.table_class_changed:
            shown["TableClassSummary"]["LastUpdateDateTime"] = round(table.table_class_changed, 3)
    if table.billing == "PAY_PER_REQUEST":
        shown |= parts.on_demand_throughput(table.on_demand_read, table.on_demand_write)
    if table.sse_key:
        shown["SSEDescription"] = {"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": table.sse_key}
    if table.stream is not None:
        shown["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": table.stream.view}
    if table.streams:  # the latest one is named as long as it can be read, enabled or not
        shown["LatestStreamLabel"] = table.streams[-1].label
        shown["LatestStreamArn"] = f"{arn}/stream/{table.streams[-1].label}"
    return shown
