"""Resource policies: documents that are kept with a table and given back. All checks raise ApiError."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec

from dynamo.errors import ApiError
from dynamo.policy import policy_of
from dynamo.table import Table

NO_POLICY = "NO_POLICY"
"""The ExpectedRevisionId of a table that is to have no policy yet."""


def check_policy(policy: str) -> str:
    """The policy, if it is one that says who may do what to a table."""
    policy_of(policy, of_resource=True)
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
