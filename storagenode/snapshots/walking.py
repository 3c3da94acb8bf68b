"""Walks over all rows of a store, beside everything else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from cluster.executor import Executor
from storagenode.storage.row_sums import RowWalk
from storagenode.storage.store import Store, StoreError

SLICE_ROWS: Final = 256
"""Under a millisecond."""
ROW_BYTES: Final = 1024
"""What looking at a row costs, in bytes that could be read meanwhile."""

COPIED_ROW_BYTES: Final = 512
"""The same where the rows were just written, and need not be read from the disk."""


class RowsDamaged(StoreError):  # noqa: N818
    """A store's rows are not what was written."""


async def steps(store: Store, executor: Executor) -> AsyncIterator[RowWalk]:
    """Walk over the rows; the walk as it is after each slice, the last one whole or void. Raises StoreBroken.

    After a slice it is as of this very moment: ask nothing of it after another `await`.
    """
    walk = store.begin_walk()
    while not walk.whole and not walk.void:
        await executor.run(store.walk_slice(walk, SLICE_ROWS))
        if not walk.void:
            walk.end()
        yield walk


async def require_whole(store: Store, executor: Executor, pause: Callable[[int], Awaitable[None]]) -> None:
    """Look at all rows of a store that nobody uses yet. Raises RowsDamaged, StoreBroken.

    `pause` is told how many bytes' worth of work was just done.
    """
    done = 0
    async for walk in steps(store, executor):
        if walk.damaged:
            raise RowsDamaged(f"rows of a copy are damaged: {walk.damaged[0]}")
        if walk.whole and walk.sum != store.row_sum():
            raise RowsDamaged("rows of a copy are missing, or are not those that were written")
        work = walk.rows * COPIED_ROW_BYTES
        await pause(work - done)
        done = work
