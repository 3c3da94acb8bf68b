"""Who keeps a partition's log, and who votes on it.

Members are replicas; those that neither `voters` nor `old_voters` name are learners, which are brought up to date and
count nowhere. While `old_voters` is not empty the membership is joint: whatever needs a majority needs one of each set.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import chain

_FORMAT_VOTERS = 1
"""As it was before members changed: voters alone."""
_FORMAT = 2
_HEAD = struct.Struct("<BQH")
_SIZES = struct.Struct("<HH")
_MEMBER = struct.Struct("<QQB")


@dataclass(frozen=True, slots=True)
class Member:
    """One replica and its node (0: not said). `log_only`: it keeps the log and votes, and has no state to serve."""

    replica: int
    node: int = 0
    log_only: bool = False


@dataclass(frozen=True, slots=True)
class Membership:
    """`version` rises with every change, and no other membership of the partition's log has the same.

    Ids are never reused. Voters that `members` does not name are added to it. Without voters it is what a replica knows
    that was never told anything.
    """

    voters: tuple[int, ...]
    version: int = 0
    members: tuple[Member, ...] = ()
    old_voters: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        named = {member.replica for member in self.members}
        unnamed = [Member(voter) for voter in self.replicas() if voter not in named]
        object.__setattr__(self, "members", (*self.members, *unnamed))
        ids = [member.replica for member in self.members]
        for each in (self.voters, self.old_voters, ids):
            if len(set(each)) != len(each) or min(each, default=1) < 1:
                raise ValueError("voters and members are distinct replica ids above zero")
        if not self.voters and (self.version or ids):
            raise ValueError("only who was never told anything knows of no voter")

    @property
    def joint(self) -> bool:
        """Whether two sets of voters must agree."""
        return bool(self.old_voters)

    @property
    def learners(self) -> tuple[int, ...]:
        """The members that do not vote."""
        voting = self.replicas()
        return tuple(member.replica for member in self.members if member.replica not in voting)

    @property
    def full_voters(self) -> tuple[int, ...]:
        """The voters of the new set that keep state."""
        return tuple(voter for voter in self.voters if not self.is_log_only(voter))

    def sets(self) -> tuple[tuple[int, ...], ...]:
        """The sets that each need a majority of their own: two during a joint change, else one."""
        return (self.voters, self.old_voters) if self.old_voters else (self.voters,)

    def replicas(self) -> tuple[int, ...]:
        """Every voter of either set once."""
        return tuple(dict.fromkeys(chain(self.voters, self.old_voters)))

    def member(self, replica: int) -> Member | None:
        """The member of this id."""
        return next((member for member in self.members if member.replica == replica), None)

    def is_log_only(self, replica: int) -> bool:
        """Whether this member keeps no state."""
        member = self.member(replica)
        return member is not None and member.log_only

    def encode(self) -> bytes:
        """Format byte, version, numbers of voters, old voters and members; voters, old voters; members.

        Little-endian; a member is its id, its node and one byte, 1 for a log replica.
        """
        ids = (*self.voters, *self.old_voters)
        return b"".join(
            (
                _HEAD.pack(_FORMAT, self.version, len(self.voters)),
                _SIZES.pack(len(self.old_voters), len(self.members)),
                struct.pack(f"<{len(ids)}Q", *ids),
                *(_MEMBER.pack(member.replica, member.node, member.log_only) for member in self.members),
            )
        )

    @classmethod
    def decode(cls, data: bytes) -> Membership:
        """The inverse of `encode`, also of its first format. Raises ValueError for anything else."""
        try:
            form, version, count = _HEAD.unpack_from(data)
            if form == _FORMAT_VOTERS:
                return cls(_ids(data, _HEAD.size, count, whole=True), version)
            if form != _FORMAT:
                raise ValueError("not a membership of a known format")
            old_count, member_count = _SIZES.unpack_from(data, _HEAD.size)
            at = _HEAD.size + _SIZES.size
            voters, old_voters = _ids(data, at, count), _ids(data, at + 8 * count, old_count)
            at += 8 * (count + old_count)
            if len(data) != at + member_count * _MEMBER.size:
                raise ValueError("a membership of another length than it says")
            members = tuple(
                Member(replica, node, bool(log_only)) for replica, node, log_only in _MEMBER.iter_unpack(data[at:])
            )
        except struct.error as error:
            raise ValueError(f"not a membership: {error}") from error
        return cls(voters, version, members, old_voters)


UNKNOWN = Membership(())
"""What a new replica knows that was not there when its partition was made."""


def _ids(data: bytes, at: int, count: int, *, whole: bool = False) -> tuple[int, ...]:
    if whole and len(data) != at + 8 * count:
        raise ValueError("a membership of another length than it says")
    return struct.unpack_from(f"<{count}Q", data, at)
