"""The memberships that a replica's log holds. The last one is in force, committed or not.

Invariants:
- positions rise; the first is of the membership that the log stands on, 0 for the one that it began with;
- an entry that is replaced takes its membership with it: the one before is in force again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from replication.membership import Membership
from replication.messages import MEMBERSHIP, Entry


class History:
    """`memberships`: (position of its entry, membership), rising, at least one."""

    def __init__(self, memberships: Sequence[tuple[int, Membership]]) -> None:
        assert memberships, "a log stands on some membership"
        self._positions = [position for position, _ in memberships]
        self._memberships = [membership for _, membership in memberships]
        assert self._positions == sorted(set(self._positions)), "memberships lie in order"

    @property
    def current(self) -> Membership:
        """The membership in force."""
        return self._memberships[-1]

    @property
    def position(self) -> int:
        """The position of the entry that holds it."""
        return self._positions[-1]

    def at(self, position: int) -> Membership:
        """The membership that was in force after this position, which is not before the log's beginning."""
        return self._memberships[max(bisect_right(self._positions, position) - 1, 0)]

    def append(self, entries: Iterable[Entry]) -> bool:
        """Takes what entries at the end of the log say; whether it is anything."""
        news = False
        for entry in entries:
            if entry.kind == MEMBERSHIP:
                self._positions.append(entry.position)
                self._memberships.append(Membership.decode(entry.payload))
                news = True
        return news

    def cut(self, position: int) -> bool:
        """`position` and all after it are gone from the log; whether that changes anything."""
        kept = max(bisect_left(self._positions, position), 1)
        gone = kept < len(self._positions)
        del self._positions[kept:]
        del self._memberships[kept:]
        return gone

    def forget(self, upto: int) -> None:
        """The log begins after `upto`: what was in force there is what it stands on."""
        count = bisect_right(self._positions, upto) - 1
        if count > 0:
            del self._positions[:count]
            del self._memberships[:count]

    def restart(self, position: int, membership: Membership) -> None:
        """The log begins anew after `position`, where this was in force."""
        self._positions, self._memberships = [position], [membership]
