"""Processes inside one thread: whatever is started in a process's context ends when it is killed, and stands still
while it is stopped.

A context (`contextvars`) goes with every task, timer and callback that is made within it, so that the loop can tell
whose each of them is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any

_PROCESS: ContextVar[Process | None] = ContextVar("process", default=None)
_NOBODYS = Context()
_DYING_TURNS_MAX = 1000


class Process:
    """One life of a process. `failed` hears of exceptions that nobody else takes."""

    def __init__(self, name: str, failed: Callable[[str, BaseException], None]) -> None:
        self.name = name
        self.dead = False
        self.runs = True
        """Whether its callbacks are to be run."""
        self._failed = failed
        self._held: list[asyncio.Handle] = []
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self.context = copy_context()
        self.context.run(_PROCESS.set, self)

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run `work` as part of this process."""
        return asyncio.get_running_loop().create_task(work, context=self.context)

    def call(self, function: Callable[..., object], *arguments: object) -> None:
        """Call `function` soon, as part of this process."""
        asyncio.get_running_loop().call_soon(function, *arguments, context=self.context)

    def adopt(self, task: asyncio.Task[Any]) -> None:
        """A task was made in this process's context."""
        self._tasks[task] = None
        task.add_done_callback(self._ended, context=_NOBODYS)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None and not self.dead:
            self._failed(self.name, error)

    def stop(self) -> None:
        """SIGSTOP: nothing runs, and time goes on."""
        self.runs = False

    def resume(self) -> None:
        """SIGCONT: what became due meanwhile runs now."""
        self.runs = not self.dead
        held, self._held = self._held, []
        loop = asyncio.get_running_loop()
        for handle in held:
            if not handle.cancelled():
                loop.call_soon(handle._run)

    def hold(self, handle: asyncio.Handle) -> None:
        """Keep a callback for `resume`; a dead process never runs it."""
        if not self.dead:
            self._held.append(handle)

    async def kill(self) -> None:
        """SIGKILL. Its network and disk must be dead by now: tasks are unwound so that files get closed, and whatever
        they try on their way out must reach nobody."""
        self._failed = _nobody_cares
        self.resume()
        for _ in range(_DYING_TURNS_MAX):
            if not self._tasks:
                break
            for task in list(self._tasks):
                task.cancel()
            await asyncio.sleep(0)
        self.dead = True
        self.runs = False
        assert not self._tasks, f"{self.name} does not die: {list(self._tasks)}"


def current_process() -> Process | None:
    """Whose code is running."""
    return _PROCESS.get()


def process_in(context: Context) -> Process | None:
    """Whose context this is."""
    return context.get(_PROCESS)


def _nobody_cares(_name: str, _error: BaseException) -> None:
    """A dying process may fail as it likes."""
