"""The seam between services and threads: blocking work leaves the event loop through here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

T = TypeVar("T")


class Executor(Protocol):
    """Runs blocking functions away from the event loop."""

    async def run(self, function: Callable[[], T]) -> T:
        """The function's result, or its exception."""
        ...

    def close(self) -> None:
        """Wait for what is running, then take no more."""
        ...


class ThreadExecutor:
    """Runs blocking functions in a pool of threads. One thread gives strict order."""

    def __init__(self, name: str, threads: int = 1) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)

    async def run(self, function: Callable[[], T]) -> T:
        """Run `function` in the pool."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, function)

    def close(self) -> None:
        """Wait for what is running, then take no more."""
        self._pool.shutdown()
