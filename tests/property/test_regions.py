"""Random worlds of two and three regions: whatever is delayed, repeated, reordered, restarted, they end alike."""

from __future__ import annotations

from random import Random

import pytest

from tests.property.region_world import RegionWorld
from tests.unit.regional_samples import EAST, SOUTH, WEST

STEPS = 120
SEEDS = 60


def world(seed: int) -> RegionWorld:
    names = (EAST, WEST) if seed % 2 else (EAST, WEST, SOUTH)
    return RegionWorld(Random(seed), names)


@pytest.mark.parametrize("first", range(0, SEEDS, 10))
def test_regions_end_with_the_last_writers_item(first: int) -> None:
    dropped = 0
    for seed in range(first, first + 10):
        made = world(seed)
        for _ in range(STEPS):
            made.step()
        made.check()
        dropped += made.dropped
    assert dropped, "no tombstone was ever let go: the worlds prove less than they should"


def test_deleted_items_stay_deleted_where_tombstones_have_gone() -> None:
    """Late copies of requests that were answered long ago change nothing."""
    for seed in range(100, 110):
        made = world(seed)
        copies = []
        for _ in range(STEPS):
            made.step()
            copies += made.network
        made.settle()
        made.let_go()
        before = {name: made.rows(name) for name in made.names}
        made.network = list(copies)
        while made.network:
            made.deliver(everything=True)
        assert {name: made.rows(name) for name in made.names} == before
        made.check()
