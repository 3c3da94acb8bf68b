"""The single steps by which a membership changes. Each is one entry of the partition's log.

A replica is replaced in three: the new one is added as a learner; once it is up to date a joint membership lets both
sets of voters decide; once that is committed the leader goes on to the new set by itself, and who voted only in the
old one is no longer a member.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from replication.membership import Member, Membership


@dataclass(frozen=True, slots=True)
class AddLearner:
    """A new replica, to be brought up to date."""

    member: Member


@dataclass(frozen=True, slots=True)
class RemoveLearner:
    """A learner that is not wanted any more."""

    replica: int


@dataclass(frozen=True, slots=True)
class Promote:
    """From now on these are the voters; those of today that are not among them go."""

    voters: tuple[int, ...]


Change: TypeAlias = AddLearner | RemoveLearner | Promote


def changed(membership: Membership, change: Change) -> Membership:
    """The membership after one step. Raises ValueError when it cannot be taken from here."""
    if membership.joint:
        raise ValueError("a joint membership is left before it is changed again")
    version = membership.version + 1
    match change:
        case AddLearner(member):
            if membership.member(member.replica) is not None:
                raise ValueError(f"replica {member.replica} is a member already")
            if member.node and any(other.node == member.node for other in membership.members):
                raise ValueError(f"node {member.node} has a member already")
            return replace(membership, version=version, members=(*membership.members, member))
        case RemoveLearner(replica):
            if replica not in membership.learners:
                raise ValueError(f"replica {replica} is no learner")
            members = tuple(member for member in membership.members if member.replica != replica)
            return replace(membership, version=version, members=members)
        case Promote(voters):
            if any(membership.member(voter) is None for voter in voters):
                raise ValueError("only members can vote")
            if set(voters) == set(membership.voters):
                raise ValueError("these are the voters already")
            joint = replace(membership, version=version, voters=voters, old_voters=membership.voters)
            if not joint.full_voters:
                raise ValueError("a partition keeps a full voter")
            return joint


def left(membership: Membership) -> Membership:
    """The membership after a joint one: the new voters, and the learners, of whom nobody voted before."""
    assert membership.joint, "only a joint membership is left"
    stay = {*membership.voters, *membership.learners}
    members = tuple(member for member in membership.members if member.replica in stay)
    return Membership(membership.voters, membership.version + 1, members)
