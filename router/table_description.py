"""A table as DescribeTable and its like show it, built from the catalog's description."""

from __future__ import annotations

from typing import Any

from dynamo.table import KeySchema, Table
from router.context import ACCOUNT_ID

ON_DEMAND_READ_UNITS = 12_000
ON_DEMAND_WRITE_UNITS = 4_000
"""What a new on-demand table sustains at once, which is also its warm throughput."""

SECONDS_A_DAY = 86_400


def table_arn(region: str, name: str) -> str:
    """The table's ARN."""
    return f"arn:aws:dynamodb:{region}:{ACCOUNT_ID}:table/{name}"


def describe(
    table: Table, region: str, now: float, *, items: int = 0, size: int = 0, status: str = ""
) -> dict[str, Any]:
    """The TableDescription. `size` is in DynamoDB's bytes, `now` in seconds since the epoch; `status` is shown instead
    of the table's own where an answer speaks of what has just begun."""
    arn = table_arn(region, table.name)
    description: dict[str, Any] = {
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": type_} for name, type_ in table.attribute_types.items()
        ],
        "TableName": table.name,
        "KeySchema": key_schema(table.keys),
        "TableStatus": status or table.status,
        "CreationDateTime": round(table.created, 3),
        "ProvisionedThroughput": _throughput(table, now),
        "TableSizeBytes": size,
        "ItemCount": items,
        "TableArn": arn,
        "TableId": table.table_id,
        "DeletionProtectionEnabled": table.deletion_protection,
        "WarmThroughput": _warm_throughput(table),
    }
    description.update(_billing(table))
    description.update(_optional(table, arn))
    return description


def key_schema(keys: KeySchema) -> list[dict[str, str]]:
    """The KeySchema, hash attributes first."""
    hashes = [{"AttributeName": name, "KeyType": "HASH"} for name in keys.hash]
    return hashes + [{"AttributeName": name, "KeyType": "RANGE"} for name in keys.range]


def warm_units(table: Table) -> tuple[int, int]:
    """The table's warm throughput, (read, write) units a second: what was asked for, or its billing mode's default."""
    if table.billing == "PAY_PER_REQUEST":
        return max(table.warm_read, ON_DEMAND_READ_UNITS), max(table.warm_write, ON_DEMAND_WRITE_UNITS)
    return max(table.warm_read, table.throughput.read), max(table.warm_write, table.throughput.write)


def decreases_today(table: Table, now: float) -> int:
    """How often the provisioned throughput was lowered on this day (UTC)."""
    throughput = table.throughput
    same_day = int(throughput.last_decrease // SECONDS_A_DAY) == int(now // SECONDS_A_DAY)
    return throughput.decreases_today if same_day else 0


def _throughput(table: Table, now: float) -> dict[str, Any]:
    throughput = table.throughput
    shown: dict[str, Any] = {}
    if throughput.last_increase:
        shown["LastIncreaseDateTime"] = round(throughput.last_increase, 3)
    if throughput.last_decrease:
        shown["LastDecreaseDateTime"] = round(throughput.last_decrease, 3)
    return {
        **shown,
        "NumberOfDecreasesToday": decreases_today(table, now),
        "ReadCapacityUnits": throughput.read,
        "WriteCapacityUnits": throughput.write,
    }


def _warm_throughput(table: Table) -> dict[str, Any]:
    read, write = warm_units(table)
    return {"ReadUnitsPerSecond": read, "WriteUnitsPerSecond": write, "Status": "ACTIVE"}


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
    if table.billing == "PAY_PER_REQUEST" and (table.on_demand_read, table.on_demand_write) != (-1, -1):
        shown["OnDemandThroughput"] = {
            "MaxReadRequestUnits": table.on_demand_read,
            "MaxWriteRequestUnits": table.on_demand_write,
        }
    if table.sse_key:
        shown["SSEDescription"] = {"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": table.sse_key}
    if table.stream_view:
        shown["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": table.stream_view}
        shown["LatestStreamLabel"] = table.stream_label
        shown["LatestStreamArn"] = f"{arn}/stream/{table.stream_label}"
    return shown
