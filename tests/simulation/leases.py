"""Leases exclude each other: while a leader takes writes, none of an earlier epoch may read, asked or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from storagenode.hosted import HostedReplica
from tests.simulation.cluster import SimulatedCluster

WRONG_MAX = 3


class Leases:
    """Looks at all replicas of a partition at every request. `wrong`: leases that overlapped."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.wrong: list[str] = []
        self._cluster = cluster

    @contextmanager
    def watch(self) -> Iterator[None]:
        """See every request that reaches a leader."""
        handle = HostedReplica.handle

        def handled(hosted: HostedReplica, *arguments: Any) -> bool:
            if hosted.replica.role == "leader" and len(self.wrong) < WRONG_MAX:
                self._check(hosted.partition_id)
            return handle(hosted, *arguments)

        with patch.object(HostedReplica, "handle", handled):
            yield

    def _check(self, partition: int) -> None:
        leaders: list[tuple[HostedReplica, float]] = []
        for member in self._cluster.nodes:
            now = member.clock.boottime()
            here = [hosted for hosted in member.hosted_all() if hosted.partition_id == partition]
            leaders += [(hosted, now) for hosted in here if hosted.replica.role == "leader"]
        for older, now in leaders:
            for newer, _ in leaders:
                if (
                    older.replica.epoch < newer.replica.epoch
                    and newer.replica.may_write()
                    and older.replica.may_read(now)
                ):
                    self.wrong.append(
                        f"partition {partition}: replica {older.replica.replica} may read in epoch "
                        f"{older.replica.epoch} while {newer.replica.replica} may write in epoch {newer.replica.epoch}"
                    )
