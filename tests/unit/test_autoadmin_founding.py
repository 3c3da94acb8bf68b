"""Who founds a group of auto-admin's members, who joins it, and how lost members are exchanged."""

from __future__ import annotations

from itertools import permutations

from autoadmin.founding import Answer, Join, founding, join, next_change
from replication.changes import AddLearner, Promote, RemoveLearner, changed, left
from replication.membership import UNKNOWN, Member, Membership

GROUP, NEW = "g", "new"
FOUNDED = founding((1, 2, 3))


def empty(replica: int) -> Answer:
    return Answer(replica, "", 0, b"")


def of_group(replica: int, membership: Membership = FOUNDED, epoch: int = 1, group: str = GROUP) -> Answer:
    return Answer(replica, group, epoch, membership.encode())


def test_one_of_three_empty_members_founds_the_group_whatever_the_order() -> None:
    for ids in permutations((5, 7, 9)):
        own, *others = ids
        found = join(own, [empty(other) for other in others], NEW)
        assert found == (Join(NEW, founding((5, 7, 9))) if own == 5 else None)


def test_nobody_founds_before_all_have_answered() -> None:
    assert join(5, [empty(7), None], NEW) is None
    assert join(5, [None, None], NEW) is None


def test_a_member_that_is_its_own_peer_founds_nothing() -> None:
    assert join(5, [empty(5), empty(7)], NEW) is None
    assert join(5, [empty(7), empty(7)], NEW) is None


def test_founders_join_with_their_vote_and_others_without() -> None:
    assert join(3, [of_group(1), empty(2)], NEW) == Join(GROUP, FOUNDED)
    assert join(3, [of_group(1), None], NEW) == Join(GROUP, FOUNDED)
    assert join(4, [of_group(1), of_group(2)], NEW) == Join(GROUP, UNKNOWN)


def test_nobody_founds_a_group_while_a_member_holds_state() -> None:
    assert join(1, [empty(8), of_group(3)], NEW) == Join(GROUP, FOUNDED)
    assert join(4, [empty(8), of_group(3)], NEW) == Join(GROUP, UNKNOWN)


def test_once_the_members_have_changed_everyone_learns_them_from_the_log() -> None:
    later = changed(FOUNDED, AddLearner(Member(4, 4)))
    assert join(3, [of_group(1, later), empty(2)], NEW) == Join(GROUP, UNKNOWN)


def test_the_group_with_the_latest_epoch_counts() -> None:
    answers = [of_group(1, epoch=3), of_group(2, epoch=9, group="other")]
    assert join(4, answers, NEW) == Join("other", UNKNOWN)


def _after(membership: Membership, *present: int) -> list[object]:
    """All steps from here until nothing is left to do."""
    steps: list[object] = []
    while (step := next_change(membership, present, membership.learners)) is not None:
        steps.append(step)
        membership = changed(membership, step)
        if membership.joint:
            assert next_change(membership, present, ()) is None
            membership = left(membership)
    assert set(membership.voters) == set(present)
    assert not membership.learners
    return steps


def test_a_lost_member_is_exchanged_for_the_new_one_in_its_place() -> None:
    assert _after(FOUNDED, 1, 2, 4) == [AddLearner(Member(4, 4)), Promote((1, 2, 4))]


def test_one_member_grows_to_three() -> None:
    assert _after(founding((1,)), 1, 2, 3) == [
        AddLearner(Member(2, 2)),
        AddLearner(Member(3, 3)),
        Promote((1, 2, 3)),
    ]


def test_a_learner_that_is_lost_before_it_votes_goes() -> None:
    membership = changed(FOUNDED, AddLearner(Member(4, 4)))
    assert _after(membership, 1, 2, 5) == [RemoveLearner(4), AddLearner(Member(5, 5)), Promote((1, 2, 5))]


def test_a_learner_that_is_far_behind_is_waited_for() -> None:
    membership = changed(FOUNDED, AddLearner(Member(4, 4)))
    assert next_change(membership, (1, 2, 4), ()) is None
    assert next_change(membership, (1, 2, 4), (4,)) == Promote((1, 2, 4))


def test_there_is_nothing_to_do_where_all_are_there() -> None:
    assert next_change(FOUNDED, (3, 1, 2), ()) is None
