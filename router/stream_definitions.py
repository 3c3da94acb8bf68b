"""Enabling and disabling streams, in DynamoDB's words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from dynamo.errors import validation
from dynamo.table import Stream, Table
from router.table_checks import INVALID

RETENTION_SECONDS = 86_400
"""How long a stream can be read after it was disabled."""
_STEP = 0.001


def new_stream(specification: dict[str, Any] | None, now: float) -> Stream | None:
    """The stream of a table that is made. Raises ApiError."""
    if not specification:
        return None
    if specification["StreamEnabled"]:
        return _stream(specification, now)
    if specification.get("StreamViewType"):
        raise validation(
            f"{INVALID}Table is being created with a stream disabled, UpdateViewType should not be specified"
        )
    return None


def changed_streams(table: Table, specification: dict[str, Any], now: float) -> tuple[Stream, ...]:
    """The table's streams after an UpdateTable with this StreamSpecification. Raises ApiError."""
    current = table.stream
    kept = tuple(stream for stream in table.streams if is_readable(stream, now))
    if specification["StreamEnabled"]:
        if current is not None:
            raise validation(f"Table already has an enabled stream: TableName: {table.name}")
        # No two streams of a table may have one label.
        since = max((stream.enabled + _STEP for stream in kept), default=0.0)
        return (*kept, _stream(specification, max(now, since)))
    if current is None:
        raise validation(f"Table has no stream to disable: TableName: {table.name}")
    return (*kept[:-1], msgspec.structs.replace(current, disabled=now))


def is_readable(stream: Stream, now: float) -> bool:
    """Whether there may be records of it."""
    return not stream.disabled or now < stream.disabled + RETENTION_SECONDS


def _stream(specification: dict[str, Any], now: float) -> Stream:
    view = specification.get("StreamViewType")
    if view is None:
        raise validation(f"{INVALID}StreamViewType must be specified when StreamEnabled is true")
    label = datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
    return Stream(label, view, now)
