"""A reader by the Kinesis Client Library's rules while leaders change: every change once, in order per item."""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path

from examples import stream_aggregate
from trizone.services import Services

LEADER_CHANGES_MIN = 3


def hand_over(services: Services) -> int:
    """Let others lead what the node leads that leads most; how many partitions that were."""
    led = [[hosted for hosted in node.hosted_all() if hosted.replica.role == "leader"] for node in services.nodes]
    node, most = max(zip(services.nodes, led, strict=True), key=lambda pair: len(pair[1]))
    for hosted in most:
        node.hand_over(hosted)
    return len(most)


async def test_an_aggregate_is_right_though_leaders_change(tmp_path: Path) -> None:
    async with Services("us-east-1", tmp_path) as services:
        loop, turns, changed = asyncio.get_running_loop(), count(), 0

        def change_leaders() -> None:
            nonlocal changed
            if next(turns) % 2 == 1:
                changed += asyncio.run_coroutine_threadsafe(_call(services), loop).result()

        totals = await asyncio.to_thread(stream_aggregate.run, f"http://{services.router.address}", change_leaders)
    assert changed >= LEADER_CHANGES_MIN
    assert totals.records > 100


async def _call(services: Services) -> int:
    return hand_over(services)
