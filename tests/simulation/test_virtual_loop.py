"""What the loop of the simulation owes its runs: one seed, one history."""

from __future__ import annotations

import asyncio

from tests.simulation.virtual_loop import run_virtual

TASKS = 100


async def _order_of_the_cancelled() -> list[int]:
    """A task group of many fails: the order in which its tasks were told."""
    told: list[int] = []

    async def wait(number: int) -> None:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            told.append(number)
            raise

    async def fail() -> None:
        await asyncio.sleep(1)
        raise OSError

    try:
        async with asyncio.TaskGroup() as group:
            for number in range(TASKS):
                group.create_task(wait(number))
            group.create_task(fail())
    except ExceptionGroup:
        pass
    return told


def test_a_task_group_that_fails_cancels_its_tasks_in_the_same_order_in_each_run() -> None:
    """Wherever in memory the tasks of the runs are."""
    orders, held = [], []
    for run in range(5):
        held.append([object() for _ in range(1000 + 37 * run)])
        orders.append(run_virtual(_order_of_the_cancelled()))
    assert sorted(orders[0]) == list(range(TASKS))
    assert orders.count(orders[0]) == len(orders)
