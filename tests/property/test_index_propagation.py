"""A global index ends as what its table says, whatever happens to leaders and messages on the way."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from storagenode import index_feed, propagation
from tests.property.index_world import World

STEPS = 150


def shrink_limits(patch: pytest.MonkeyPatch, dice: Random) -> None:
    """Small limits, so that every boundary is met in a short run."""
    request_rows = dice.randint(1, 4)
    patch.setattr(index_feed, "REQUEST_ROWS_MAX", request_rows)
    patch.setattr(index_feed, "WAITING_ROWS_MAX", 3 * request_rows)
    patch.setattr(propagation, "SLICE_ITEMS", dice.randint(1, 6))
    patch.setattr(propagation, "TOUCHED_ROWS", 2)
    patch.setattr(propagation, "NOTE_ROWS", 4)


@settings(deadline=None, max_examples=50, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(st.integers(0, 1 << 64))
def test_an_index_equals_its_table(seed: int) -> None:
    dice = Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        shrink_limits(patch, dice)
        world = World(dice, indexed=dice.random() < 0.5)
        for _ in range(STEPS):
            world.step()
        world.settle()
        assert world.shown() == world.wanted()
        assert world.is_right()


def test_change_rows_go_when_the_index_has_them() -> None:
    world = World(Random(1), indexed=True)
    for _ in range(50):
        world.write()
    world.settle()
    assert world.change_rows() > 40
    for node in world.nodes:
        node.propagation.note(node.leader)  # type: ignore[arg-type]
    world.settle()
    assert world.change_rows() == 0
    for node in world.nodes:
        position = len(node.leader.log.entries)
        node.propagation.note(node.leader)  # type: ignore[arg-type]
        assert len(node.leader.log.entries) == position, "an idle partition writes nothing"
