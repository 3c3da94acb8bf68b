"""Changes of members that are overtaken by another loss, an order or a return: there is always a way on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from autoadmin.actions import AddReplica, ChangeLeaving, ReleaseReplicas, Step, TakeVersion
from cluster.topology import DropOrder, MembershipChange, NodePlace, ReplicaPlace
from tests.unit.autoadmin_samples import nodes
from tests.unit.autoadmin_scene import LAST_REPORT, LOST, RULES, Scene

TWO_MORE_IN_C = [NodePlace(20 + n, f"c{n}", "us-east-1", "c", f"127.0.0.1:{20 + n}") for n in range(2)]


def _standing_in(places: Sequence[NodePlace], zone: str) -> tuple[Scene, ReplicaPlace, ReplicaPlace]:
    """A partition of which the replica in this zone is replaced, and a log replica votes in its place; both."""
    scene = Scene(places, 1)
    (gone,) = [place for place in scene.partition().replicas if place.zone == zone]
    rest = scene.lose(gone.node)
    (first,) = scene.members_steps(LOST)
    assert isinstance(first, AddReplica)
    assert first.log_only
    scene.perform(first)
    scene.vote(1, 3, [place.replica for place in scene.partition().wanted_voters])
    scene.report(rest, LOST)
    return scene, gone, scene.partition().replicas[-1]


def _free_in_c(scene: Scene, *holders: ReplicaPlace) -> int:
    """The node of zone c that has none of the partition."""
    in_c = {node.id for node in scene.catalog.topology.nodes.values() if node.zone == "c"}
    (free,) = in_c - {place.node for place in holders}
    return free


def _only(scene: Scene, now: float) -> Step:
    (step,) = scene.members_steps(now)
    return step


def _silence(scene: Scene, node: int) -> float:
    """The node is lost as well; when."""
    rest = [id_ for id_ in scene.catalog.topology.nodes if id_ != node and id_ in scene.view.nodes]
    scene.lead_elsewhere(node)
    scene.view = scene.view.without(node)
    now = LOST
    while now < LOST + RULES.replace_after:
        now += 1.0
        scene.report(rest, now)
    return now


def test_a_log_replica_on_the_last_node_of_its_zone_gives_way_to_a_full_one_elsewhere() -> None:
    """Nobody waits for that node: what it holds goes only once there is another."""
    scene, gone, log = _standing_in(
        [*nodes(1), *TWO_MORE_IN_C, NodePlace(30, "a2", "us-east-1", "a", "127.0.0.1:30")], "c"
    )
    free = _free_in_c(scene, gone, log)
    scene.drain(free)
    step = _only(scene, LOST)
    assert step == AddReplica(1, 30, (gone.replica, log.replica), MembershipChange.REPLACE)


def test_where_no_other_node_is_left_the_full_replica_comes_to_one_that_is_to_be_emptied() -> None:
    scene, gone, log = _standing_in([*nodes(1), *TWO_MORE_IN_C], "c")
    free = _free_in_c(scene, gone, log)
    scene.drain(free)
    step = _only(scene, LOST)
    assert step == AddReplica(1, free, (gone.replica, log.replica), MembershipChange.REPLACE)
    scene.perform(step)
    assert scene.members_steps(LOST) == [], "it is not given up for being where it is"

    full = scene.partition().replicas[-1]
    staying = [place.replica for place in scene.partition().wanted_voters]
    assert full.replica in staying
    scene.vote(1, 6, staying)
    scene.report([node for node in scene.catalog.topology.nodes if node != gone.node], LOST)
    release = _only(scene, LOST)
    assert release == ReleaseReplicas(1, (gone.replica, log.replica), 6)
    scene.perform(release)
    scene.put(replace(scene.partition(), dropping=()))  # carried out, or gone with its node
    assert _only(scene, LOST) == AddReplica(1, log.node, (full.replica,), MembershipChange.DRAIN)


def test_a_log_replica_stands_in_for_another_voter_that_is_lost_once_the_first_returns() -> None:
    scene, gone, log = _standing_in(nodes(3), "a")
    scene.view = scene.view.without(gone.node)
    other = next(place for place in scene.partition().wanted_voters if not place.log_only)
    now = _silence(scene, other.node)
    scene.report([gone.node], now)
    assert ChangeLeaving(1, (other.replica,)) in scene.members_steps(now)
    scene.perform(ChangeLeaving(1, (other.replica,)))
    assert {place.replica for place in scene.partition().wanted_voters} >= {gone.replica, log.replica}
    assert scene.members_steps(now) == [], "it is a learner yet"
    scene.vote(1, 6, [place.replica for place in scene.partition().wanted_voters])
    scene.report([node for node in scene.view.nodes if node != other.node], now)
    step = _only(scene, now)
    assert isinstance(step, AddReplica)
    assert step.leaving == (other.replica, log.replica)
    assert scene.catalog.topology.nodes[step.node].zone == other.zone


def test_a_full_replica_that_was_given_up_is_gone_on_with_once_its_node_is_back() -> None:
    """It keeps its node from being given another one."""
    scene, gone, log = _standing_in([*nodes(1), *TWO_MORE_IN_C], "c")
    step = _only(scene, LOST)
    assert isinstance(step, AddReplica)
    scene.perform(step)
    full = scene.partition().replicas[-1]
    now = _silence(scene, full.node)
    assert _only(scene, now) == ChangeLeaving(1, (gone.replica, full.replica))
    scene.perform(ChangeLeaving(1, (gone.replica, full.replica)))
    assert scene.members_steps(now) == [], "nobody is there to take it"
    scene.report([node for node in scene.catalog.topology.nodes if node != gone.node], now)
    assert _only(scene, now) == ChangeLeaving(1, (gone.replica, log.replica))


@pytest.mark.parametrize("again_a_member", [False, True])
def test_orders_of_before_follow_the_membership_even_when_the_record_knows_it_already(again_a_member: bool) -> None:
    """A leader with an older copy of the catalog took the replica in once more, so that it knows a later membership
    than the order names; the record has the version of today from a release that came after."""
    scene = Scene(nodes(2), 1)
    partition = scene.partition()
    dropping = (DropOrder(400, next(n for n in (1, 2) if partition.replica_on(n) is None), 4),)
    scene.put(replace(partition, dropping=dropping, membership_version=7))
    scene.vote(1, 7, [place.replica for place in partition.replicas], [400] if again_a_member else [])
    scene.report(list(scene.catalog.topology.nodes), LAST_REPORT)
    if again_a_member:
        assert scene.members_steps(LAST_REPORT) == []
        return
    assert scene.members_steps(LAST_REPORT) == [TakeVersion(1, 7)]
    scene.perform(TakeVersion(1, 7))
    assert [order.membership_version for order in scene.partition().dropping] == [7]
    assert scene.members_steps(LAST_REPORT) == []
