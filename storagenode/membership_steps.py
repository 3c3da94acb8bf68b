"""What a leader does next so that its partition's members become those of the catalog's record. Decisions only.

Each look starts from the newest record and from what the log says, so that a plan that has gone stale does nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from cluster.topology import Partition, PartitionState, ReplicaPlace
from replication.changes import AddLearner, Change, Promote, RemoveLearner
from replication.membership import Member, Membership

CAUGHT_UP_ENTRIES: Final = 1000
"""A learner that lacks no more than so many entries is fit to vote: writes hardly wait for it."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What a leader knows of its log and of the others: how far each has it (0: it has not answered yet), and whether
    its node answers."""

    leader: int
    last_position: int
    match_of: Callable[[int], int]
    answers: Callable[[int], bool]

    def is_ready(self, replica: int) -> bool:
        """Whether a replica has nearly all of the log, and goes on taking it."""
        if replica == self.leader:
            return True
        match = self.match_of(replica)
        return match > 0 and self.last_position - match <= CAUGHT_UP_ENTRIES and self.answers(replica)


@dataclass(frozen=True, slots=True)
class LetLead:
    """The leader is to go: another one leads first, so that nobody waits for an election."""

    replica: int


Step: TypeAlias = Change | LetLead


def is_settled(record: Partition, membership: Membership) -> bool:
    """Whether the members are those of the record."""
    return not membership.learners and {place.replica for place in record.wanted_voters} == set(membership.voters)


def next_step(record: Partition, membership: Membership, progress: Progress) -> Step | None:
    """One step from a committed membership that is not joint; None: nothing to do, or something to wait for."""
    wanted = {place.replica: place for place in record.wanted_voters}
    if record.state is not PartitionState.ACTIVE or not wanted:
        return None
    if unwanted := [learner for learner in membership.learners if learner not in wanted]:
        return RemoveLearner(unwanted[0])
    if (joining := _joining(list(wanted.values()), membership)) is not None:
        return AddLearner(Member(joining.replica, joining.node, joining.log_only))
    if (staying := _without_unknown(record, membership)) is not None:
        ready = [replica for replica in membership.learners if progress.is_ready(replica)]
        return _towards((*staying, *ready), membership, progress)
    if set(wanted) == set(membership.voters) or any(membership.member(replica) is None for replica in wanted):
        return None
    if any(membership.is_log_only(replica) for replica in wanted) and all(place.log_only for place in wanted.values()):
        return None
    if not all(progress.is_ready(replica) for replica in wanted if replica not in membership.voters):
        return None
    return _towards(tuple(wanted), membership, progress)


def _towards(voters: tuple[int, ...], membership: Membership, progress: Progress) -> Step:
    """These voters, led by one of them if one can."""
    if progress.leader not in voters:
        heirs = [replica for replica in membership.full_voters if replica in voters and progress.is_ready(replica)]
        if heirs:
            return LetLead(max(heirs, key=progress.match_of))
    return Promote(voters)


def _without_unknown(record: Partition, membership: Membership) -> list[int] | None:
    """The voters but one that the record does not even name, and whose node is to hold another replica: it was given up
    before auto-admin heard that it had come to vote, and nothing goes on while it is a member. None: there is none, or
    only log replicas would be left."""
    awaited = {place.node for place in record.wanted_voters if membership.member(place.replica) is None}
    for voter in membership.voters:
        member = membership.member(voter)
        if record.replica(voter) is None and member is not None and member.node in awaited:
            staying = [each for each in membership.voters if each != voter]
            return staying if any(each in membership.full_voters for each in staying) else None
    return None


def _joining(wanted: list[ReplicaPlace], membership: Membership) -> ReplicaPlace | None:
    """A wanted replica that is no member, unless its node has a member: a node holds one replica of a partition."""
    taken = {member.node for member in membership.members}
    return next(
        (place for place in wanted if membership.member(place.replica) is None and place.node not in taken), None
    )


def may_drop(replica: int, held: Membership, agreed: Membership, ordered_version: int) -> bool:
    """Whether a replica obeys an order to be dropped, which was made from what was agreed on at `ordered_version`.

    `agreed`: the last membership that its own log knows to be agreed on. A later one is not overruled, nor that very
    one if it names the replica. `held`: the one in force there. It may have lost, and nobody may come to tell: so it
    counts only where it could still make a voter of the replica, whose copy may have been counted.
    """
    if agreed.version > ordered_version or (agreed.version == ordered_version and agreed.member(replica) is not None):
        return False
    return held.version <= ordered_version or replica not in held.replicas()
