"""DescribeLimits."""

from __future__ import annotations

from typing import Any

import orjson

from router.context import RequestContext
from router.plan import Immediate, Plan

ACCOUNT_CAPACITY_UNITS_MAX = 80_000
TABLE_CAPACITY_UNITS_MAX = 40_000

_BODY = orjson.dumps(
    {
        "AccountMaxReadCapacityUnits": ACCOUNT_CAPACITY_UNITS_MAX,
        "AccountMaxWriteCapacityUnits": ACCOUNT_CAPACITY_UNITS_MAX,
        "TableMaxReadCapacityUnits": TABLE_CAPACITY_UNITS_MAX,
        "TableMaxWriteCapacityUnits": TABLE_CAPACITY_UNITS_MAX,
    }
)


def plan(_body: dict[str, Any], _context: RequestContext) -> Plan:
    """DynamoDB's default limits."""
    return Immediate(_BODY)
