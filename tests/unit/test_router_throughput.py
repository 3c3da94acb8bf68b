"""How often throughput may be lowered, and a table be made on-demand."""

from __future__ import annotations

import pytest

from dynamo.errors import ApiError
from dynamo.table import Throughput
from router.throughput_changes import changed_throughput, switches_with

MIDNIGHT = 20_000 * 86_400.0
HOUR = 3_600.0


def lowered(times: list[float]) -> Throughput:
    """Throughput that was lowered by one unit at each of these times."""
    throughput = Throughput(1_000, 1_000)
    for time in times:
        throughput = changed_throughput(throughput, throughput.read - 1, throughput.write, time)
    return throughput


def test_four_decreases_need_not_wait() -> None:
    four = lowered([MIDNIGHT + second for second in range(4)])
    assert four.decreases_today == 4
    with pytest.raises(ApiError, match="LimitExceededException") as raised:
        changed_throughput(four, 1, 1, MIDNIGHT + 3 + HOUR - 1)
    assert raised.value.message == (
        "Subscriber limit exceeded: Provisioned throughput decreases are limited within a given UTC day. After the "
        "first 4 decreases, each subsequent decrease in the same UTC day can be performed at most once every 3600 "
        "seconds. Number of decreases today: 4. Last decrease at Friday, October 4, 2024 at 12:00:03 AM Coordinated "
        "Universal Time. Next decrease can be made at Friday, October 4, 2024 at 1:00:03 AM Coordinated Universal Time"
    )
    assert changed_throughput(four, 1, 1, MIDNIGHT + 3 + HOUR).decreases_today == 5


def test_27_decreases_a_day() -> None:
    """Four at once, then one each hour: 27 until midnight, and a new day begins anew."""
    times = [MIDNIGHT + second for second in range(4)]
    times += [MIDNIGHT + 3 + hour * HOUR for hour in range(1, 24)]
    assert lowered(times).decreases_today == 27
    assert changed_throughput(lowered(times), 1, 1, MIDNIGHT + 86_400).decreases_today == 1


def test_increases_are_not_limited() -> None:
    throughput = lowered([MIDNIGHT + second for second in range(4)])
    for second in range(100):
        throughput = changed_throughput(throughput, throughput.read + 1, throughput.write, MIDNIGHT + 5 + second)
    assert (throughput.decreases_today, throughput.last_increase) == (4, MIDNIGHT + 104)


def test_one_lower_and_one_higher_is_a_decrease() -> None:
    with pytest.raises(ApiError, match="LimitExceededException"):
        changed_throughput(lowered([MIDNIGHT + second for second in range(4)]), 2_000, 1, MIDNIGHT + 9)


def test_what_does_not_change() -> None:
    with pytest.raises(ApiError, match="The requested value equals the current value"):
        changed_throughput(Throughput(5, 6), 5, 6, MIDNIGHT)


def test_four_switches_to_on_demand_a_day() -> None:
    switches: tuple[float, ...] = ()
    for hour in range(4):
        switches = switches_with(MIDNIGHT + hour * HOUR, switches)
    with pytest.raises(ApiError, match="LimitExceededException") as raised:
        switches_with(MIDNIGHT + 86_399, switches)
    assert (
        "limited to 4 times in 1 day(s). Last update at Friday, October 4, 2024 at 3:00:00 AM" in raised.value.message
    )
    assert "Next update can be made at Saturday, October 5, 2024 at 12:00:00 AM" in raised.value.message
    assert len(switches_with(MIDNIGHT + 86_400, switches)) == 4
