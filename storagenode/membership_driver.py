"""Leads the members of this node's partitions to where the catalog wants them, one step at a time each."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final, Protocol

from cluster.clock import Clock
from cluster.topology import Topology
from storagenode.hosted import HostedReplica
from storagenode.membership_steps import LetLead, Progress, is_settled, next_step

LOOK_SECONDS: Final = 0.1
ANSWERS_SECONDS: Final = 1.0
"""A node that answered a beat within this time goes on taking what it is sent."""
HAND_OVERS_SECONDS: Final = 3.0
"""Between two tries to let another replica lead."""

_log = logging.getLogger(__name__)


class DriverHost(Protocol):
    """What the driver needs of its node."""

    clock: Clock

    @property
    def topology(self) -> Topology:
        """The newest catalog that the node knows."""
        ...

    def hosted_all(self) -> Iterator[HostedReplica]:
        """Every replica on this node."""
        ...

    def last_heard(self, node: int) -> float:
        """When that node last answered a beat."""
        ...

    def hand_over_to(self, hosted: HostedReplica, to: int) -> None:
        """Let replica `to` lead."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        ...


class MembershipDriver:
    """Looks at every partition that is led here, again and again."""

    def __init__(self, host: DriverHost) -> None:
        self._host = host
        self._handed_over_at: dict[int, float] = {}
        self._settled: dict[int, tuple[int, int]] = {}
        """By partition: the record and the membership, by version, that are known to be at one."""
        self.steps = 0

    async def run(self) -> None:
        """Take steps until cancelled."""
        while True:
            await self._host.sleep(LOOK_SECONDS)
            for hosted in self._host.hosted_all():
                if hosted.replica.may_change():
                    self.look(hosted)

    def look(self, hosted: HostedReplica) -> None:
        """Take the next step of one partition, if there is one."""
        record = self._host.topology.partition(hosted.partition_id)
        if record is None:
            return
        replica, now = hosted.replica, self._host.clock.boottime()
        if self._settled.get(hosted.partition_id) == (record.version, replica.membership.version):
            return
        step = next_step(
            record,
            replica.membership,
            Progress(
                replica.replica,
                replica.last_position,
                lambda peer: replica.match_of(peer) or 0,
                lambda peer: now - self._host.last_heard(hosted.node_of(peer)) < ANSWERS_SECONDS,
            ),
        )
        if step is None:
            if is_settled(record, replica.membership):
                self._settled[hosted.partition_id] = record.version, replica.membership.version
            return
        if isinstance(step, LetLead):
            if now - self._handed_over_at.get(hosted.partition_id, float("-inf")) >= HAND_OVERS_SECONDS:
                self._handed_over_at[hosted.partition_id] = now
                self._host.hand_over_to(hosted, step.replica)
            return
        try:
            effects = replica.change(step, now)
        except ValueError as error:
            _log.debug("partition %d: %s cannot be done yet: %s", hosted.partition_id, step, error)
            return
        self.steps += 1
        _log.info("partition %d: %s", hosted.partition_id, step)
        hosted.perform(effects)
