"""What the log must keep, and whose snapshot would let it go. Decisions only.

A segment may go when all its entries are
- covered by a durable snapshot of this node's, and applied: after a restart that found that snapshot damaged, the state
  is made of the log once more, which must not go meanwhile; and
- matched by every follower, as the leader knows it, while the log is under half its bound; by the live ones alone above
  that; above three quarters no follower counts, and whoever lags behind gets a snapshot; and
- older than the time within which a retried write must be answered from its entry (`log_keep_seconds`), unless the log
  is above three quarters of its bound.

Followers know nothing of each other, so on them the first and the last rule hold alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from storagenode.hosted import HostedReplica
from storagenode.log.node_log import NodeLog

KEEP_FOR_ALL: Final = 1 / 2
KEEP_FOR_LIVE: Final = 3 / 4


class SegmentAges:
    """Since when each full segment has been full, as far as this process saw it: unseen ones count from its start."""

    def __init__(self) -> None:
        self._since: dict[int, float] = {}
        self._next = 0

    def look(self, oldest: int, current: int, now: float) -> None:
        """The log has these segments at `now`."""
        for segment in range(max(oldest, self._next), current):
            self._since[segment] = now
        self._next = max(self._next, current)
        for segment in [segment for segment in self._since if segment < oldest]:
            del self._since[segment]

    def first_since(self, time: float, current: int) -> int:
        """The oldest segment that was not full before `time`."""
        return min((segment for segment, since in self._since.items() if since > time), default=current)


def first_needed(hosted: HostedReplica, log: NodeLog, sending: int | None, counts: Callable[[int], bool] | None) -> int:
    """The first position of a replica's log that must stay.

    `sending`: the position of a snapshot of it that is on its way to a follower. `counts` says whether a follower's
    node matters; None: no follower does.
    """
    replica = hosted.replica
    if replica.lacks_state:
        return 0
    needed = min(log.snapshot_position(hosted.partition_id), replica.applied) + 1
    if sending is not None:
        needed = min(needed, sending + 1)
    if counts is None or replica.role != "leader":
        return needed
    for peer in [member.replica for member in replica.membership.members if member.replica != replica.replica]:
        match = replica.match_of(peer)
        if match is not None and peer not in replica.installing_peers and counts(hosted.node_of(peer)):
            needed = min(needed, match + 1)
    return needed


def outgrown(hosted: HostedReplica, logged: int, least: int) -> bool:
    """Whether the log since the last snapshot, `logged` bytes, is larger than the partition, and than `least`."""
    return logged > least and logged > hosted.store.space().live


def pinning(replicas: list[HostedReplica], log: NodeLog) -> list[HostedReplica]:
    """Those whose log since their last snapshot begins in the oldest segment of all, and is applied in part."""
    first: dict[int, list[HostedReplica]] = {}
    for hosted in replicas:
        covered = log.snapshot_position(hosted.partition_id)
        segment = log.segment_needed(hosted.partition_id, covered + 1)
        if segment is not None and segment < log.current_segment and hosted.partition.applied.position > covered:
            first.setdefault(segment, []).append(hosted)
    return first[min(first)] if first else []
