"""How a member with an empty disk finds its group, and how a leader exchanges lost members. Pure.

A group is founded once, by members that are all empty: each has drawn a replica id, and the one with the lowest founds
it for all. So a member that lost its disk, which is another replica from then on, never votes as though it had kept its
promises; and while one member still holds state nobody begins anew, and no copy of the storage nodes is adopted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from replication.changes import AddLearner, Change, Promote, RemoveLearner
from replication.membership import UNKNOWN, Member, Membership


@dataclass(frozen=True)
class Answer:
    """What another member said of itself: `group` is empty while it is of none."""

    replica: int
    group: str
    epoch: int
    membership: bytes


@dataclass(frozen=True)
class Join:
    """Become a member of this group: with these voters from its founding on, or as a learner (`UNKNOWN`)."""

    group: str
    membership: Membership


def join(own: int, answers: Sequence[Answer | None], new_group: str) -> Join | None:
    """What a member of no group does after it has asked all others at once; None: it asks again.

    An answer is None where there was none. `new_group`: the name of the group if it is this member that founds it.
    """
    found = [answer for answer in answers if answer is not None]
    grouped = [answer for answer in found if answer.group]
    if grouped:
        newest = max(grouped, key=lambda answer: answer.epoch)
        membership = Membership.decode(newest.membership) if newest.membership else UNKNOWN
        founders = membership if own in membership.voters and membership.version == 0 else UNKNOWN
        return Join(newest.group, founders)
    ids = sorted({own, *(answer.replica for answer in found)})
    if len(found) < len(answers) or len(ids) <= len(answers) or own != ids[0]:
        return None
    return Join(new_group, founding(ids))


def founding(replicas: Collection[int]) -> Membership:
    """The membership that a group begins with. Each replica counts as a node of its own."""
    ids = sorted(replicas)
    return Membership(tuple(ids), members=tuple(Member(replica, replica) for replica in ids))


def next_change(membership: Membership, present: Collection[int], matched: Collection[int]) -> Change | None:
    """The leader's next step towards the members that are there; None when there is none.

    `present`: the replicas at all addresses, the leader's own included; `matched`: the learners among them whose log is
    nearly the leader's. Called only while every address has an answer, so that who is not present is gone for good.
    """
    if membership.joint:
        return None
    gone = [learner for learner in membership.learners if learner not in present]
    if gone:
        return RemoveLearner(gone[0])
    new = [replica for replica in sorted(present) if membership.member(replica) is None]
    if new:
        return AddLearner(Member(new[0], new[0]))
    if set(membership.voters) == set(present):
        return None
    waited_for = [learner for learner in membership.learners if learner not in matched]
    return None if waited_for else Promote(tuple(sorted(present)))
