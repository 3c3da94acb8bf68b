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

HAND_OVER_ENTRIES = 64
"""The preferred leader may lack so many entries of the log: while they come nothing is served."""
SETTLED_SECONDS = 5.0
"""So long a replica leads before it hands over to the preferred one: that may just have let go, as it stops or has
damage to repair."""
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

    def hand_over(self, hosted: HostedReplica) -> int:
        """Let another replica lead, if one can."""
        ...

    def hand_over_to(self, hosted: HostedReplica, to: int) -> None:
        """Let replica `to` lead."""
        ...

    def preferred_leader(self, partition: int) -> int:
        """The replica that should lead, as the catalog says; 0: any."""
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
        self._led: dict[int, tuple[int, float]] = {}  # by partition: the epoch that is led here, and since when

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
        """A leader that no majority hears steps down; one whose disk hangs hands over, and so does one at a time whose
        partition should be led by another."""
        now = self._host.clock.boottime()
        hangs = self._host.flusher.hanging_for() > self._timing.flush_hang
        for hosted in list(self._host.hosted_all()):
            if hosted.replica.role == "leader":
                hosted.perform(hosted.replica.check_quorum(now))
                if hangs:
                    self._host.hand_over(hosted)
        if not hangs:
            self._hand_over_one(now)

    def _hand_over_one(self, now: float) -> None:
        before, self._led = self._led, {}
        ready: tuple[HostedReplica, int] | None = None
        for hosted in self._host.hosted_all():
            if not hosted.serving:
                continue
            epoch, since = before.get(hosted.partition_id, (0, now))
            since = since if epoch == hosted.replica.epoch else now
            self._led[hosted.partition_id] = hosted.replica.epoch, since
            to = self._host.preferred_leader(hosted.partition_id)
            if ready is None and to not in (0, hosted.replica.replica) and now - since >= SETTLED_SECONDS:
                ready = (hosted, to) if self._can_take_over(hosted, to, now) else None
        if ready is not None:
            self._host.hand_over_to(*ready)

    def _can_take_over(self, hosted: HostedReplica, to: int, now: float) -> bool:
        """Whether the other replica would serve soon: it votes, answers, and has nearly all of the log."""
        replica, beats = hosted.replica, self._peers.leads.get(hosted.nodes.get(to, 0))
        if beats is None or now - beats.last_answer_at > self._timing.lease:
            return False
        if to not in replica.membership.voters or replica.membership.is_log_only(to):
            return False
        match = replica.match_of(to)
        behind = None if match is None else replica.last_position - match
        return behind is not None and behind <= HAND_OVER_ENTRIES and to not in replica.installing_peers

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
