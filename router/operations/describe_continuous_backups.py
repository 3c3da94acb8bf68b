"""DescribeContinuousBackups."""

from __future__ import annotations

from typing import Any

import orjson

from dynamo.errors import ApiError
from router.context import RequestContext
from router.plan import Plan, Work
from router.table_lookup import find_table


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """Point-in-time recovery is disabled for every table: UpdateContinuousBackups is not built.

    Continuous backups themselves are always enabled, on DynamoDB too.
    """

    async def run() -> bytes:
        try:
            await find_table(body["TableName"], context)
        except ApiError as error:
            if error.type != "ResourceNotFoundException":
                raise
            raise ApiError("TableNotFoundException", f"Table not found: {body['TableName']}") from None
        return orjson.dumps(
            {
                "ContinuousBackupsDescription": {
                    "ContinuousBackupsStatus": "ENABLED",
                    "PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": "DISABLED"},
                }
            }
        )

    return Work(run)
