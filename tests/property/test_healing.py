"""Whatever happens to nodes, plans never endanger what is there, and end with everything in its place."""

from __future__ import annotations

from random import Random

import pytest

from autoadmin.health import Health, health
from autoadmin.planner import Rules
from autoadmin.plans import balance, orders, situation
from autoadmin.plans.balance import differs
from autoadmin.view import LeaderSeen, View
from cluster.topology import MembershipChange, Partition, Topology
from tests.property.healing_world import World

SEEDS = 16
MUTANT_SEEDS = 12
REPLACE_AFTER = 20.0
SETTLED = 40
"""Seconds in which leaders come to rest once replicas have."""
QUIET = 60


def life(seed: int) -> None:
    """A cluster through a random life, and then at rest. Raises AssertionError when something is wrong."""
    random = Random(seed)
    leaders = random.choice(["spread", "spread", "gathered"])
    rules = Rules(REPLACE_AFTER, random.randint(1, 4), leaders)  # type: ignore[arg-type]
    world = World(random, random.randint(1, 3), random.randint(3, 9), rules, catch_up=random.choice([7, 40]))
    for zone in random.choices("abc", k=random.randint(0, 2)):
        world.grow(zone)
    for _ in range(random.randint(3, 16)):
        _event(world, random)
        if random.random() < 0.5:
            world.run(random.choice([1, 3, 10, 30]))
        else:
            _run_into_change(world, random)
    _end(world, random)


def _event(world: World, random: Random) -> None:
    up = [node for node, found in sorted(world.nodes.items()) if found.up]
    down = [node for node in sorted(world.nodes) if node not in up]
    event = random.choice(["kill", "kill", "start", "start", "wipe", "drain", "undrain", "grow"])
    if event == "kill" and len(down) < 2:
        world.kill(random.choice(up))
    elif event == "start" and down:
        world.start(random.choice(down))
    elif event == "wipe" and (spare := [node for node in up if _can_do_without(world, node)]):
        world.wipe(random.choice(spare))
    elif event in ("drain", "undrain"):
        node = random.choice(sorted(world.catalog.topology.nodes))
        world.drain(node, draining=event == "drain")
    elif event == "grow" and len(world.nodes) < 12:
        world.grow(random.choice("abc"))


def _run_into_change(world: World, random: Random) -> None:
    """Until replicas are joining somewhere, or nothing comes of it; and a little longer."""
    for _ in range(30):
        if any(partition.leaving for partition in world.catalog.topology.partitions.values()):
            break
        world.tick()
    world.run(random.randint(1, 6))


def _can_do_without(world: World, node: int) -> bool:
    """Whether every partition would still have all that was written, and a majority, if this node's disk were lost."""
    for id_, truth in world.truths.items():
        for voters in truth.members.sets():
            rest = [voter for voter in voters if world.holder(id_, voter) is not world.nodes[node]]
            current = [copy for voter in rest if (copy := world.up_copy(id_, voter)) and copy.written == truth.written]
            if len(current) * 2 <= len(voters) or not world.live_full(id_, rest):
                return False
    return True


def _end(world: World, random: Random) -> None:
    """All nodes return, and each zone keeps one that may hold something; then everything is as it should be, and
    nothing is changed any more."""
    for node, found in sorted(world.nodes.items()):
        if not found.up:
            world.start(node)
        known = world.catalog.topology.nodes.get(node)
        if known is not None and known.draining and (random.random() < 0.5 or _is_last(world, node)):
            world.drain(node, draining=False)
    for _ in range(2):  # leaders come to rest after replicas
        world.until(lambda: _is_at_rest(world), 3_000)
        world.run(SETTLED)
    at = world.catalog.topology.at
    world.run(QUIET)
    assert world.catalog.topology.at == at, "something is changed although nothing is to be done\n" + world.describe()


def _is_last(world: World, node: int) -> bool:
    """Whether its zone has no other that may hold something."""
    known = world.catalog.topology.nodes
    zone = known[node].zone
    return not any(
        place.zone == zone and not place.draining and id_ != node and id_ in world.nodes for id_, place in known.items()
    )


def _is_at_rest(world: World) -> bool:
    nodes = world.catalog.topology.nodes
    if set(nodes) != set(world.nodes):
        return False
    loads = dict.fromkeys(nodes, 0)
    leads = dict.fromkeys(nodes, 0)
    for id_, partition in world.catalog.topology.partitions.items():
        truth = world.truths[id_]
        if partition.leaving or partition.dropping or partition.change is not MembershipChange.NONE:
            return False
        voters = {place.replica for place in partition.replicas}
        if voters != set(truth.members.voters) or truth.members.learners or truth.members.old_voters:
            return False
        if world.live_full(id_, truth.members.voters) != 3 or len({place.zone for place in partition.replicas}) != 3:
            return False
        if truth.leader != partition.preferred_leader:
            return False
        if any(nodes[place.node].draining for place in partition.replicas):
            return False
        for place in partition.replicas:
            loads[place.node] += 1
            leads[place.node] += place.replica == truth.leader
    for zone in "abc":
        of_zone = [loads[node] for node, place in nodes.items() if place.zone == zone and not place.draining]
        if differs(max(of_zone), min(of_zone)):
            return False
    held = sum(len(node.copies) for node in world.nodes.values())
    return held == 3 * len(world.truths)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_life_of_deaths_wipes_and_drains_ends_well(seed: int) -> None:
    life(seed)


def _released_as_planned(partition: Partition, _: LeaderSeen) -> tuple[int, ...]:
    return partition.leaving


def _released_early(partition: Partition, leader: LeaderSeen) -> tuple[int, ...]:
    members = {*leader.voters, *leader.learners}
    return tuple(replica for replica in partition.leaving if replica not in members)


def _lost_at_once(topology: Topology, seen: View, now: float, _: float) -> Health:
    return health(topology, seen, now, 0.0)


MUTANTS = {
    "what is to leave is dropped although it votes": (orders, "_released", _released_as_planned),
    "the lost replica is given up for a log replica": (orders, "_released", _released_early),
    "a second replica comes to a node": (situation, "_nodes_of", lambda _: set()),
    "a node that is silent is lost at once": (situation, "health", _lost_at_once),
    "the smallest difference is levelled": (balance, "differs", lambda more, fewer: more > fewer),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_plan_is_found(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, wrong = MUTANTS[mutant]
    monkeypatch.setattr(module, name, wrong)
    with pytest.raises(AssertionError):
        _lives()


def _lives() -> None:
    for seed in range(MUTANT_SEEDS):
        life(seed)
