"""What descriptions of tables and of indexes have in common."""

from __future__ import annotations

from typing import Any

from dynamo.table import KeySchema, Throughput

ON_DEMAND_READ_UNITS = 12_000
ON_DEMAND_WRITE_UNITS = 4_000
"""What a new on-demand table or index sustains at once, which is also its warm throughput."""

SECONDS_A_DAY = 86_400


def key_schema(keys: KeySchema) -> list[dict[str, str]]:
    """The KeySchema, hash attributes first."""
    hashes = [{"AttributeName": name, "KeyType": "HASH"} for name in keys.hash]
    return hashes + [{"AttributeName": name, "KeyType": "RANGE"} for name in keys.range]


def warm_units(billing: str, throughput: Throughput, read: int, write: int) -> tuple[int, int]:
    """Warm throughput, (read, write) units a second: `read` and `write` as asked for, or the billing mode's default."""
    if billing == "PAY_PER_REQUEST":
        return max(read, ON_DEMAND_READ_UNITS), max(write, ON_DEMAND_WRITE_UNITS)
    return max(read, throughput.read), max(write, throughput.write)


def decreases_today(throughput: Throughput, now: float) -> int:
    """How often it was lowered on this day (UTC)."""
    same_day = int(throughput.last_decrease // SECONDS_A_DAY) == int(now // SECONDS_A_DAY)
    return throughput.decreases_today if same_day else 0


def provisioned_throughput(throughput: Throughput, now: float) -> dict[str, Any]:
    """The ProvisionedThroughput of a description."""
    shown: dict[str, Any] = {}
    if throughput.last_increase:
        shown["LastIncreaseDateTime"] = round(throughput.last_increase, 3)
    if throughput.last_decrease:
        shown["LastDecreaseDateTime"] = round(throughput.last_decrease, 3)
    return {
        **shown,
        "NumberOfDecreasesToday": decreases_today(throughput, now),
        "ReadCapacityUnits": throughput.read,
        "WriteCapacityUnits": throughput.write,
    }


def warm_throughput(units: tuple[int, int]) -> dict[str, Any]:
    """The WarmThroughput of a description."""
    read, write = units
    return {"ReadUnitsPerSecond": read, "WriteUnitsPerSecond": write, "Status": "ACTIVE"}


def on_demand_throughput(read: int, write: int) -> dict[str, Any]:
    """The OnDemandThroughput member of a description, {} where there is no ceiling."""
    if (read, write) == (-1, -1):
        return {}
    return {"OnDemandThroughput": {"MaxReadRequestUnits": read, "MaxWriteRequestUnits": write}}
