"""Repairs of replicas that go meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from storagenode.damage import NO_DAMAGE, Damage
from storagenode.hosted import HostedReplica
from storagenode.repair import RepairHost, Repairs

PARTITION, REPLICA = 7, 901


@dataclass
class FakeHosted:
    """A damaged replica that cannot be made anew of what its node has."""

    damage: Damage = NO_DAMAGE
    dropped: bool = False
    partition_id: int = PARTITION
    replica: Any = field(default_factory=lambda: SimpleNamespace(replica=REPLICA, role="follower", leader=902))
    nodes: dict[int, int] = field(default_factory=lambda: {REPLICA: 1, 902: 2, 903: 3})


class Node:
    """A node that drops the replica in step `at` of its repair: what its log knew of it is gone then."""

    def __init__(self, at: int) -> None:
        self.hosted = FakeHosted()
        self.log = self
        self.bulk = asyncio.Lock()
        self.asked: list[int] = []
        self._at = at
        self._work: list[Coroutine[Any, Any, None]] = []
        self.hosted.replica.want_state = lambda _: None
        self.hosted.replica.want_no_state = lambda: None

    def _step(self, number: int) -> None:
        self.hosted.dropped = self.hosted.dropped or number == self._at

    def start_work(self, work: Coroutine[Any, Any, None]) -> None:
        """Keep it."""
        self._work.append(work)

    async def run(self, function: Any) -> Any:
        """As an executor does."""
        return function()

    def remove_all(self, partition: int, replica: int) -> None:  # noqa: ARG002
        """The folder's."""
        self._step(0)

    def snapshot_position(self, partition: int) -> int:
        """The log's. Raises KeyError for a partition that is not here."""
        if self.hosted.dropped:
            raise KeyError(partition)
        return 5

    async def mend(self, _: HostedReplica, source: int) -> bool:
        """The installer's: no other replica is of help."""
        self.asked.append(source)
        self._step(len(self.asked))
        return True

    async def sleep(self, _: float) -> None:
        """The third try would not come."""
        self._step(3)

    async def repair(self) -> None:
        """Find the replica damaged, and run what follows."""
        repairs = Repairs(cast(RepairHost, self), *(cast(Any, self) for _ in range(5)))
        repairs.damaged(cast(HostedReplica, self.hosted), "rows are lost", hidden=True, disowned=True)
        for work in self._work:
            await work


@pytest.mark.parametrize("at", range(4))
async def test_a_replica_may_be_dropped_in_every_step_of_its_repair(at: int) -> None:
    node = Node(at)
    await node.repair()
    assert node.asked == [902, 903][:at]
