"""How a replica seeks leadership, and answers those who do: pre-votes, votes, orders to stand."""

from __future__ import annotations

from replication.duties import Duties
from replication.effects import HardState
from replication.election import Ballot
from replication.leadership import Leadership
from replication.lease import NEVER, serve_from
from replication.messages import FIRST_OF_EPOCH, Entry, HandOver, VoteReply, VoteRequest
from replication.state import State


class Elections(State):
    """The part of a `Replica` that votes and is voted for."""

    def _step_question(self, request: VoteRequest, now: float, duties: Duties) -> None:
        granted = (
            request.epoch > self.epoch
            and self._leading is None
            and not self._hears_leader(now)
            and self._up_to_date(request)
        )
        if granted:
            self._yield_to(request, now)
        epoch = request.epoch if granted else self.epoch
        duties.send_at_once.append(VoteReply(self.replica, request.sender, epoch, granted, pre=True))

    def _yield_to(self, request: VoteRequest, now: float) -> None:
        """Lets a peer that would get its vote try first: if both stood, each would vote for itself, and only a whole
        election timeout later could either win. Of two that ask at once, the one with the longer log, then the one
        with the higher id, goes on."""
        asks = self._ballot is not None
        own = (self._log.last_epoch, self._log.last_position, self.replica)
        if asks and own > (request.last_epoch, request.last_position, request.sender):
            return
        self._yields_until = now + self._yield_seconds()
        if asks:
            self._ballot = None
            self._stand_at = self._yields_until

    def _step_vote_request(self, request: VoteRequest, now: float, duties: Duties) -> None:
        if self._disturbs(request, now):
            return
        if request.epoch > self.epoch:
            self._raise_epoch(request.epoch, now, duties)
        granted = (
            request.epoch == self.epoch
            and self.vote in (0, request.sender)
            and self.leader == 0
            and self._up_to_date(request)
        )
        if granted and not self.vote:
            self.vote = request.sender
            duties.save = HardState(self.epoch, self.vote)
            self._stand_at = now + self._election_timeout()
        left = self._lease_left(now) if granted else 0.0
        duties.send_after_flush.append(VoteReply(self.replica, request.sender, self.epoch, granted, lease_left=left))

    def _disturbs(self, request: VoteRequest, now: float) -> bool:
        """Whether a stranger stands against a leader that is heard: one that was removed and was not told so."""
        if request.ordered or self._is_voter(request.sender):
            return False
        return self._leading is not None or self._hears_leader(now)

    def _step_vote_reply(self, reply: VoteReply, now: float, duties: Duties) -> None:
        if reply.epoch > self.epoch and not (reply.pre and reply.granted):
            self._raise_epoch(reply.epoch, now, duties)
        ballot = self._ballot
        if ballot is None or not reply.granted or (reply.pre, reply.epoch) != (ballot.pre, ballot.epoch):
            return
        ballot.grant(reply.sender, serve_from(self.timing, reply.lease_left, now))
        if not ballot.won(self.membership):
            return
        if not ballot.pre:
            self._be_leader(ballot, now, duties)
        elif not self._hears_leader(now):
            self._campaign(now, duties, ordered=False)

    def may_write(self) -> bool:
        """Whether `propose` may be called. A refusal is an answer from state: it needs `may_read` as well."""
        return self._leading is not None and self._leading.serves(self.applied)

    def _may_stand(self) -> bool:
        return self._is_voter(self.replica) and not self._missing.state

    def _ask_around(self, now: float, duties: Duties) -> None:
        """Asks who would vote for this replica. It stays a follower, and what it promised as one still holds."""
        if not self._may_stand():
            self._ballot, self._stand_at = None, now + self._election_timeout()
            return
        if now < self._yields_until:
            self._stand_at = self._yields_until
            return
        if self.role == "candidate":
            self._be_follower(0, now, duties)
        self._ballot = Ballot(self.epoch + 1, pre=True)
        self._ballot.grant(self.replica, NEVER)
        self._stand_at = now + self._election_timeout()
        if self._ballot.won(self.membership):
            self._campaign(now, duties, ordered=False)
        else:
            duties.send_at_once.extend(self._ballot.requests(self.replica, self.membership, self._log))

    def _campaign(self, now: float, duties: Duties, *, ordered: bool) -> None:
        """Votes for itself in the next epoch and asks the others to, once that is flushed.

        An order holds for this one epoch, directly after the one that ended with it; no later try may skip the wait.
        """
        left = self._lease_left(now)
        self._set_state("candidate", self.epoch + 1, 0, now, duties)
        self.vote = self.replica
        duties.save = HardState(self.epoch, self.vote)
        self._ballot = Ballot(self.epoch, ordered=ordered)
        self._ballot.grant(self.replica, serve_from(self.timing, left, now))
        self._stand_at = now + self._election_timeout()
        if self._ballot.won(self.membership):
            self._be_leader(self._ballot, now, duties)
        else:
            duties.send_after_flush.extend(self._ballot.requests(self.replica, self.membership, self._log))

    def _be_leader(self, ballot: Ballot, now: float, duties: Duties) -> None:
        self._ballot, self._stand_at = None, None
        self._leading = Leadership(
            self.replica,
            self.epoch,
            self._log,
            history=self._history,
            timing=self.timing,
            contact=self._contact,
            now=now,
            serve_from=now if ballot.ordered else ballot.serve_from,
        )
        self._set_state("leader", self.epoch, self.replica, now, duties)
        self._append_own([Entry(self.epoch, self._log.last_position + 1, b"", FIRST_OF_EPOCH)], duties)
        self._tick_leader(self._leading, now, duties)

    def _tick_leader(self, leading: Leadership, now: float, duties: Duties) -> None:
        if not leading.waited and now >= leading.serve_from:
            leading.waited = True
            duties.role_changed = duties.role_changed or self.may_write()
            self._go_on_with_change(leading, duties)
        self._let_lead(leading, now, duties)
        if leading.handing_to and now >= leading.hand_over_until:
            self._be_follower(0, now, duties)

    def _let_lead(self, leading: Leadership, now: float, duties: Duties) -> None:
        """Hands over where this replica is not to lead, and gives the order once its target has all there is."""
        if not leading.handing_to and leading.waited:
            if leading.retires:
                self._hand_over(leading, leading.nearest(), now, duties)
            elif self.log_only and (complete := leading.complete()):
                self._hand_over(leading, complete, now, duties)
        self._order_if_complete(leading, duties)

    def _hand_over(self, leading: Leadership, to: int, now: float, duties: Duties) -> None:
        leading.handing_to, leading.hand_over_until = to, now + self.timing.election_max
        duties.role_changed = True
        self._order_if_complete(leading, duties)
        self._wake(duties, (to,))

    def _order_if_complete(self, leading: Leadership, duties: Duties) -> None:
        to = leading.handing_to
        if not to or leading.order_sent or not leading.waited:
            return
        if leading.match_of(to) == self._log.last_position:
            leading.order_sent = True
            duties.send_at_once.append(HandOver(self.replica, to, self.epoch))
