"""Routing decisions by themselves: who is believed to lead, where a refused request goes, how long pauses are."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from cluster.requests.routing import (
    HOPS_MAX,
    SUSPICION,
    UNANSWERED_SLACK,
    Again,
    AwaitCatalog,
    Routes,
    Sent,
    Tries,
    after_break,
    after_refusal,
)
from cluster.wire import common_pb2
from tests.unit.router_fakes import ONES, ZERO, partition

Refusal = common_pb2.Refusal
PLACE = partition(1, ZERO, ONES, preferred=2)


class NodeLoad(NamedTuple):
    unanswered: range


def refuse(routes: Routes, node: int, tries: Tries, refusal: common_pb2.Refusal, epoch: int = 0) -> object:
    return after_refusal(routes, PLACE, node, refusal, Sent(1, epoch, tries), now=0.0)


def test_the_maps_preferred_leader_is_asked_until_something_better_is_known() -> None:
    routes = Routes()
    assert routes.leader_node(PLACE, 0.0) == 2
    assert routes.leader_node(partition(1, ZERO, ONES), 0.0) == 1
    routes.learn(1, 3)
    assert routes.leader_node(PLACE, 0.0) == 3
    routes.disbelieve(1, 1)
    assert routes.leader_node(PLACE, 0.0) == 3
    routes.disbelieve(1, 3)
    assert routes.leader_node(PLACE, 0.0) == 2


def test_a_suspected_node_is_passed_over_for_a_while_and_until_it_answers() -> None:
    routes = Routes()
    routes.learn(1, 3)
    routes.suspect(3, now=10.0)
    assert routes.leader_node(PLACE, 10.0) == 2  # what was learned of it is forgotten
    routes.suspect(2, now=10.0)
    assert routes.leader_node(PLACE, 10.0) == 1
    routes.suspect(1, now=10.0)
    assert routes.leader_node(PLACE, 10.0) == 3  # all are suspected: in order
    routes.heard(2)
    assert routes.leader_node(PLACE, 10.0) == 2
    assert not routes.suspected(1, 10.0 + SUSPICION)


def test_pauses_grow_from_20_to_100_ms_and_each_is_followed_by_a_few_tries_at_once() -> None:
    tries = Tries()
    pauses = [tries.again(1, news=True).pause for _ in range(6 * (HOPS_MAX + 1))]
    assert [pause for pause in pauses if pause] == [0.02, 0.04, 0.08, 0.1, 0.1, 0.1]
    assert pauses[: HOPS_MAX + 1] == [0.0] * HOPS_MAX + [0.02]
    assert Tries().again(1, news=False) == Again(1, 0.02)


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (Refusal(reason=Refusal.NOT_LEADER, leader_node=3, epoch=2), Again(3, 0.0)),
        (Refusal(reason=Refusal.NOT_LEADER, leader_node=2), Again(3, 0.0)),  # it names itself: no hint at all
        (Refusal(reason=Refusal.NOT_LEADER), Again(3, 0.0)),
        (Refusal(reason=Refusal.STALE_EPOCH, epoch=4, leader_node=2), Again(2, 0.0)),
        (Refusal(reason=Refusal.STALE_EPOCH, epoch=4, leader_node=1), Again(1, 0.0)),
        (Refusal(reason=Refusal.STALE_EPOCH, epoch=4), Again(3, 0.0)),  # it leads no more and knows of no other
        (Refusal(reason=Refusal.STALE_EPOCH, leader_node=2), Again(2, 0.02)),
        (Refusal(reason=Refusal.NOT_READY), Again(2, 0.02)),
        (Refusal(reason=Refusal.OVERLOADED), Again(2, 0.02)),
        (Refusal(reason=Refusal.DEADLINE), Again(0, 0.02)),
        (Refusal(), Again(0, 0.02)),
        (Refusal(reason=Refusal.WRONG_CLUSTER), Again(3, 0.02)),
    ],
)
def test_what_follows_from_a_refusal_of_node_2(refusal: common_pb2.Refusal, expected: Again) -> None:
    assert refuse(Routes(), 2, Tries(), refusal) == expected


@pytest.mark.parametrize("reason", [Refusal.NOT_READY, Refusal.OVERLOADED])
def test_a_read_that_any_replica_can_do_goes_on_to_the_next(reason: common_pb2.Refusal.Reason) -> None:
    routes = Routes()
    sent = Sent(1, 0, Tries(), any_replica=True)
    assert after_refusal(routes, PLACE, 3, Refusal(reason=reason), sent, now=0.0) == Again(1, 0.0)
    assert routes.leader_node(PLACE, 0.0) == 2


def test_a_new_epoch_without_a_leader_is_remembered() -> None:
    routes = Routes()
    refuse(routes, 2, Tries(), Refusal(reason=Refusal.NOT_LEADER, epoch=5))
    assert routes.epoch(1) == 5


def test_an_epoch_that_a_leader_does_not_know_is_given_up() -> None:
    routes = Routes()
    refuse(routes, 1, Tries(), Refusal(reason=Refusal.NOT_LEADER, epoch=9))  # of a candidate, say
    stale = Refusal(reason=Refusal.STALE_EPOCH, epoch=8, leader_node=2)
    assert refuse(routes, 2, Tries(), stale, epoch=9) == Again(3, 0.0)
    assert routes.epoch(1) == 0
    hint = Refusal(reason=Refusal.NOT_LEADER, leader_node=2, epoch=8)
    assert refuse(routes, 3, Tries(), hint) == Again(2, 0.0)
    assert routes.epoch(1) == 8


def test_two_nodes_that_name_each_other_do_not_make_a_busy_loop() -> None:
    routes, tries, node, pauses = Routes(), Tries(), 1, 0
    for _ in range(30):
        following = refuse(routes, node, tries, Refusal(reason=Refusal.NOT_LEADER, leader_node=3 - node, epoch=1))
        assert isinstance(following, Again)
        pauses += following.pause > 0
        node = following.node
    assert pauses == 10


def test_a_hint_at_a_suspected_node_is_not_followed() -> None:
    routes = Routes()
    routes.suspect(3, now=0.0)
    assert refuse(routes, 2, Tries(), Refusal(reason=Refusal.NOT_LEADER, leader_node=3, epoch=1)) == Again(1, 0.0)


def test_a_node_that_lost_its_replica_is_passed_over_although_the_map_prefers_it() -> None:
    routes = Routes()
    assert refuse(routes, 2, Tries(), Refusal(reason=Refusal.NO_SUCH_PARTITION)) == AwaitCatalog(0)
    assert routes.leader_node(PLACE, 0.0) == 3
    assert routes.next_node(PLACE, 1, 0.0) == 3
    loads = {1: NodeLoad(range(900)), 2: NodeLoad(range(0)), 3: NodeLoad(range(901))}
    assert routes.any_node(PLACE, loads, now=0.0) == 3
    assert routes.leader_node(partition(7, ZERO, ONES, preferred=2), 0.0) == 2
    assert routes.leader_node(PLACE, SUSPICION) == 2


def test_after_a_break_the_next_replica_is_asked() -> None:
    routes = Routes()
    routes.suspect(2, now=0.0)
    assert after_break(routes, PLACE, 2, Tries(), now=0.0) == Again(3, 0.0)


@pytest.mark.parametrize(
    ("owed", "expected"),
    [
        ({}, 2),
        ({1: 0, 2: UNANSWERED_SLACK, 3: 0}, 2),  # the leader's node, with what the writer wrote last
        ({1: 1, 2: UNANSWERED_SLACK + 1, 3: 0}, 3),  # which is far behind
        ({1: 50, 2: 100 + UNANSWERED_SLACK, 3: 50}, 2),  # all are busy
        ({1: 50, 2: 101 + UNANSWERED_SLACK, 3: 60}, 1),
        ({2: 1_000, 3: 10}, 1),  # no stream to node 1 yet
    ],
)
def test_where_reads_go_that_any_replica_can_do(owed: dict[int, int], expected: int) -> None:
    loads = {node: NodeLoad(range(count)) for node, count in owed.items()}
    assert Routes().any_node(PLACE, loads, now=0.0) == expected


def test_reads_that_any_replica_can_do_avoid_suspected_nodes() -> None:
    routes = Routes()
    routes.suspect(2, now=0.0)
    assert routes.any_node(PLACE, {}, now=0.0) == 3
