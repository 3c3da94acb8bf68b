"""Whether replicas hold the same rows: sums of rows at positions that all of them have stood at. Decisions only.

Every replica ends a write at each multiple of `COMPARED_EVERY`, and remembers the sum there. So replicas that are not
far apart always have positions in common, however busy they are; idle ones have their last one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from replication.messages import Entry

COMPARED_EVERY: Final = 1024
"""Positions."""
REMEMBERED: Final = 32


class RowSums:
    """The sums of one replica's rows, where they can be compared."""

    def __init__(self, position: int, value: int) -> None:
        self._last = (position, value)
        self._kept: deque[tuple[int, int]] = deque(maxlen=REMEMBERED)

    def add(self, position: int, value: int) -> None:
        """The rows are now as of this position."""
        self._last = (position, value)
        if position % COMPARED_EVERY == 0:
            self._kept.append(self._last)

    def known(self) -> dict[int, int]:
        """Sum by position."""
        return dict((*self._kept, self._last))


def runs(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    """The entries, cut where sums are remembered."""
    start = 0
    for end, entry in enumerate(entries, 1):
        if entry.position % COMPARED_EVERY == 0:
            yield entries[start:end]
            start = end
    if start < len(entries):
        yield entries[start:]


class Verdict(NamedTuple):
    """`compared`: with how many others. `odd`: the replica that differs from two that agree. `undecided`: there is a
    difference, and nobody can tell who is right."""

    compared: int
    odd: int = 0
    undecided: bool = False


def judge(sums: Mapping[int, Mapping[int, int]]) -> Verdict:
    """What the sums of a partition's replicas, by replica and position, say of them."""
    replicas = list(sums)
    at = max(set.intersection(*(set(sums[replica]) for replica in replicas)), default=None) if replicas else None
    if at is None or len(replicas) < 2:
        return Verdict(0)
    found = {replica: sums[replica][at] for replica in replicas}
    compared = len(replicas) - 1
    if len(set(found.values())) == 1:
        return Verdict(compared)
    values = list(found.values())
    common = max(values, key=values.count)
    odd = [replica for replica in replicas if found[replica] != common]
    if len(odd) == 1 and len(replicas) > 2:
        return Verdict(compared, odd[0])
    return Verdict(compared, undecided=True)
