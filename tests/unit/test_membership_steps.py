"""A leader's next step towards the members that the catalog wants, and what a replica says to an order to go."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cluster.topology import Partition, PartitionState, ReplicaPlace
from replication.changes import AddLearner, Promote, RemoveLearner
from replication.membership import UNKNOWN, Member, Membership
from storagenode.membership_steps import CAUGHT_UP_ENTRIES, LetLead, Progress, Step, is_settled, may_drop, next_step

PLACES = tuple(ReplicaPlace(10 + n, n, f"zone-{n}") for n in (1, 2, 3))
RECORD = Partition(1, 2, bytes(16), b"\xff" * 16, PLACES)
MEMBERS = tuple(Member(place.replica, place.node) for place in PLACES)
FOUNDED = Membership((11, 12, 13), 1, MEMBERS)
NEW = ReplicaPlace(20, 4, "zone-1")
MOVING = replace(RECORD, replicas=(*PLACES, NEW), leaving=(13,))
FILLING = replace(FOUNDED, version=2, members=(*MEMBERS, Member(20, 4)))


def step(
    record: Partition,
    membership: Membership,
    *,
    leader: int = 11,
    matches: dict[int, int] | None = None,
    silent: tuple[int, ...] = (),
) -> Step | None:
    """The step of a leader whose log ends at 5,000; whoever is not named in `matches` has all of it."""
    known = {11: 5000, 12: 5000, 13: 5000, 20: 5000, **(matches or {})}
    return next_step(
        record,
        membership,
        Progress(leader, 5000, lambda replica: known.get(replica, 0), lambda replica: replica not in silent),
    )


def test_nothing_is_done_where_nothing_is_wanted() -> None:
    """As it should be, or a table that goes, or a record without replicas."""
    assert step(RECORD, FOUNDED) is None
    assert is_settled(RECORD, FOUNDED)
    assert not is_settled(MOVING, FOUNDED)
    assert not is_settled(RECORD, FILLING)
    assert step(replace(MOVING, state=PartitionState.DROPPED), FOUNDED) is None
    assert step(replace(RECORD, replicas=()), FOUNDED) is None


def test_a_replica_is_replaced_in_steps() -> None:
    """It is added, then filled, then it votes in the place of the other."""
    assert step(MOVING, FOUNDED) == AddLearner(Member(20, 4))
    assert step(MOVING, FILLING, matches={20: 0}) is None
    assert step(MOVING, FILLING, matches={20: 5000 - CAUGHT_UP_ENTRIES - 1}) is None
    assert step(MOVING, FILLING, silent=(20,)) is None
    assert step(MOVING, FILLING, matches={20: 5000 - CAUGHT_UP_ENTRIES}) == Promote((11, 12, 20))


def test_a_leader_that_is_to_go_lets_another_lead_first() -> None:
    """One that stays and has the log; without one it goes on alone, and hands over at the end."""
    assert step(MOVING, FILLING, leader=13, matches={11: 4900, 12: 4990}) == LetLead(12)
    assert step(MOVING, FILLING, leader=13, matches={11: 10, 12: 10}) == Promote((11, 12, 20))


def test_a_learner_that_is_not_wanted_any_more_goes() -> None:
    """The plan was withdrawn: the record lists it no more, or as leaving."""
    assert step(RECORD, FILLING) == RemoveLearner(20)
    assert step(replace(MOVING, leaving=(20,)), FILLING) == RemoveLearner(20)


def test_a_node_holds_one_member_at_a_time() -> None:
    """A new replica on a member's own node waits until that one is gone."""
    record = replace(RECORD, replicas=(*PLACES, ReplicaPlace(20, 3, "zone-3")), leaving=(13,))
    assert step(record, FOUNDED) is None


UNKNOWN_VOTER = replace(FOUNDED, version=5, voters=(11, 12, 19), members=(*MEMBERS[:2], Member(19, 4, log_only=True)))
CROWDED = replace(MOVING, leaving=(12,), replicas=(*PLACES, replace(NEW, log_only=True)))
"""The record wants 20 on the node of 19, which it gave up before it heard that 19 votes."""


def test_a_voter_that_the_record_does_not_name_makes_way_for_the_one_that_is_to_come_to_its_node() -> None:
    joined = replace(UNKNOWN_VOTER, version=6, members=(*UNKNOWN_VOTER.members, MEMBERS[2]))
    assert step(CROWDED, UNKNOWN_VOTER) == AddLearner(MEMBERS[2])
    assert step(CROWDED, joined) == Promote((11, 12, 13))
    assert step(CROWDED, joined, silent=(13,)) == Promote((11, 12))
    after = replace(joined, version=8, voters=(11, 12, 13), members=MEMBERS)
    assert step(CROWDED, after) == AddLearner(Member(20, 4, log_only=True))


def test_such_a_voter_lets_another_lead_first() -> None:
    leading = replace(UNKNOWN_VOTER, members=(*MEMBERS[:2], Member(19, 4)))
    record = replace(CROWDED, replicas=(*PLACES[:2], NEW), leaving=())
    assert step(record, leading, leader=19, matches={11: 4990}) == LetLead(12)


def test_such_a_voter_stays_where_only_log_replicas_would_be_left() -> None:
    logs = tuple(Member(member.replica, member.node, log_only=True) for member in MEMBERS[:2])
    record = replace(CROWDED, replicas=(*PLACES[:2], NEW), leaving=())
    assert step(record, replace(UNKNOWN_VOTER, members=(*logs, Member(19, 4)))) is None


def test_a_log_replica_joins_as_one() -> None:
    """And never are log replicas alone to vote."""
    record = replace(MOVING, replicas=(*PLACES, replace(NEW, log_only=True)))
    assert step(record, FOUNDED) == AddLearner(Member(20, 4, log_only=True))
    alone = replace(record, leaving=(11, 12, 13))
    filling = replace(FILLING, members=(*MEMBERS, Member(20, 4, log_only=True)))
    assert step(alone, filling) is None


@pytest.mark.parametrize(
    ("membership", "ordered", "obeys"),
    [
        (UNKNOWN, 0, True),
        (UNKNOWN, 5, True),
        (replace(FOUNDED, version=4), 5, True),
        (replace(FOUNDED, version=5), 5, False),
        (replace(FOUNDED, version=6), 5, False),
        (Membership((11, 12), 5), 5, True),
        (Membership((11, 12), 6), 5, False),
    ],
)
def test_an_order_to_go_is_checked_against_what_was_agreed_on(
    membership: Membership, ordered: int, obeys: bool
) -> None:
    """Whoever knows of a later membership, or is a member in the very one that the order names, stays."""
    assert may_drop(13, membership, membership, ordered) is obeys


AGREED = Membership((11, 12), 5)
LEARNER = Membership((11, 12), 6, (*MEMBERS[:2], Member(13, 3)))


@pytest.mark.parametrize(
    ("held", "ordered", "obeys"),
    [
        (LEARNER, 5, True),
        (Membership((11, 12, 13), 6, old_voters=(11, 12)), 5, False),
        (Membership((11, 12), 6, old_voters=(11, 13)), 5, False),
        (Membership((11, 12, 13), 6, old_voters=(11, 12)), 6, True),
        (Membership((11, 12, 13), 6, old_voters=(11, 12)), 7, True),
    ],
)
def test_a_membership_that_was_not_agreed_on_keeps_a_replica_only_where_it_may_have_voted(
    held: Membership, ordered: int, obeys: bool
) -> None:
    """A change of members that lost, or that nobody is left to agree on, would keep it for ever."""
    assert may_drop(13, held, AGREED, ordered) is obeys
