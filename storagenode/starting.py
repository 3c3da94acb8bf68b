"""What a start does before anything is served: it opens the log in the right order, and waits for room on a full
disk."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from cluster.disk import Disk
from cluster.executor import Executor
from cluster.settings import StorageNodeSettings
from storagenode.identity import Identity
from storagenode.log.errors import LogBroken, LogCorrupt, LogFull
from storagenode.log.node_log import FULL_ERRORS, NodeLog, Recovered
from storagenode.log.segments import has_log
from storagenode.storage import marks
from storagenode.storage.marks import LastStop
from storagenode.storage.store import StoreFull, Stores

FULL_PAUSE_SECONDS: Final = 1.0
"""Between two tries to start on a full disk."""

_log = logging.getLogger(__name__)


def open_log(
    disk: Disk, settings: StorageNodeSettings, identity: Identity, stores: Stores
) -> tuple[NodeLog, Recovered, LastStop]:
    """Read the marks, throw away stores that they do not trust, and read the log. Raises LogError, OSError."""
    data = settings.data
    if identity.incarnation > 1 and stores.existing() and not has_log(disk, f"{data}/log"):
        # A log begun anew would forget the votes of replicas that others still know.
        raise LogBroken(f"the node holds replicas, but its log is lost: {LogCorrupt.REMEDY}")
    stop = marks.last_stop(disk, data)
    if stop is LastStop.KEEPS_CRASHING:
        _log.error("the process crashed again and again: its stores are thrown away and made anew from the log")
    marks.discard_untrusted(stop, stores)
    marks.forget_clean(disk, data)
    log, recovered = NodeLog.open(
        disk,
        f"{data}/log",
        machine_crashed=stop is LastStop.MACHINE_CRASHED,
        segment_bytes=settings.log_segment_bytes,
    )
    try:
        marks.mark_running(disk, data)
        marks.count_start(disk, data, stop)
    except BaseException:
        log.close()
        raise
    return log, recovered, stop


async def when_there_is_room(
    work: Callable[[], None],
    undo: Callable[[], None],
    executor: Executor,
    sleep: Callable[[float], Awaitable[None]],
    folder: str,
) -> None:
    """Do `work`, which blocks; where the disk has no room for it, undo what it did and try again until it has.

    Raises LogBroken for other failures of the disk, and whatever else `work` raises.
    """
    told = False
    while True:
        try:
            await executor.run(work)
        except (OSError, LogFull, StoreFull) as error:
            await executor.run(undo)
            if isinstance(error, OSError) and error.errno not in FULL_ERRORS:
                raise LogBroken(
                    f"the disk of {folder} fails ({error}): replace it, or start again once it works"
                ) from error
            if not told:
                _log.error("the disk of %s is full (%s): the node starts once there is room", folder, error)
            told = True
        else:
            if told:
                _log.warning("there is room on the disk of %s again", folder)
            return
        await sleep(FULL_PAUSE_SECONDS)
