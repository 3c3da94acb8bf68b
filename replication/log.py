"""What a replica knows of its log: the epoch of every position, and the entries that it still has in memory.

Invariants:
- positions first_position..last_position are in the node's log (or on their way there); `first_position` - 1 is the
  position of the snapshot that the log stands on, 0 for none;
- the epoch of every position from first_position - 1 on is known, as spans: epochs never fall along a log;
- the entries in memory are the end of the log, without a gap.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from replication.membership import Membership
from replication.messages import Entry

ENTRY_OVERHEAD = 64
"""Bytes counted for an entry besides its payload."""


@dataclass(frozen=True, slots=True)
class LogSummary:
    """What recovery found. `spans`: (epoch, first position of it), rising, from the epoch of `first_position` - 1 on.

    `tail`: entries at the end of the log for the memory, ending at `last_position`; it may be shorter than what is not
    applied yet, and empty: the replica then asks for the rest (`Effects.load`) once it is committed.

    `memberships`: (position, membership), rising, of the entries that hold one.
    """

    last_position: int = 0
    spans: tuple[tuple[int, int], ...] = ()
    first_position: int = 1
    tail: tuple[Entry, ...] = ()
    memberships: tuple[tuple[int, Membership], ...] = ()


class Log:
    """The log as the core sees it. It is written by the shell, from `Effects.append`."""

    def __init__(self, summary: LogSummary) -> None:
        assert summary.last_position >= summary.first_position - 1, "a log ends before it begins"
        self.first_position = summary.first_position
        self.last_position = summary.last_position
        self._epochs = [epoch for epoch, _ in summary.spans]
        self._starts = [start for _, start in summary.spans]
        assert self._epochs == sorted(set(self._epochs)), "epochs rise along a log"
        assert self._starts == sorted(set(self._starts)), "spans do not overlap"
        assert self.last_position == 0 or self._starts, "the epoch of the last position is not known"
        self._tail = list(summary.tail)
        self.memory_first = self.last_position + 1 - len(self._tail)
        self.memory_bytes = sum(len(entry.payload) + ENTRY_OVERHEAD for entry in self._tail)
        assert not self._tail or self._tail[-1].position == self.last_position, "the tail is the end of the log"

    @property
    def last_epoch(self) -> int:
        """The epoch of the last entry, 0 in an empty log."""
        return self._epochs[-1] if self._epochs else 0

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """(epoch, first position of it), rising."""
        return tuple(zip(self._epochs, self._starts, strict=True))

    def epoch_at(self, position: int) -> int | None:
        """The epoch of an entry; 0 at position 0; None after the end, and before the snapshot."""
        if position > self.last_position:
            return None
        index = bisect_right(self._starts, position) - 1
        if index < 0:
            return 0 if position == 0 else None
        return self._epochs[index]

    def last_not_above(self, position: int, epoch: int) -> int:
        """The last position, not after `position`, whose epoch is not above `epoch`; where two logs may still agree.

        Entries after it cannot be the other log's, whose epochs do not go above `epoch` up to there.
        """
        index = bisect_right(self._epochs, epoch)
        end = self._starts[index] - 1 if index < len(self._starts) else self.last_position
        return min(position, end)

    def append(self, entries: Sequence[Entry]) -> None:
        """Adds what follows the last position."""
        for entry in entries:
            assert entry.position == self.last_position + 1, "a gap in the log"
            assert entry.epoch >= self.last_epoch, "epochs never fall along a log"
            if not self._epochs or entry.epoch != self._epochs[-1]:
                self._epochs.append(entry.epoch)
                self._starts.append(entry.position)
            self.last_position = entry.position
            self.memory_bytes += len(entry.payload) + ENTRY_OVERHEAD
            self._tail.append(entry)

    def cut(self, position: int) -> None:
        """Drops `position` and all after it."""
        kept = max(position - self.memory_first, 0)
        self.memory_bytes -= sum(len(entry.payload) + ENTRY_OVERHEAD for entry in self._tail[kept:])
        del self._tail[kept:]
        self.last_position = position - 1
        self.memory_first = min(self.memory_first, position)
        while self._starts and self._starts[-1] >= position:
            self._starts.pop()
            self._epochs.pop()

    def trim(self, first_position: int) -> None:
        """The node's log no longer holds what lies before `first_position`; a snapshot covers it."""
        assert self.first_position <= first_position <= self.last_position + 1, "trimmed what is not there"
        self.first_position = first_position
        self.forget(first_position - 1)
        kept = max(bisect_right(self._starts, first_position - 1) - 1, 0)
        del self._starts[:kept]
        del self._epochs[:kept]

    def restart(self, position: int, epoch: int) -> None:
        """Nothing is left but a snapshot that covers `position`, whose entry was of `epoch`."""
        self.first_position = self.memory_first = position + 1
        self.last_position = position
        self._epochs, self._starts = [epoch], [position]
        self._tail.clear()
        self.memory_bytes = 0

    def between(self, first: int, last: int) -> tuple[Entry, ...]:
        """The entries first..last, which must be in memory."""
        assert self.memory_first <= first, "no longer in memory"
        return tuple(self._tail[first - self.memory_first : last + 1 - self.memory_first])

    def take(self, first: int, max_bytes: int) -> tuple[Entry, ...]:
        """Entries from `first` on, which must be in memory: as many as fit, and at least one."""
        assert self.memory_first <= first, "no longer in memory"
        start = self.memory_first
        end, room = first, max_bytes
        while end <= self.last_position:
            room -= len(self._tail[end - start].payload) + ENTRY_OVERHEAD
            if room < 0 and end > first:
                break
            end += 1
        return tuple(self._tail[first - start : end - start])

    def forget(self, upto: int) -> None:
        """Drops entries up to `upto` from memory; the node's log has them."""
        count = min(upto, self.last_position) + 1 - self.memory_first
        if count > 0:
            self.memory_bytes -= sum(len(entry.payload) + ENTRY_OVERHEAD for entry in self._tail[:count])
            del self._tail[:count]
            self.memory_first += count

    def shrink(self, max_bytes: int, upto: int) -> None:
        """Drops the oldest entries, none after `upto`, until the memory holds no more than `max_bytes`."""
        excess, end = self.memory_bytes - max_bytes, self.memory_first - 1
        while excess > 0 and end < upto:
            end += 1
            excess -= len(self._tail[end - self.memory_first].payload) + ENTRY_OVERHEAD
        self.forget(end)
