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
    """Looks at all replicas of a partition at every write. `wrong`: leases that overlapped."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.wrong: list[str] = []
        self._cluster = cluster

    @contextmanager
    def watch(self) -> Iterator[None]:
        """See every write that reaches a leader."""
        write = HostedReplica._write

        def written(hosted: HostedReplica, *arguments: Any) -> bool:
            if hosted.replica.may_write() and len(self.wrong) < WRONG_MAX:
                self._check(hosted)
            return write(hosted, *arguments)

        with patch.object(HostedReplica, "_write", written):
            yield

    def _check(self, leader: HostedReplica) -> None:
        for member in self._cluster.nodes:
            node = member.node
            if node is None or not hasattr(node, "replicas"):
                continue
            other = node.hosted(leader.partition_id)
            if other is None or other is leader or other.replica.epoch >= leader.replica.epoch:
                continue
            if other.replica.may_read(member.clock.boottime()):
                self.wrong.append(
                    f"partition {leader.partition_id}: replica {other.replica.replica} may read in epoch "
                    f"{other.replica.epoch} while {leader.replica.replica} takes writes in epoch {leader.replica.epoch}"
                )
