"""Time for replicas: beats, deadlines and leaders that fall silent. One timer for a node, whatever the number of
partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Protocol

from cluster.clock import Clock
from replication.timing import Timing
from storagenode.flusher import Flusher
from storagenode.hosted import HostedReplica
from storagenode.peers import Peers

CHECKS_PER_BEAT = 3
"""How often, within a beat's interval, silent leaders are looked for."""


class ElectionHost(Protocol):
    """What the timers need of their node."""

    clock: Clock
    flusher: Flusher

    def hosted(self, partition: int) -> HostedReplica | None:
        """This node's replica of the partition."""
        ...

    def hosted_all(self) -> Iterator[HostedReplica]:
        """Every replica on this node."""
        ...

    def hand_over(self, hosted: HostedReplica) -> None:
        """Let another replica lead, if one can."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        ...


class Elections:
    """Drives beats, election timeouts and the replicas' own deadlines."""

    def __init__(self, host: ElectionHost, peers: Peers, timing: Timing) -> None:
        self._host = host
        self._peers = peers
        self._timing = timing
        self._deadlines: dict[HostedReplica, float] = {}
        self._earlier = asyncio.Event()

    def watch(self, hosted: HostedReplica) -> None:
        """The replica's deadline may have changed."""
        deadline = None if hosted.dropped else hosted.replica.deadline()
        if deadline is None:
            self._deadlines.pop(hosted, None)
        elif self._deadlines.get(hosted) != deadline:
            self._deadlines[hosted] = deadline
            self._earlier.set()

    async def run_beats(self) -> None:
        """Beat, and look for silent leaders, until cancelled."""
        check = 0
        while True:
            await self._host.sleep(self._timing.beat / CHECKS_PER_BEAT)
            check = (check + 1) % CHECKS_PER_BEAT
            if check == 0:
                self._peers.beat()
                self._check_leaders()
            now = self._host.clock.boottime()
            for partition in self._peers.overdue():
                if (hosted := self._host.hosted(partition)) is not None:
                    hosted.perform(hosted.replica.stand(now))

    def _check_leaders(self) -> None:
        """A leader that no majority hears steps down; one whose disk hangs hands over."""
        now = self._host.clock.boottime()
        hangs = self._host.flusher.hanging_for() > self._timing.flush_hang
        for hosted in list(self._host.hosted_all()):
            if hosted.replica.role == "leader":
                hosted.perform(hosted.replica.check_quorum(now))
                if hangs:
                    self._host.hand_over(hosted)

    async def run_deadlines(self) -> None:
        """Tick replicas when they asked for it, until cancelled."""
        while True:
            self._earlier.clear()
            now = self._host.clock.boottime()
            due = [hosted for hosted, deadline in self._deadlines.items() if deadline <= now]
            for hosted in due:
                del self._deadlines[hosted]
                hosted.perform(hosted.replica.tick(now))
            wait = min(self._deadlines.values(), default=None)
            if wait is None:
                await self._earlier.wait()
                continue
            try:
                async with asyncio.timeout(max(wait - self._host.clock.boottime(), 0.001)):
                    await self._earlier.wait()
            except TimeoutError:
                continue
