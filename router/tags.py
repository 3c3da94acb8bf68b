"""Tags of tables. All checks raise ApiError."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dynamo.errors import validation
from router.table_checks import INVALID

TAGS_MAX = 50
RESERVED_PREFIX = "aws:"


def tags_of(tags: Sequence[dict[str, str]]) -> dict[str, str]:
    """A request's tags by key."""
    keys = [tag["Key"] for tag in tags]
    if len(set(keys)) != len(keys):
        raise validation(f"{INVALID}Tag keys must be unique")
    for key in keys:
        if key.lower().startswith(RESERVED_PREFIX):
            raise validation(f"{INVALID}Tag keys must not begin with {RESERVED_PREFIX}: {key}")
    return check_count({tag["Key"]: tag["Value"] for tag in tags})


def check_count(tags: dict[str, str]) -> dict[str, str]:
    """The tags, if a table can have so many."""
    if len(tags) > TAGS_MAX:
        raise validation(f"{INVALID}Too many tags: {len(tags)}, and a table has {TAGS_MAX} at the most")
    return tags


def as_listed(tags: dict[str, str]) -> list[dict[str, Any]]:
    """The tags as ListTagsOfResource shows them, in the order of their keys."""
    return [{"Key": key, "Value": tags[key]} for key in sorted(tags)]
