"""Replication under random faults: safety after every event, and progress once the faults end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.property.replication_world import FAULTS, World

STORM = 12.0
LEASE_FAULTS = ("rumour", "hand over", "freeze")


def storm(seed: int, size: int, prepare: Callable[[World], None] = lambda _: None) -> World:
    """A world after some seconds of load and faults. Raises ViolationError."""
    world = World(seed, size)
    prepare(world)
    world.after(0.0, world.load)
    world.after(1.0, world.storm)
    world.run(STORM)
    return world


@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("seed", range(5))
def test_storm_then_calm(seed: int, size: int) -> None:
    """Nothing acknowledged is lost, nobody reads the past; when the faults end, all replicas soon agree and go on."""
    check_storm_then_calm(seed, size, FAULTS)


@pytest.mark.parametrize("seed", range(100, 105))
def test_leases_alone(seed: int) -> None:
    """Leaders are replaced while their lease runs, so that only the waiting of the next one keeps reads true."""
    check_storm_then_calm(seed, 3, LEASE_FAULTS)


def trims(world: World) -> None:
    """Logs are trimmed all the time, so that whoever was away needs a snapshot."""
    world.trims = True


@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("seed", range(200, 204))
def test_snapshots(seed: int, size: int) -> None:
    """Logs are trimmed, followers fall behind, states get lost: snapshots bring all of it back."""
    world = check_storm_then_calm(seed, size, (*FAULTS, "machine", "isolate"), trims)
    assert world.installs, "nobody needed a snapshot"


@pytest.mark.slow
@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("seed", range(2000, 2100))
def test_many_snapshots(seed: int, size: int) -> None:
    """The same, more often."""
    check_storm_then_calm(seed, size, (*FAULTS, "machine", "isolate"), trims)


@pytest.mark.slow
@pytest.mark.parametrize("faults", [FAULTS, LEASE_FAULTS], ids=["all", "leases"])
@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("seed", range(1000, 1060))
def test_many_storms(seed: int, size: int, faults: tuple[str, ...]) -> None:
    """The same, more often."""
    check_storm_then_calm(seed, size, faults)


def check_storm_then_calm(
    seed: int, size: int, faults: tuple[str, ...], prepare_more: Callable[[World], None] = lambda _: None
) -> World:
    """A storm of these faults; then four seconds to recover, and six without an election. Returns the world."""

    def prepare(world: World) -> None:
        world.faults = faults
        prepare_more(world)

    world = storm(seed, size, prepare)
    assert world.acknowledged > 20, "too little happened for the checks to mean anything"
    # Whoever lost its state cannot stand for a second who did not.
    assert world.reads > (200 if world.trims else 500), "too few moments at which anybody could read"
    assert world.trims or not world.installs, "a snapshot where every log is whole"
    world.heal()
    world.run(4.0)
    before, epochs = world.acknowledged, world.epochs()
    world.run(6.0)
    assert world.acknowledged > before + 50
    assert len(epochs) == 1
    assert world.epochs() == epochs, "an election without a fault"
    assert min(node.disk.applied for node in world.members() if not node.log_only) > before
    return world


def test_same_seed_same_history() -> None:
    """A failure can be repeated from its seed."""
    first, second = storm(99, 3), storm(99, 3)
    assert first.committed == second.committed
    assert (first.time, first.reads, next(first.ties)) == (second.time, second.reads, next(second.ties))
