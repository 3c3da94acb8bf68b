"""An asyncio event loop on virtual time: when nothing is ready, time jumps to the next timer. One thread, no real
waiting, and simulated processes that can be killed and stopped."""

from __future__ import annotations

import asyncio
import selectors
from collections import deque
from collections.abc import Coroutine, Mapping
from contextvars import Context
from heapq import heappop
from typing import Any, TypeVar

from tests.simulation.simulated_process import current_process, process_in, process_of

T = TypeVar("T")


class Deadlock(Exception):  # noqa: N818  a finding
    """Nothing is ready and no timer is set: the program would wait for ever."""


class _NoFiles(selectors.BaseSelector):
    """A selector that the loop asks for, and never waits on."""

    def __init__(self) -> None:
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = selectors.SelectorKey(fileobj, 0, events, data)
        self._keys[fileobj] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:  # noqa: ARG002
        raise AssertionError("a virtual loop waits for nothing")


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop. `time()` starts at 0 and only moves when everything waits.

    It replaces one turn of asyncio's own loop, which is where both time and the gate before each callback belong;
    asyncio offers no public place for either.
    """

    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_NoFiles())
        self.set_task_factory(_make_task)  # type: ignore[arg-type]

    def time(self) -> float:
        """Virtual seconds."""
        return self._now

    def _run_once(self) -> None:
        ready, scheduled = self._ready, self._scheduled
        while scheduled and scheduled[0].cancelled():
            heappop(scheduled)._scheduled = False  # type: ignore[attr-defined]
        if not ready:
            if not scheduled:
                raise Deadlock
            self._now = max(self._now, scheduled[0].when())
        while scheduled and scheduled[0].when() <= self._now:
            timer = heappop(scheduled)
            timer._scheduled = False  # type: ignore[attr-defined]
            ready.append(timer)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle.cancelled():
                continue
            process = process_of(handle)
            if process is None or process.runs:
                handle._run()
            else:
                process.hold(handle)


def _make_task(
    loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T], context: Context | None = None, **options: Any
) -> asyncio.Task[T]:
    task = asyncio.Task(work, loop=loop, context=context, **options)
    process = process_in(context) if context is not None else current_process()
    if process is not None:
        process.adopt(task)
    return task


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` on a virtual loop of its own, and what it leaves behind to its end by cancelling it."""
    loop = VirtualLoop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(main)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        asyncio.set_event_loop(None)
        loop.close()
