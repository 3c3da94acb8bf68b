"""Resource policies: documents that are kept with a table and given back. All checks raise ApiError."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec
import orjson

from dynamo.errors import ApiError, validation
from dynamo.table import Table

POLICY_SIZE_MAX = 20 * 1024
"""Bytes of UTF-8, blanks included."""
NO_POLICY = "NO_POLICY"
"""The ExpectedRevisionId of a table that is to have no policy yet."""


def check_policy(policy: str) -> str:
    """The policy, if it is a JSON object with statements and not too large."""
    if len(policy.encode()) > POLICY_SIZE_MAX:
        raise validation(f"Resource-based policy document is larger than {POLICY_SIZE_MAX} bytes")
    try:
        document = orjson.loads(policy)
    except orjson.JSONDecodeError:
        raise validation("Invalid policy document: it is not JSON") from None
    if not isinstance(document, dict) or not isinstance(document.get("Statement"), list | dict):
        raise validation("Invalid policy document: it has no Statement")
    return policy


def revision(policy: str) -> str:
    """The RevisionId: the same for the same document, as DynamoDB promises it."""
    return str(int.from_bytes(blake2b(policy.encode(), digest_size=6).digest(), "big"))


def check_revision(table: Table, body: dict[str, Any]) -> None:
    """Whether the table's policy is the one that a request expects."""
    expected = body.get("ExpectedRevisionId")
    if expected is None:
        return
    current = revision(table.resource_policy) if table.resource_policy else NO_POLICY
    if expected != current:
        raise policy_not_found(body["ResourceArn"])


def policy_not_found(arn: str) -> ApiError:
    """`PolicyNotFoundException`."""
    return ApiError("PolicyNotFoundException", f"Resource-based policy not found for the provided ResourceArn: {arn}")


def with_policy(table: Table, policy: str) -> Table:
    """The table with this policy; "" takes it away."""
    return msgspec.structs.replace(table, resource_policy=policy)
