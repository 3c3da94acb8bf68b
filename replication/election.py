"""One election, as its candidate sees it."""

from __future__ import annotations

from dataclasses import dataclass, field

from replication.lease import NEVER
from replication.log import Log
from replication.membership import Membership
from replication.messages import VoteRequest
from replication.quorum import is_majority


@dataclass(slots=True)
class Ballot:
    """The votes for one candidate in `epoch`; with `pre` only asked whether they would be given.

    `serve_from`: when the longest lease that a granted vote reported has surely ended, on the candidate's clock.
    """

    epoch: int
    pre: bool = False
    ordered: bool = False
    serve_from: float = NEVER
    granted: set[int] = field(default_factory=set)

    def grant(self, voter: int, serve_from: float) -> None:
        """A vote, and the time that its lease asks the winner to wait for."""
        self.granted.add(voter)
        self.serve_from = max(self.serve_from, serve_from)

    def won(self, membership: Membership) -> bool:
        """Whether a majority of each set of voters is for the candidate."""
        return is_majority(membership, self.granted)

    def requests(self, candidate: int, membership: Membership, log: Log) -> list[VoteRequest]:
        """What to ask each other voter."""
        return [
            VoteRequest(candidate, voter, self.epoch, log.last_position, log.last_epoch, self.pre, self.ordered)
            for voter in membership.replicas()
            if voter != candidate
        ]
