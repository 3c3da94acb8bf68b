"""Members come and go under random faults: nothing is lost, nobody reads the past, and whoever is left goes on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replication.membership import Membership
from tests.property.membership_world import MembershipWorld

STORM = 20.0


def storm(seed: int, size: int, prepare: Callable[[MembershipWorld], None] = lambda _: None) -> MembershipWorld:
    """A world after some seconds of load, faults and changes. Raises ViolationError."""
    world = MembershipWorld(seed, size)
    prepare(world)
    world.after(0.0, world.load)
    world.after(1.0, world.storm)
    world.run(STORM)
    return world


def check(seed: int, size: int, *, trims: bool) -> Membership:
    """A storm; then five seconds to recover, and five without an election: who was removed and lingers disturbs nobody.

    Returns the membership at the end.
    """

    def prepare(world: MembershipWorld) -> None:
        world.trims = trims

    world = storm(seed, size, prepare)
    assert world.acknowledged > 20, "too little happened for the checks to mean anything"
    world.heal()
    world.run(5.0)
    before, epochs = world.acknowledged, world.epochs()
    world.run(5.0)
    assert world.acknowledged > before + 50
    assert len(epochs) == 1
    assert world.epochs() == epochs, "an election without a fault"
    members = world.members()
    assert all(node.member is not None and not node.member.replica.membership.joint for node in members)
    assert min(node.disk.applied for node in members if not node.log_only) > before
    assert members[0].member is not None
    return members[0].member.replica.membership


@pytest.mark.parametrize("trims", [False, True])
@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("seed", range(2))
def test_members_come_and_go(seed: int, size: int, trims: bool) -> None:
    """Safety after every event, and progress once the faults end, whoever the members are by then."""
    assert check(seed, size, trims=trims).version > 3, "too few changes for the checks to mean anything"


@pytest.mark.slow
@pytest.mark.parametrize("trims", [False, True])
@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("seed", range(3000, 3080))
def test_members_come_and_go_often(seed: int, size: int, trims: bool) -> None:
    """The same, more often."""
    check(seed, size, trims=trims)


def test_same_seed_same_history() -> None:
    """A failure can be repeated from its seed."""
    first, second = storm(98, 3), storm(98, 3)
    assert first.committed == second.committed
    assert (first.time, first.reads, first.joined, first.lost) == (
        second.time,
        second.reads,
        second.joined,
        second.lost,
    )
