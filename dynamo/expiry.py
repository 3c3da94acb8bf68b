"""When items expire, by the attribute that a table's time to live names."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

import orjson

from dynamo.values import load

PAST_SECONDS_MAX: Final = 5 * 365 * 86_400
"""Items whose time is longer past than this never expire: five years, as DynamoDB documents it."""
TIME_MAX: Final = (1 << 63) - 1


def needle_of(attribute: str) -> bytes:
    """What the canonical JSON of every item that has the attribute contains."""
    return orjson.dumps(attribute)


def expires_at(body: bytes, attribute: str, needle: bytes) -> int | None:
    """When the item with this canonical JSON expires, in seconds since the epoch; None: never.

    `needle` is the attribute's `needle_of`: items without it are not decoded. Only numbers are times; fractions are cut
    off.
    """
    if not attribute or needle not in body:
        return None
    text = load(body).get(attribute, {}).get("N")
    if not isinstance(text, str):
        return None
    time = int(text) if text.isdecimal() else int(Decimal(text))
    return time if 0 < time <= TIME_MAX else None


def is_expired(time: int, now: int) -> bool:
    """Whether an item that expires at `time` is to be deleted at `now`, both in seconds since the epoch."""
    return now - PAST_SECONDS_MAX <= time < now
