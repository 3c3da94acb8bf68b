"""What is planned when nodes fall silent, are drained, return or come anew; and where leaders go."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autoadmin.actions import (
    AddReplica,
    AdoptMembers,
    ChangeLeaving,
    ForgetReplicas,
    PreferLeader,
    ReleaseReplicas,
    RemoveNodes,
    TakeVersion,
)
from autoadmin.catalog import Catalog, with_node, without_table
from autoadmin.health import TAKEN_OVER_SECONDS
from autoadmin.membership import with_draining
from autoadmin.performing import perform
from autoadmin.planner import plan
from autoadmin.view import DEAF_SECONDS
from cluster.topology import DropOrder, MembershipChange, NodePlace, Partition
from cluster.wire import common_pb2, node_pb2
from tests.unit.autoadmin_samples import nodes
from tests.unit.autoadmin_scene import LAST_REPORT, LOST, RULES, Scene


def _place(partition: Partition, node: int) -> int:
    place = partition.replica_on(node)
    assert place is not None
    return place.replica


# --- nodes that are lost ---


def test_a_node_is_replaced_only_after_it_was_silent_for_so_long() -> None:
    scene = Scene(nodes(2), 1)
    gone = scene.partition().replicas[0]
    spare = next(n for n in (1, 2) if n != gone.node)
    rest = scene.lose(gone.node)
    assert scene.members_steps(LOST - 0.001) == []
    assert scene.members_steps(LOST) == [AddReplica(1, spare, (gone.replica,), MembershipChange.REPLACE)]
    scene.report(rest, LOST, heard_nodes=[gone.node])
    assert scene.members_steps(LOST) == [], "another node still hears it"


def test_when_auto_admin_was_deaf_nobody_is_lost_for_it() -> None:
    scene = Scene(nodes(2), 1)
    everyone = list(scene.catalog.topology.nodes)
    scene.report(everyone, LAST_REPORT)
    late = LOST + DEAF_SECONDS
    scene.report(everyone[1:], late)
    assert scene.members_steps(late) == []


def test_with_one_node_per_zone_the_lost_one_is_awaited() -> None:
    scene = Scene(nodes(1), 1)
    scene.lose(1)
    assert scene.members_steps(LOST) == []


def test_a_log_replica_comes_first_where_the_zone_has_another_node_for_the_full_one() -> None:
    scene = Scene(nodes(3), 1)
    partition = scene.partition()
    lost = partition.replicas[0]
    rest = scene.lose(lost.node)
    (first,) = scene.members_steps(LOST)
    assert isinstance(first, AddReplica)
    assert (first.log_only, first.leaving) == (True, (lost.replica,))
    scene.perform(first)

    log = scene.partition().replicas[-1].replica
    staying = [place.replica for place in partition.replicas if place != lost]
    scene.vote(1, 3, [*staying, log])
    scene.report(rest, LOST)
    (second,) = scene.members_steps(LOST)
    assert isinstance(second, AddReplica)
    assert (second.log_only, second.leaving) == (False, (lost.replica, log))
    assert len({lost.node, first.node, second.node}) == 3
    scene.perform(second)

    full = scene.partition().replicas[-1].replica
    scene.report(rest, LOST)
    assert scene.members_steps(LOST) == [], "it is a learner yet"
    scene.vote(1, 6, [*staying, full])
    scene.report(rest, LOST)
    assert scene.members_steps(LOST) == [ReleaseReplicas(1, (lost.replica, log), 6)]
    scene.perform(ReleaseReplicas(1, (lost.replica, log), 6))
    assert [place.replica for place in scene.partition().replicas] == [*staying, full]
    assert scene.partition().dropping == (DropOrder(lost.replica, lost.node, 6), DropOrder(log, first.node, 6))
    assert scene.partition().change is MembershipChange.NONE


def test_a_node_that_returns_takes_its_place_again_while_a_log_replica_stands_in() -> None:
    scene = Scene(nodes(3), 1)
    lost = scene.partition().replicas[0]
    staying = [place.replica for place in scene.partition().replicas[1:]]
    rest = scene.lose(lost.node)
    scene.perform(*scene.members_steps(LOST))
    log = scene.partition().replicas[-1].replica
    scene.report([*rest, lost.node], LOST)
    assert scene.members_steps(LOST) == [ChangeLeaving(1, (log,))], "before the log replica votes"

    scene.vote(1, 3, [*staying, log])
    scene.view = scene.view.without(lost.node)
    scene.report(rest, LOST + 4)
    scene.perform(*scene.members_steps(LOST + 4))
    full = scene.partition().replicas[-1].replica
    scene.report([*rest, lost.node], LOST + 4)
    assert scene.members_steps(LOST + 4) == [ChangeLeaving(1, (log, full))], "before the full one does"
    scene.perform(ChangeLeaving(1, (log, full)))
    scene.vote(1, 7, [*staying, lost.replica])
    scene.report([*rest, lost.node], LOST + 4)
    assert scene.members_steps(LOST + 4) == [ReleaseReplicas(1, (log, full), 7)]


def test_nothing_is_released_while_it_is_a_member() -> None:
    scene = Scene(nodes(2), 1)
    lost = scene.partition().replicas[0]
    staying = [place.replica for place in scene.partition().replicas[1:]]
    rest = scene.lose(lost.node)
    scene.perform(*scene.members_steps(LOST))
    new = scene.partition().replicas[-1].replica
    scene.vote(1, 2, [lost.replica, *staying], [new])
    scene.report(rest, LOST)
    assert scene.members_steps(LOST) == []
    scene.vote(1, 4, [*staying, new], [lost.replica])
    scene.report(rest, LOST)
    assert scene.members_steps(LOST) == []


def test_a_change_whose_target_is_lost_turns_back_to_what_votes() -> None:
    scene = Scene(nodes(2), 1)
    lost = scene.partition().replicas[0]
    rest = scene.lose(lost.node)
    (step,) = scene.members_steps(LOST)
    assert isinstance(step, AddReplica)
    scene.perform(step)
    new = scene.partition().replicas[-1].replica
    scene.drain(step.node)
    scene.report(rest, LOST)
    assert scene.members_steps(LOST) == [ChangeLeaving(1, (new,))]


def test_only_so_many_are_rebuilt_at_once() -> None:
    scene = Scene(nodes(2), 8)
    scene.lose(1)
    steps = scene.members_steps(LOST)
    assert len(steps) == RULES.rebuilds_at_once
    scene.perform(*steps)
    scene.report([2, 3, 4, 5, 6], LOST)
    assert scene.members_steps(LOST) == []


def test_zones_are_shared_only_when_one_has_no_node_left() -> None:
    scene = Scene([*nodes(1), NodePlace(9, "c2", "us-east-1", "c", "127.0.0.1:9")], 1)
    partition = scene.partition()
    lost = partition.replicas[0]
    assert lost.zone == "a"
    rest = scene.lose(lost.node)
    (step,) = scene.members_steps(LOST)
    assert isinstance(step, AddReplica)
    assert scene.catalog.topology.nodes[step.node].zone == "c"
    scene.perform(step)
    new = scene.partition().replicas[-1].replica
    staying = [place.replica for place in partition.replicas[1:]]
    scene.vote(1, 4, [*staying, new])
    scene.report(rest, LOST)
    scene.perform(ReleaseReplicas(1, (lost.replica,), 4))
    # The lost node returns, and drops what it held; then the zones are parted again.
    scene.report([*rest, lost.node], LOST + 3, dropped_replicas=[lost.replica])
    forget = [
        action
        for action in plan(scene.catalog.topology, scene.view, LOST + 3, RULES)
        if isinstance(action, ForgetReplicas)
    ]
    change = perform(forget[0], scene.catalog)
    assert change is not None
    scene.catalog = scene.catalog.after(change)
    scene.report([*rest, lost.node], LOST + 3)
    (back,) = scene.members_steps(LOST + 3)
    assert isinstance(back, AddReplica)
    assert (back.node, back.change) == (lost.node, MembershipChange.ZONE)


def test_a_wiped_node_is_replaced_at_once_by_the_one_of_its_name_and_forgotten() -> None:
    scene = Scene(nodes(1), 2)
    everyone = [1, 2, 3]
    scene.report(everyone, LAST_REPORT)
    scene.lead_elsewhere(1)
    scene.view = scene.view.without(1)
    new = with_node(scene.catalog, replace(nodes()[0], id=77))
    assert new is not None
    scene.catalog = scene.catalog.after(new)
    soon = LAST_REPORT + TAKEN_OVER_SECONDS
    for second in range(1, int(TAKEN_OVER_SECONDS) + 1):
        scene.report([2, 3, 77], LAST_REPORT + second)
    assert scene.members_steps(soon - 0.001) == []
    old = [_place(scene.partition(id_), 1) for id_ in (1, 2)]
    steps = scene.members_steps(soon)
    assert steps == [AddReplica(id_, 77, (old[id_ - 1],), MembershipChange.REPLACE) for id_ in (1, 2)]
    assert not any(isinstance(action, RemoveNodes) for action in plan(scene.catalog.topology, scene.view, soon, RULES))
    scene.perform(*steps)
    for id_ in (1, 2):
        voters = [place.replica for place in scene.partition(id_).wanted_voters]
        scene.vote(id_, 4, voters)
    scene.report([2, 3, 77], soon)
    scene.perform(*scene.members_steps(soon))
    (remove,) = [a for a in plan(scene.catalog.topology, scene.view, soon, RULES) if isinstance(a, RemoveNodes)]
    assert remove.nodes == (1,)
    change = perform(remove, scene.catalog)
    assert change is not None
    after = scene.catalog.after(change).topology
    assert set(after.former_nodes) == {1}
    assert all(partition.dropping == () for partition in after.partitions.values())


# --- nodes that are drained, or new ---


def test_a_drained_node_s_replicas_move_and_undraining_withdraws_it() -> None:
    scene = Scene(nodes(2), 1)
    leaving = scene.partition().replicas[0]
    everyone = list(scene.catalog.topology.nodes)
    scene.drain(leaving.node)
    scene.report(everyone, LAST_REPORT)
    (step,) = scene.members_steps(LAST_REPORT)
    assert isinstance(step, AddReplica)
    assert (step.leaving, step.change, step.log_only) == ((leaving.replica,), MembershipChange.DRAIN, False)
    scene.perform(step)
    new = scene.partition().replicas[-1].replica
    assert scene.members_steps(LAST_REPORT) == []
    undrained = with_draining(scene.catalog, leaving.node, draining=False)
    assert undrained is not None
    scene.catalog = scene.catalog.after(undrained)
    assert scene.members_steps(LAST_REPORT) == [ChangeLeaving(1, (new,))]


def test_a_new_node_takes_its_share_but_small_differences_stay() -> None:
    scene = Scene(nodes(1), 6)
    new = with_node(scene.catalog, NodePlace(9, "a9", "us-east-1", "a", "127.0.0.1:9"))
    assert new is not None
    scene.catalog = scene.catalog.after(new)
    scene.report([1, 2, 3, 9], LAST_REPORT)
    moves = scene.members_steps(LAST_REPORT, replace(RULES, rebuilds_at_once=100))
    assert len(moves) == 3
    assert all(
        isinstance(step, AddReplica) and step.node == 9 and step.change is MembershipChange.BALANCE for step in moves
    )
    led = {scene.partition(step.partition).replica(scene.leads[step.partition]) for step in moves}
    assert all(place is not None and place.node != 1 for place in led), "those that it leads stay, if others will do"


# --- what is taken from reports ---


def test_a_membership_that_the_record_does_not_know_is_taken() -> None:
    scene = Scene(nodes(2), 1)
    partition = scene.partition()
    gone, *staying = partition.replicas
    other = next(n for n in (1, 2) if n != gone.node)
    scene.vote(1, 5, [*(place.replica for place in staying), 500])
    scene.leads[1] = staying[0].replica
    scene.report(list(scene.catalog.topology.nodes), LAST_REPORT)
    assert scene.members_steps(LAST_REPORT) == [], "nobody says where replica 500 is"
    replica = node_pb2.ReplicaReport(partition=1, replica=500, role="follower")
    found = node_pb2.Report(node=common_pb2.NodeRecord(node=other), replicas=[replica])
    scene.view = scene.view.with_report(found, LAST_REPORT)
    (step,) = scene.members_steps(LAST_REPORT)
    voters = tuple((place.replica, place.node, False) for place in staying)
    assert step == AdoptMembers(1, (*voters, (500, other, False)), 5)
    scene.perform(step)
    assert scene.partition().replica(500) is not None
    assert scene.partition().dropping == (DropOrder(gone.replica, gone.node, 5),)


def test_what_goes_on_with_one_replica_gets_the_others_back_one_at_a_time() -> None:
    scene = Scene(nodes(2), 1)
    alone, *dead = scene.partition().replicas
    rest = [node for node in scene.catalog.topology.nodes if node not in [place.node for place in dead]]
    scene.leads[1] = alone.replica
    scene.report(list(scene.catalog.topology.nodes), LAST_REPORT)
    for place in dead:
        scene.view = scene.view.without(place.node)
    for second in range(int(LAST_REPORT), int(LOST) + 1):
        scene.report(rest, second)
    scene.vote(1, 1001, [alone.replica])
    scene.report(rest, LOST)
    (step,) = scene.members_steps(LOST)
    assert step == ChangeLeaving(1, tuple(place.replica for place in dead))
    scene.perform(step)
    (step,) = scene.members_steps(LOST)
    assert step == ReleaseReplicas(1, tuple(place.replica for place in dead), 1001)
    scene.perform(step)
    version, zones = 1001, [alone.zone]
    while len(zones) < 3:
        (step,) = scene.members_steps(LOST)
        assert isinstance(step, AddReplica)
        assert not step.leaving
        scene.perform(step)
        assert scene.members_steps(LOST) == [], "one after the other"
        zones.append(scene.partition().replicas[-1].zone)
        version += 3
        scene.vote(1, version, [place.replica for place in scene.partition().replicas])
        scene.report(rest, LOST)
        assert scene.members_steps(LOST) == [TakeVersion(1, version)], "orders to the dead follow"
        scene.perform(TakeVersion(1, version))
    assert len(set(zones)) == 3
    assert scene.members_steps(LOST) == []


def test_the_version_of_orders_follows_that_of_the_membership() -> None:
    scene = Scene(nodes(2), 1)
    scene.vote(1, 4, [place.replica for place in scene.partition().replicas])
    scene.report(list(scene.catalog.topology.nodes), LAST_REPORT)
    assert scene.members_steps(LAST_REPORT) == [TakeVersion(1, 4)]
    scene.perform(TakeVersion(1, 4))
    assert scene.members_steps(LAST_REPORT) == []


def test_orders_of_a_deleted_table_name_the_newest_version_that_anyone_reports() -> None:
    scene = Scene(nodes(2), 1)
    scene.catalog = scene.catalog.after(without_table(scene.catalog, "orders"))
    scene.vote(1, 7, [place.replica for place in scene.partition().replicas])
    scene.report(list(scene.catalog.topology.nodes), LAST_REPORT)
    assert scene.members_steps(LAST_REPORT) == [TakeVersion(1, 7)]


def test_an_order_ends_when_its_own_node_has_carried_it_out() -> None:
    scene = Scene(nodes(2), 1)
    dropping = (DropOrder(400, 2, 3), DropOrder(401, 4, 3))
    partition = replace(scene.partition(), dropping=dropping)
    topology = replace(scene.catalog.topology, partitions={1: partition})
    scene.report([2], LAST_REPORT, dropped_replicas=[400, 401])
    actions = plan(topology, scene.view, LAST_REPORT, RULES)
    assert ForgetReplicas(topology.at, frozenset({400})) in actions


def test_nothing_is_planned_on_a_catalog_older_than_what_a_node_holds() -> None:
    scene = Scene(nodes(2), 1)
    scene.lose(1)
    assert scene.steps(LOST) != []
    newer = node_pb2.Report(node=common_pb2.NodeRecord(node=2), catalog_epoch=9, catalog_version=1)
    scene.view = scene.view.with_report(newer, LOST)
    assert scene.steps(LOST) == []


def test_a_plan_of_before_does_nothing() -> None:
    scene = Scene(nodes(2), 1)
    scene.lose(1)
    actions = plan(scene.catalog.topology, scene.view, LOST, RULES)
    moved = with_draining(scene.catalog, 3, draining=True)
    assert moved is not None
    assert actions
    assert all(perform(action, scene.catalog.after(moved)) is None for action in actions)


# --- leaders ---


def test_a_hint_falls_to_whoever_leads_once_its_node_is_silent() -> None:
    scene = Scene(nodes(1), 3)
    everyone = [1, 2, 3]
    scene.report(everyone, LAST_REPORT)
    assert scene.steps(LAST_REPORT) == []
    scene.lead_elsewhere(1)
    scene.view = scene.view.without(1)
    scene.report([2, 3], LAST_REPORT + 1)
    (moved,) = [id_ for id_ in (1, 2, 3) if scene.leads[id_] != scene.partition(id_).preferred_leader]
    assert scene.steps(LAST_REPORT + 1) == [PreferLeader(moved, scene.leads[moved])]


def test_leaders_are_levelled_once_a_node_has_been_there_for_a_while() -> None:
    scene = Scene(nodes(1), 6)
    for partition in scene.catalog.topology.partitions.values():
        second = _place(partition, 2)
        scene.leads[partition.id] = second
        if partition.preferred_leader != second:
            scene.perform(PreferLeader(partition.id, second))
    scene.report([1, 2, 3], LAST_REPORT)
    assert scene.steps(LAST_REPORT) == []
    for second in range(1, 11):
        scene.report([1, 2, 3], LAST_REPORT + second)
    steps = scene.steps(LAST_REPORT + 10)
    to = sorted(scene.partition(step.partition).replica(step.replica).node for step in steps)  # type: ignore[union-attr]
    assert to == [1, 1, 3, 3]


@pytest.mark.parametrize("more", [5, 6])
def test_a_difference_of_a_fifth_or_less_is_left_alone(more: int) -> None:
    """Nodes a1 and b1 alone; 5 leaders and 4 may stay, 6 and 4 may not."""
    scene = Scene(nodes(1), more + 4 + 5)
    for partition in scene.catalog.topology.partitions.values():
        node = 1 if partition.id <= more else 2 if partition.id <= more + 4 else 3
        scene.leads[partition.id] = _place(partition, node)
        if partition.preferred_leader != scene.leads[partition.id]:
            scene.perform(PreferLeader(partition.id, scene.leads[partition.id]))
    for second in range(11):
        scene.report([1, 2, 3], LAST_REPORT + second)
    assert len(scene.steps(LAST_REPORT + 10)) == (more == 6)


def test_leaders_leave_a_draining_node_although_nothing_can_be_moved_yet() -> None:
    scene = Scene(nodes(1), 3)
    scene.drain(1)
    scene.report([1, 2, 3], LAST_REPORT)
    (step,) = scene.steps(LAST_REPORT)
    assert isinstance(step, PreferLeader)
    place = scene.partition(step.partition).replica(step.replica)
    assert place is not None
    assert place.node != 1


def test_gathered_leaders_wait_for_their_node_and_move_when_it_is_lost() -> None:
    rules = replace(RULES, leaders="gathered")
    scene = Scene(nodes(1), 4, "gathered")
    chosen = {scene.partition(id_).replica(scene.partition(id_).preferred_leader) for id_ in (1, 2, 3, 4)}
    (node,) = {place.node for place in chosen if place is not None}
    scene.lose(node)
    assert scene.steps(LOST - 0.001, rules) == []
    hints = scene.steps(LOST, rules)
    assert len(hints) == 4
    scene.perform(*hints)
    assert len({scene.partition(id_).replica(scene.partition(id_).preferred_leader).node for id_ in (1, 2, 3, 4)}) == 1  # type: ignore[union-attr]
    assert scene.steps(LOST, rules) == []


def test_leaders_gather_when_the_setting_says_so() -> None:
    scene = Scene(nodes(1), 6)
    scene.report([1, 2, 3], LAST_REPORT)
    scene.perform(*scene.steps(LAST_REPORT, replace(RULES, leaders="gathered")))
    assert _hinted(scene.catalog) == {1}


def _hinted(catalog: Catalog) -> set[int]:
    partitions = catalog.topology.partitions.values()
    return {place.node for partition in partitions if (place := partition.replica(partition.preferred_leader))}


def test_a_table_deleted_while_replicas_are_to_be_dropped_takes_these_with_it() -> None:
    scene = Scene(nodes(2), 1)
    partition = scene.partition()
    spare = next(n for n in (1, 2) if partition.replica_on(n) is None)
    object.__setattr__(partition, "dropping", (DropOrder(400, spare, 3),))
    scene.catalog = scene.catalog.after(without_table(scene.catalog, "orders"))
    held = {place.node: place.replica for place in scene.partition().replicas}
    assert held[spare] == 400
    assert len(held) == 4
    for node, replica in held.items():
        scene.report([node], LAST_REPORT, dropped_replicas=[replica])
    (forget,) = plan(scene.catalog.topology, scene.view, LAST_REPORT, RULES)
    change = perform(forget, scene.catalog)
    assert change is not None
    assert dict(scene.catalog.after(change).topology.partitions) == {}


def test_repairs_share_out_what_a_lost_node_held_and_nothing_is_moved_meanwhile() -> None:
    scene = Scene(nodes(3), 12)
    lost = scene.partition().replicas[0].node
    rest = scene.lose(lost)
    rules = replace(RULES, rebuilds_at_once=100)
    held = sum(partition.replica_on(lost) is not None for partition in scene.catalog.topology.partitions.values())
    assert held == 4
    stand_ins = scene.members_steps(LOST, rules)
    assert len(stand_ins) == held
    scene.perform(*stand_ins)
    for step in stand_ins:
        scene.vote(step.partition, 3, [place.replica for place in scene.partition(step.partition).wanted_voters])
    scene.report(rest, LOST)
    full = [step for step in scene.members_steps(LOST, rules) if isinstance(step, AddReplica)]
    assert {step.change for step in full} == {MembershipChange.REPLACE}
    assert sorted(step.node for step in full) == sorted(2 * [node for node in (1, 2, 3) if node != lost])
