"""The effects of one call while it is under way."""

from __future__ import annotations

from dataclasses import dataclass, field

from replication.effects import NOTHING, Covered, Effects, HardState, Install
from replication.messages import Entry, Message


@dataclass(slots=True)
class Duties:
    """Collects what `Effects` will say."""

    save: HardState | None = None
    append: list[Entry] = field(default_factory=list)
    send_at_once: list[Message] = field(default_factory=list)
    wake_peers: list[int] = field(default_factory=list)
    send_after_flush: list[Message] = field(default_factory=list)
    apply: tuple[Entry, ...] = ()
    role_changed: bool = False
    load: tuple[int, int] | None = None
    covered: Covered | None = None
    install: Install | None = None
    membership_changed: bool = False

    def effects(self) -> Effects:
        """What the shell owes; `NOTHING` itself if there is nothing."""
        if not (
            self.append
            or self.apply
            or self.send_after_flush
            or self.wake_peers
            or self.send_at_once
            or self.role_changed
            or self.save
            or self.load
            or self.covered
            or self.install
            or self.membership_changed
        ):
            return NOTHING
        return Effects(
            self.save,
            tuple(self.append),
            tuple(self.send_at_once),
            tuple(self.wake_peers),
            tuple(self.send_after_flush),
            self.apply,
            self.role_changed,
            self.load,
            self.covered,
            self.install,
            self.membership_changed,
        )
