"""Keys that lie in a wanted partition."""

from __future__ import annotations

from itertools import count

from tests.chaos.real_cluster import PartitionView


def key_in(partition: PartitionView, name: str) -> str:
    """A key of the partition that begins with `name`."""
    return next(key for number in count() if partition.holds(key := f"{name}-{number}"))
