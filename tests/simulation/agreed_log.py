"""What the replicas of each partition agreed on: every entry that any of them ever applied.

No two may apply different entries at one position, at whatever time; and as logs are trimmed, only this remembers
everything that a partition's rows have to add up to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

from replication.messages import MEMBERSHIP, Entry
from storagenode.hosted import HostedReplica


class AgreedLog:
    """The entries of every partition. `wrong`: what was applied differently."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self._entries: dict[int, dict[int, Entry]] = {}

    @contextmanager
    def watch(self) -> Iterator[None]:
        """See what is applied, as long as this holds."""
        with watching(lambda: self):
            yield

    def note(self, hosted: HostedReplica, entries: tuple[Entry, ...]) -> None:
        """A replica applies these."""
        known = self._entries.setdefault(hosted.partition_id, {})
        for entry in entries:
            agreed = known.setdefault(entry.position, entry)
            if agreed is not entry and agreed != entry and len(self.wrong) < 10:
                self.wrong.append(
                    f"partition {hosted.partition_id}: replica {hosted.replica.replica} applies {entry}, and {agreed} "
                    "was applied before"
                )

    @property
    def membership_changes(self) -> int:
        """How often the members of a partition changed."""
        return sum(entry.kind == MEMBERSHIP for known in self._entries.values() for entry in known.values())

    def of(self, partition: int, position: int) -> tuple[Entry, ...]:
        """The entries of a partition up to `position`. Raises LookupError if one was never applied anywhere."""
        known = self._entries.get(partition, {})
        try:
            return tuple([known[at] for at in range(1, position + 1)])
        except KeyError as error:
            raise LookupError(f"nobody applied position {error} of partition {partition}") from None


@contextmanager
def watching(log: Callable[[], AgreedLog]) -> Iterator[None]:
    """See what is applied, as long as this holds. `log`: that of the cluster whose code is running."""
    apply = HostedReplica._apply

    def applied(hosted: HostedReplica, entries: tuple[Entry, ...]) -> None:
        log().note(hosted, entries)
        apply(hosted, entries)

    with patch.object(HostedReplica, "_apply", applied):
        yield
