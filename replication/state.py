"""A replica's state, and the moves in it that elections and the log's rules share."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal

from replication.changes import left
from replication.duties import Duties
from replication.effects import Effects, HardState
from replication.election import Ballot
from replication.history import History
from replication.leadership import Leadership
from replication.lease import NEVER, Contact, NoContact, lease_left
from replication.log import Log, LogSummary
from replication.membership import Membership
from replication.messages import MEMBERSHIP, Entry, VoteRequest
from replication.missing import Missing
from replication.timing import Timing

Role = Literal["leader", "follower", "candidate"]

MEMORY_BYTES = 4 * 1024 * 1024
"""Entries that a leader keeps in memory for slow peers, by default; what is not applied is kept whatever it takes."""


class State:
    """What a `Replica` is made of; see there."""

    def __init__(
        self,
        *,
        replica: int,
        membership: Membership,
        timing: Timing,
        random: Random,
        hard_state: HardState,
        log: LogSummary,
        applied: int,
        now: float,
        restarted_at: float = NEVER,
        contact: Contact | None = None,
        memory_bytes: int = MEMORY_BYTES,
        log_only: bool = False,
    ) -> None:
        self.replica = replica
        self.log_only = log_only
        self.timing = timing
        self.role: Role = "follower"
        self.epoch = hard_state.epoch
        self.vote = hard_state.vote
        self.leader = 0
        self.commit = self.applied = applied
        self._log = Log(log)
        self.durable = self._log.last_position
        assert applied <= self.durable, "applied what the log does not hold"
        if log_only:
            applied = self.applied = self._log.first_position - 1
        self._missing = Missing.at_start(applied, self._log.first_position)
        self.commit = max(self.commit, self._log.first_position - 1)
        self._history = History([(0, membership), *log.memberships])
        self.membership = self._history.current
        self._voters = frozenset(self.membership.replicas())
        self._random = random
        self._restarted_at = restarted_at
        self._contact: Contact = contact or NoContact()
        self._contact.members_changed(self.membership, 0)
        self._memory_bytes = memory_bytes
        self._handed = applied
        self._loading = False
        self._matched = self._heard_commit = self.commit
        self._followed_at = NEVER
        self.held = 0
        """On a log replica, up to where every live full replica has the log, as the leader said."""
        self._ballot: Ballot | None = None
        self._leading: Leadership | None = None
        self._stand_at: float | None = now + self._election_timeout()
        self._yields_until = NEVER
        """Another one, which it would vote for, has asked around: it has the first try."""

    def has_for(self, peer: int) -> bool:
        """Whether `append_for` would return something for this peer."""
        return self._leading is not None and self._leading.has_for(peer)

    def _raise_epoch(self, epoch: int, now: float, duties: Duties) -> None:
        self._set_state("follower", epoch, 0, now, duties)
        self._ballot, self._leading, self.vote = None, None, 0
        duties.save = HardState(epoch, 0)
        self._stand_at = now + self._election_timeout()

    def _be_follower(self, leader: int, now: float, duties: Duties) -> None:
        """Follows `leader` in this epoch; 0: nobody yet, and stands if it stays so."""
        goes_on = leader and self.role == "follower" and self.leader == leader
        self._set_state("follower", self.epoch, leader, now, duties)
        if goes_on:
            # It was about to stand, and beats tell of a silence once: it waits for the next beat anew.
            self._contact.changed(self.epoch, leader, False, now)
        self._ballot, self._leading = None, None
        self._followed_at = now
        self._stand_at = None if leader else now + self._election_timeout()

    def _set_state(self, role: Role, epoch: int, leader: int, now: float, duties: Duties) -> None:
        assert epoch >= self.epoch, "epochs never fall"
        if epoch > self.epoch:
            self._matched = self._heard_commit = self.commit
        if (role, epoch, leader) != (self.role, self.epoch, self.leader):
            duties.role_changed = True
            self.role, self.epoch, self.leader = role, epoch, leader
            self._contact.changed(epoch, leader, role == "leader", now)

    def _append_own(self, entries: list[Entry], duties: Duties) -> None:
        assert self._leading is not None, "only a leader appends of its own accord"
        self._log.append(entries)
        duties.append.extend(entries)
        if self._history.append(entries):
            self._membership_changed(duties)
        self._wake(duties, self._leading.peers)

    def _append_membership(self, membership: Membership, duties: Duties) -> None:
        entry = Entry(self.epoch, self._log.last_position + 1, membership.encode(), MEMBERSHIP)
        self._append_own([entry], duties)

    def _membership_changed(self, duties: Duties) -> None:
        """Another membership is in force: an entry that holds one came, or went."""
        self.membership = self._history.current
        self._voters = frozenset(self.membership.replicas())
        duties.membership_changed = True
        if self._leading is not None:
            self._leading.membership_changed(self.membership)
        self._contact.members_changed(self.membership, self.epoch if self._leading is not None else 0)

    def _wake(self, duties: Duties, peers: Sequence[int]) -> None:
        duties.wake_peers.extend(peer for peer in peers if self.has_for(peer))

    def _advance_commit(self, duties: Duties) -> None:
        if self._leading is not None:
            position = self._leading.replicated(self.durable)
            if position > self.commit and self._log.epoch_at(position) == self.epoch:
                self._commit_to(position)
                self._go_on_with_change(self._leading, duties)

    def _go_on_with_change(self, leading: Leadership, duties: Duties) -> None:
        """Leaves a joint membership that is committed; a leader that is no member of the new one lets another lead.

        It has waited for older leases by then: those may rest on the old voters alone, and whom the new ones elect next
        hears nothing of them.
        """
        if not leading.waited or leading.handing_to:
            return
        if self.commit < max(self._history.position, leading.first_of_epoch):
            return
        if self.membership.joint and not self.log_only:
            self._append_membership(left(self.membership), duties)
        elif self.replica not in self._voters:
            leading.retires = True

    def _hear_commit(self, position: int) -> None:
        self._heard_commit = max(self._heard_commit, position)
        self._commit_to(min(self._heard_commit, self._matched))

    def _commit_to(self, position: int) -> None:
        self.commit = max(self.commit, position)

    def _trim_memory(self) -> None:
        if self._leading is None:
            self._log.forget(self.applied)
        else:
            self._log.forget(min(self.applied, self._leading.matched_by_all()))
            self._log.shrink(self._memory_bytes, self.applied)

    def _done(self, duties: Duties) -> Effects:
        """Adds what may now be applied, or must be loaded to be."""
        upto = min(self.commit, self.durable)
        if self.log_only:
            self._handed = self.applied = max(upto, self._handed)
        elif upto > self._handed and not self._loading and not self._missing.state:
            first = self._handed + 1
            if first >= self._log.memory_first:
                duties.apply += self._log.between(first, upto)
                self._handed = upto
            elif self.applied == self._handed:
                self._loading = True
                duties.load = (first, min(upto, self._log.memory_first - 1))
        return duties.effects()

    def _is_voter(self, replica: int) -> bool:
        return replica in self._voters

    def _up_to_date(self, request: VoteRequest) -> bool:
        return (request.last_epoch, request.last_position) >= (self._log.last_epoch, self._log.last_position)

    def _hears_leader(self, now: float) -> bool:
        if not self.leader:
            return False
        return now - max(self._contact.answered_at(), self._followed_at) < self.timing.lease

    def _lease_left(self, now: float) -> float:
        return lease_left(self.timing, self._contact.answered_at(), self._restarted_at, now)

    def _election_timeout(self) -> float:
        """Drawn anew each time; a log replica lets those stand first that could serve."""
        patience = self.timing.election_max if self.log_only else 0.0
        return patience + self._random.uniform(self.timing.election_min, self.timing.election_max)

    def _yield_seconds(self) -> float:
        """How long another one is let try: much less than it takes until that one would try again."""
        spread = self.timing.election_max - self.timing.election_min
        return self._random.uniform(spread / 2, spread)
