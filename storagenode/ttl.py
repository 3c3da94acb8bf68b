"""Deletes the items whose time to live is over, in the partitions that this node leads, at a steady pace.

An item is looked at again when its delete is decided, since an update may have moved its time; what becomes of it then
is an entry like any other, marked as written by the service.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final, Protocol

from cluster.clock import Clock
from dynamo.codec import CorruptItem
from storagenode.expiry import row_keys
from storagenode.hosted import HostedReplica

BATCH_ROWS: Final = 100
"""Items deleted in one go."""
SWEEP_ROWS_MAX: Final = 5_000
"""Items of one partition deleted in one sweep: clients' writes come in between."""
STEPS_MAX: Final = 50
"""Steps of making an index whole in one sweep."""
STEP_WAIT_SECONDS: Final = 0.005

_log = logging.getLogger(__name__)


class SweepHost(Protocol):
    """What sweeping needs of its node."""

    clock: Clock

    def hosted_all(self) -> Iterator[HostedReplica]:
        """Every replica on this node."""
        ...

    async def breathe(self) -> None:
        """Let others run."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        ...


class TimeToLive:
    """Sweeps every `interval` seconds."""

    def __init__(self, host: SweepHost, interval: float) -> None:
        self._host = host
        self._interval = interval

    async def run(self) -> None:
        """Sweep until cancelled."""
        while True:
            await self._host.sleep(self._interval)
            for hosted in list(self._host.hosted_all()):
                if hosted.partition.expiry is not None and hosted.serving:
                    await self.sweep(hosted)

    async def sweep(self, hosted: HostedReplica) -> None:
        """One look at one partition."""
        try:
            await self._make_whole(hosted)
            await self._delete(hosted)
        except CorruptItem as error:
            _log.error("partition %d: expired items cannot be deleted: %s", hosted.partition_id, error)

    async def _make_whole(self, hosted: HostedReplica) -> None:
        for _ in range(STEPS_MAX):
            expiry = hosted.partition.expiry
            if expiry is None or expiry.is_whole or not hosted.serving:
                return
            position = hosted.propose(expiry.next_step(hosted.store))
            while hosted.serving and hosted.partition.applied.position < position:
                await self._host.sleep(STEP_WAIT_SECONDS)

    async def _delete(self, hosted: HostedReplica) -> None:
        now, after = int(self._host.clock.wall()), b""
        for _ in range(0, SWEEP_ROWS_MAX, BATCH_ROWS):
            expiry = hosted.partition.expiry
            if expiry is None or not hosted.serving:
                return
            rows = expiry.due(hosted.store, now, after, BATCH_ROWS)
            if not rows:
                return
            hosted.expire(row_keys(rows))
            after = rows[-1]
            await self._host.breathe()
