"""What a leader knows of one peer's log.

Invariants:
- match < next; up to `match` the peer's log is durable and equal to the leader's;
- while `probing`, where the logs part is not known: one Append is out at a time (`asked`), and its answer decides;
- otherwise `next` runs ahead of `match` by what was sent and not answered yet;
- while `fetching` is set, entries from that position on are being read from the node's log for this peer;
- `lowest`: what was asked is whether the peer can take anything that the leader still has; while `installing`, it could
  not, and nothing is sent until it is asked again.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Progress:
    """One peer, in the leader's epoch."""

    next: int
    match: int = 0
    probing: bool = True
    asked: bool = False
    fetching: int | None = None
    lowest: bool = False
    installing: bool = False
    tell: bool = False
    """Whether it is to be sent something soon, for what else an Append says."""

    def waits(self) -> bool:
        """Whether nothing may be sent before an answer, before entries were read, or while a snapshot is installed."""
        return self.fetching is not None or self.installing or (self.probing and self.asked)

    def sent(self, last: int) -> None:
        """An Append left whose last entry (or previous position) is `last`."""
        self.asked = True
        self.tell = False
        self.next = last + 1

    def accepted(self, match: int) -> bool:
        """The peer's log is durable up to `match`; whether that is news."""
        news = match > self.match
        if news:
            self.match = match
        if self.next <= self.match:
            self.next, self.fetching = self.match + 1, None
        self.probing = self.asked = self.lowest = self.installing = False
        return news

    def refused(self, agreed: int) -> None:
        """The logs may agree up to `agreed`, not after. A late refusal may say too little, never too much.

        If even the lowest was refused the peer needs a snapshot. Where a late refusal made it seem so, the peer's
        answer to the lowest puts it right.
        """
        lowest = self.lowest
        self.restart(max(self.match, min(self.next - 1, agreed)) + 1)
        self.installing = lowest

    def restart(self, position: int) -> None:
        """Probe from `position` on."""
        self.next, self.probing, self.asked, self.fetching = position, True, False, None
        self.lowest = self.installing = False
