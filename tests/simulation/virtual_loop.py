"""An asyncio event loop on virtual time: when nothing is ready, time jumps to the next timer. One thread, no real
waiting, and simulated processes that can be killed and stopped."""

from __future__ import annotations

import asyncio
import selectors
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from contextvars import Context
from heapq import heappop, heappush
from itertools import count
from typing import Any, TypeVar

from tests.simulation.simulated_process import current_process, process_in

T = TypeVar("T")


TURNS_MAX = 200_000
"""Turns of the loop at one moment of virtual time."""


class Deadlock(Exception):  # noqa: N818  a finding
    """Nothing is ready and no timer is set: the program would wait for ever."""


class Livelock(Exception):  # noqa: N818  a finding
    """Something is always ready, so that time stands still."""


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
    asyncio offers no public place for either. Timers are kept as tuples, which are compared without running Python;
    those of one moment come in the order in which they were set.
    """

    _ready: deque[asyncio.Handle]

    def __init__(self) -> None:
        self._now = 0.0
        self._turns = 0
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._numbers = count()
        self.task_numbers = count()
        super().__init__(_NoFiles())
        self.set_task_factory(_make_task)  # type: ignore[arg-type]

    def time(self) -> float:
        """Virtual seconds."""
        return self._now

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *arguments: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call back at a time."""
        timer = asyncio.TimerHandle(when, callback, arguments, self, context)
        heappush(self._timers, (when, next(self._numbers), timer))
        return timer

    def _run_once(self) -> None:
        ready, timers = self._ready, self._timers
        if not ready:
            while timers and timers[0][2]._cancelled:
                heappop(timers)
            if not timers:
                raise Deadlock
            if timers[0][0] > self._now:
                self._now, self._turns = timers[0][0], 0
        now = self._now
        while timers and timers[0][0] <= now:
            ready.append(heappop(timers)[2])
        self._turns += 1
        if self._turns > TURNS_MAX:
            raise Livelock(f"time stands still at {now}")
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            process = process_in(handle._context)  # type: ignore[attr-defined]
            if process is None or process.runs:
                handle._run()
            else:
                process.hold(handle)


class _NumberedTask(asyncio.Task[T]):
    """A task whose place in a set depends on when it was made and not on where in memory it is.

    asyncio keeps tasks in sets, and a task group that fails cancels its tasks in their set's order.
    """

    def __init__(self, work: Coroutine[Any, Any, T], *, loop: VirtualLoop, **options: Any) -> None:
        self._number = next(loop.task_numbers)
        super().__init__(work, loop=loop, **options)

    def __hash__(self) -> int:
        return self._number


def _make_task(
    loop: VirtualLoop, work: Coroutine[Any, Any, T], context: Context | None = None, **options: Any
) -> asyncio.Task[T]:
    task = _NumberedTask(work, loop=loop, context=context, **options)
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
