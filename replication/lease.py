"""Leases: who promised what until when.

A leader may read locally while a majority has, within the last lease, answered a beat; it counts from the *sending* of
the beat, on its own clock. A voter makes no promise to withhold its vote. Instead each vote says what is left of the
lease that the voter last answered, counted from its *receipt*, which is never before the sending. Any majority that
confirmed the old leader shares a voter with the majority that elects the new one, so that the longest of what is left,
plus `Timing.drift_margin`, outlasts the old lease.

A voter does not remember its answers over a restart. Within a lease of one it reports a whole lease.
"""

from __future__ import annotations

from typing import Protocol

from replication.membership import Membership
from replication.timing import Timing

NEVER = float("-inf")


class Contact(Protocol):
    """What a replica asks and tells its node about beats. Nothing here costs anything per beat and partition."""

    def answered_at(self) -> float:
        """When this node last answered a beat that covered this replica, whoever led; `NEVER` if it did not."""
        ...

    def confirmed_at(self, peer: int, epoch: int) -> float:
        """Sending time of the latest beat that replica `peer` answered and that covered this partition and epoch."""
        ...

    def changed(self, epoch: int, leader: int, leads: bool, now: float) -> None:
        """This replica now knows `leader` (0: none) in `epoch`; the next beat sent or answered says so."""
        ...

    def members_changed(self, membership: Membership, epoch: int) -> None:
        """These are the members now. `epoch`: the one in which this replica leads, 0 if it does not."""
        ...


class NoContact:
    """For a replica without peers."""

    def answered_at(self) -> float:
        """There is nobody to answer."""
        return NEVER

    def confirmed_at(self, peer: int, epoch: int) -> float:  # noqa: ARG002
        """Nobody confirms."""
        return NEVER

    def changed(self, epoch: int, leader: int, leads: bool, now: float) -> None:
        """Nobody is told."""

    def members_changed(self, membership: Membership, epoch: int) -> None:
        """There is nobody to beat for."""


def lease_left(timing: Timing, answered_at: float, restarted_at: float, now: float) -> float:
    """Seconds left of the lease that a voter may have answered last; `restarted_at` is `NEVER` for a new replica."""
    return max(0.0, max(answered_at, restarted_at) + timing.lease - now)


def serve_from(timing: Timing, left: float, now: float) -> float:
    """When a leader may serve that heard at `now` of a lease with `left` seconds to go."""
    return now + left + timing.drift_margin
