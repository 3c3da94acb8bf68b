"""What writers were promised, and whether the table keeps it.

A write is *acknowledged*, or it failed for good and is *uncertain*: it may have been carried out, and may even be
carried out later. A key with an uncertain write is never written again, so that its last value is one of a known few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass
class Ledger:
    """Promises about items, whose value is one number, and about counters, which adds of 1 raise."""

    acknowledged: dict[str, int] = field(default_factory=dict)
    """The last acknowledged value by key."""
    uncertain: dict[str, int] = field(default_factory=dict)
    """The value of the last write, which failed for good, by key."""
    added: Counter[str] = field(default_factory=Counter)
    """Acknowledged adds by counter."""
    perhaps_added: Counter[str] = field(default_factory=Counter)
    """Adds that failed for good, by counter."""

    def may_write(self, key: str) -> bool:
        """Whether the key's value is known."""
        return key not in self.uncertain

    def writes_acknowledged(self) -> int:
        """How many items have an acknowledged value, and how many adds were acknowledged."""
        return len(self.acknowledged) + self.added.total()

    def faults_of_items(self, found: Mapping[str, int]) -> list[str]:
        """What is wrong with the items that a whole scan found: lost, old and invented ones. Empty: all is well."""
        faults = []
        for key in sorted(self.acknowledged.keys() | self.uncertain.keys() | found.keys()):
            allowed: set[int | None] = {self.acknowledged.get(key)}  # None: it may be missing
            if key in self.uncertain:
                allowed.add(self.uncertain[key])
            if found.get(key) not in allowed:
                faults.append(f"{key} is {found.get(key)} and not one of {sorted(allowed, key=str)}")
        return faults

    def faults_of_counters(self, found: Mapping[str, int]) -> list[str]:
        """What is wrong with the counters: each is at least what was acknowledged, and at most that plus the rest.

        Without an add that failed for good the two bounds are one, and the counter is exact.
        """
        faults = []
        for name in sorted(self.added.keys() | self.perhaps_added.keys() | found.keys()):
            low = self.added[name]
            high = low + self.perhaps_added[name]
            if not low <= found.get(name, 0) <= high:
                faults.append(f"{name} is {found.get(name, 0)} and not between {low} and {high}")
        return faults
