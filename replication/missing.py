"""What a replica misses that its log cannot give it: its state, or entries that its leader's log no longer holds."""

from __future__ import annotations

from dataclasses import dataclass

from replication.effects import Install
from replication.messages import Append


@dataclass(slots=True)
class Missing:
    """`state`: what is applied does not reach the log's beginning, or is just being replaced.

    `wanted`: the position that a snapshot must cover to be of use; None while none is needed. `renews`: it is needed
    for what is applied, which is damaged, whatever the leader's log holds.
    """

    state: bool
    wanted: int | None
    renews: bool = False

    @classmethod
    def at_start(cls, applied: int, first_position: int) -> Missing:
        """After a restart: whether the log goes on from what is applied."""
        lacks = applied < first_position - 1
        return cls(lacks, first_position - 1 if lacks else None)

    def after(self, message: Append, accepted: bool) -> Install | None:
        """What is to be fetched after an Append was taken or refused."""
        if message.lowest and not accepted:
            self.wanted = max(message.previous_position, self.wanted or 0)
        elif not self.state and not self.renews:
            self.wanted = None
        return None if self.wanted is None else Install(message.sender, self.wanted)

    def renew(self, covers: int) -> None:
        """What is applied is damaged: a snapshot that covers this much is to replace it."""
        self.renews, self.wanted = True, max(covers, self.wanted or 0)

    def give_up(self) -> None:
        """Nobody can give a snapshot for what is damaged."""
        if self.renews:
            self.renews = False
            if not self.state:
                self.wanted = None

    def begin(self, position: int) -> None:
        """A snapshot that covers `position` is about to replace the state."""
        assert self.wanted is not None, "no snapshot is needed"
        assert position >= self.wanted, "the snapshot does not cover what is needed"
        self.state, self.wanted, self.renews = True, None, False
