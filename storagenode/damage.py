"""What is known to be wrong with a replica's rows, and what may be given out meanwhile."""

from __future__ import annotations

from typing import Final, NamedTuple

BEYOND_REPAIR: Final = "The data is damaged on every replica; the log of the storage nodes says what can be done"
"""What clients are told."""


class Damage(NamedTuple):
    """`reason` is empty: nothing is wrong. `hidden`: any row may be wrong or missing, not only those that fail their
    checksums. `disowned`: what this node has of its own, snapshot and log, is not to be trusted either.
    `beyond_repair`: neither this node nor another has what it takes to make the rows anew."""

    reason: str = ""
    hidden: bool = False
    disowned: bool = False
    beyond_repair: bool = False
    covers: int = 0
    """What another replica's snapshot must cover, because this node's log is damaged there."""

    @property
    def refuses(self) -> bool:
        """Whether nothing is given out. Where nobody holds a damaged row whole, the other rows are served."""
        return bool(self.reason) and (self.hidden or not self.beyond_repair)


NO_DAMAGE: Final = Damage()
