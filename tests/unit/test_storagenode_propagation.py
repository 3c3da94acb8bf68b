"""Batches of index rows that fail are sent again after a pause, all together."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, cast

from storagenode.propagation import PAUSE_SECONDS, Propagation


class Host:
    """Collects what is to be done later."""

    def __init__(self) -> None:
        self.work: list[Coroutine[Any, Any, None]] = []
        self.slept: list[float] = []

    def start_work(self, work: Coroutine[Any, Any, None]) -> None:
        self.work.append(work)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def test_many_failed_batches_are_one_reason_to_look_again() -> None:
    host, hosted = Host(), cast(Any, object())
    propagation = Propagation(cast(Any, host), cast(Any, None))
    for _ in range(5):
        propagation._wake_later(hosted)
    assert len(host.work) == 1
    asyncio.run(host.work.pop())
    assert host.slept == [PAUSE_SECONDS]
    assert list(propagation._woken) == [hosted]
    propagation._wake_later(hosted)
    assert len(host.work) == 1, "the next failure is another reason"
    host.work.pop().close()
