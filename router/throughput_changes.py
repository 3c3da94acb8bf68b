"""When and how often the throughput of a table or index may change, in DynamoDB's words. All checks raise ApiError."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from dynamo.errors import limit_exceeded, validation
from dynamo.table import Throughput
from router.description_parts import decreases_today

FREE_DECREASES = 4
"""Decreases in one day (UTC) that need not wait for each other (facts.md §2.6)."""
DECREASE_INTERVAL_S = 3_600
SWITCHES_MAX = 4
SWITCHES_WINDOW_S = 86_400
"""A table may be made on-demand so many times in so many seconds."""


def changed_throughput(current: Throughput, read: int, write: int, now: float) -> Throughput:
    """`current` with these units from `now` (seconds since the epoch) on."""
    if (current.read, current.write) == (read, write):
        raise validation(
            "The provisioned throughput for the table will not change. The requested value equals the current value. "
            f"Current ReadCapacityUnits provisioned for the table: {current.read}. "
            f"Requested ReadCapacityUnits: {read}. "
            f"Current WriteCapacityUnits provisioned for the table: {current.write}. "
            f"Requested WriteCapacityUnits: {write}. "
            "Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits."
        )
    lowered = read < current.read or write < current.write
    raised = read > current.read or write > current.write
    if lowered:
        _check_decrease(current, now)
    return Throughput(
        read,
        write,
        last_increase=now if raised else current.last_increase,
        last_decrease=now if lowered else current.last_decrease,
        decreases_today=decreases_today(current, now) + lowered,
    )


def switches_with(now: float, switches: Sequence[float]) -> tuple[float, ...]:
    """The times of a table's switches to on-demand within the window, with one more."""
    recent = tuple(time for time in switches if time > now - SWITCHES_WINDOW_S)
    if len(recent) >= SWITCHES_MAX:
        raise limit_exceeded(
            f"Subscriber limit exceeded: Update to PayPerRequest mode are limited to {SWITCHES_MAX} times in 1 day(s). "
            f"Last update at {_shown(recent[-1])}. "
            f"Next update can be made at {_shown(recent[-SWITCHES_MAX] + SWITCHES_WINDOW_S)}"
        )
    return (*recent, now)


def _check_decrease(current: Throughput, now: float) -> None:
    count, next_at = decreases_today(current, now), current.last_decrease + DECREASE_INTERVAL_S
    if count < FREE_DECREASES or now >= next_at:
        return
    raise limit_exceeded(
        "Subscriber limit exceeded: Provisioned throughput decreases are limited within a given UTC day. "
        f"After the first {FREE_DECREASES} decreases, each subsequent decrease in the same UTC day can be performed at "
        f"most once every {DECREASE_INTERVAL_S} seconds. Number of decreases today: {count}. "
        f"Last decrease at {_shown(current.last_decrease)}. Next decrease can be made at {_shown(next_at)}"
    )


def _shown(time: float) -> str:
    """As Java shows it: Monday, November 30, 2026 at 7:05:09 PM Coordinated Universal Time."""
    moment = datetime.fromtimestamp(time, UTC)
    hour = moment.hour % 12 or 12
    return f"{moment:%A, %B} {moment.day}, {moment.year} at {hour}:{moment:%M:%S %p} Coordinated Universal Time"
