"""The steps of a membership, its bytes, the memberships of a log, and majorities of two sets."""

from __future__ import annotations

import pytest

from replication.changes import AddLearner, Change, Promote, RemoveLearner, changed, left
from replication.history import History
from replication.membership import UNKNOWN, Member, Membership
from replication.messages import MEMBERSHIP, Entry
from replication.quorum import is_majority, reached_by_majority

MEMBERS = (Member(1, 101), Member(2, 102), Member(3, 103))
THREE = Membership((1, 2, 3), 1, MEMBERS)
FOUR = Member(4, 104)
JOINT = Membership((1, 2, 4), 3, (*MEMBERS, FOUR), (1, 2, 3))


def test_a_replica_takes_anothers_place() -> None:
    """Learner, joint, new set; each with a version of its own."""
    filling = changed(THREE, AddLearner(FOUR))
    assert (filling.version, filling.voters, filling.learners) == (2, (1, 2, 3), (4,))
    joint = changed(filling, Promote((1, 2, 4)))
    assert joint == JOINT
    assert joint.joint
    assert joint.learners == ()
    assert left(joint) == Membership((1, 2, 4), 4, (MEMBERS[0], MEMBERS[1], FOUR))


def test_learners_stay_when_a_joint_membership_is_left() -> None:
    """Those who vote in neither set."""
    joint = Membership((1, 2), 5, (*MEMBERS, FOUR), (1, 2, 3))
    assert left(joint).learners == (4,)


@pytest.mark.parametrize(
    ("membership", "change", "said"),
    [
        (JOINT, AddLearner(Member(5, 105)), "joint"),
        (THREE, AddLearner(Member(3, 109)), "member already"),
        (THREE, AddLearner(Member(5, 103)), "has a member already"),
        (THREE, RemoveLearner(3), "no learner"),
        (THREE, Promote((1, 2, 5)), "only members"),
        (THREE, Promote((3, 2, 1)), "voters already"),
        (Membership((1, 2), 1, (Member(1, 101), Member(2, 102, log_only=True))), Promote((2,)), "full voter"),
    ],
)
def test_what_cannot_be_done_is_refused(membership: Membership, change: Change, said: str) -> None:
    """And nothing changes."""
    with pytest.raises(ValueError, match=said):
        changed(membership, change)


@pytest.mark.parametrize("membership", [UNKNOWN, THREE, JOINT, Membership((7,), 2**40, (Member(7, 2**63, True),))])
def test_bytes_and_back(membership: Membership) -> None:
    """With nodes, learners, old voters and log replicas."""
    assert Membership.decode(membership.encode()) == membership


def test_the_first_form_is_still_read() -> None:
    """Voters alone, whose nodes it does not say."""
    data = bytes.fromhex("01 0500000000000000 0200 0700000000000000 0900000000000000")
    assert Membership.decode(data) == Membership((7, 9), 5)
    for cut in range(len(data)):
        with pytest.raises(ValueError, match="membership"):
            Membership.decode(data[:cut])


def test_two_sets_need_a_majority_each() -> None:
    """Of the old voters, and of the new."""
    assert is_majority(JOINT, {1, 2})
    assert not is_majority(JOINT, {1, 4})
    assert not is_majority(JOINT, {2, 3})
    assert is_majority(JOINT, {1, 3, 4})
    assert reached_by_majority(JOINT, {1: 9, 2: 5, 3: 9, 4: 3}.__getitem__) == 5
    assert not is_majority(UNKNOWN, {1})


def test_a_log_remembers_what_was_in_force() -> None:
    """The last one counts, is void with its entry, and is what the log stands on once it is trimmed."""
    second, third = changed(THREE, AddLearner(FOUR)), JOINT
    history = History([(0, THREE)])
    assert history.append([Entry(1, 4, second.encode(), MEMBERSHIP), Entry(1, 5, b"x")])
    assert not history.append([Entry(1, 6, b"y")])
    assert history.append([Entry(1, 7, third.encode(), MEMBERSHIP)])
    assert (history.current, history.position) == (third, 7)
    assert [history.at(position) for position in (0, 3, 4, 6, 7)] == [THREE, THREE, second, second, third]
    assert history.cut(7)
    assert not history.cut(5)
    assert (history.current, history.position) == (second, 4)
    history.forget(5)
    assert not history.cut(1)
    assert history.current == second
    history.restart(20, third)
    assert (history.current, history.position, history.at(20)) == (third, 20, third)
