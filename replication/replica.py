"""One replica's part in agreeing on a log of bytes: Raft's rules with leases. README.md draws the states.

Invariants (each is asserted here, or checked by the property tests after every step):
- the epoch never falls; in one epoch this replica votes for one candidate, and the vote is flushed before it leaves;
- applied <= what was handed out to apply <= min(commit, durable): what is applied is in the own log, after any crash;
- entries up to `commit` are never replaced;
- a leader commits entries by counting only in its own epoch, and older ones with them;
- up to `_matched`, a follower's log equals that of the leader of its epoch; it takes no leader's commit beyond that;
- what lies before the log's first position is committed, and in a snapshot; a replica that has not applied it lacks its
  state: it votes and acknowledges, since its log is whole, but it does not stand and applies nothing.

Every call returns `Effects`; the state in memory moves at once, and what others may learn waits for the flush.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal

from replication.duties import Duties
from replication.effects import NOTHING, Covered, Effects, Fetch, HardState
from replication.election import Ballot
from replication.leadership import Leadership
from replication.lease import NEVER, Contact, NoContact, lease_left, serve_from
from replication.log import Log, LogSummary
from replication.membership import Membership
from replication.messages import (
    FIRST_OF_EPOCH,
    NORMAL,
    Append,
    AppendReply,
    Entry,
    HandOver,
    Message,
    VoteReply,
    VoteRequest,
)
from replication.missing import Missing
from replication.timing import Timing

Role = Literal["leader", "follower", "candidate"]

MEMORY_BYTES = 4 * 1024 * 1024
"""Entries that a leader keeps in memory for slow peers, by default; what is not applied is kept whatever it takes."""


class Replica:
    """`restarted_at`: the start of this process, if the replica existed before it; `NEVER` for a new replica."""

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
    ) -> None:
        self.replica = replica
        self.membership = membership
        self.timing = timing
        self.role: Role = "follower"
        self.epoch = hard_state.epoch
        self.vote = hard_state.vote
        self.leader = 0
        self.commit = self.applied = applied
        self._log = Log(log)
        self.durable = self._log.last_position
        assert applied <= self.durable, "applied what the log does not hold"
        self._missing = Missing.at_start(applied, self._log.first_position)
        self.commit = max(self.commit, self._log.first_position - 1)
        self._voters = frozenset(membership.replicas())
        self._random = random
        self._restarted_at = restarted_at
        self._contact: Contact = contact or NoContact()
        self._memory_bytes = memory_bytes
        self._handed = applied
        self._loading = False
        self._matched = self._heard_commit = self.commit
        self._followed_at = NEVER
        self._ballot: Ballot | None = None
        self._leading: Leadership | None = None
        self._stand_at: float | None = now + self._election_timeout()

    # What the shell asks

    @property
    def last_position(self) -> int:
        """The last position of the log, flushed or not."""
        return self._log.last_position

    @property
    def log_spans(self) -> tuple[tuple[int, int], ...]:
        """(epoch, first position of it) of the log, rising."""
        return self._log.spans

    @property
    def first_position(self) -> int:
        """The first position of the log, as this core uses it."""
        return self._log.first_position

    @property
    def wanted_snapshot(self) -> int | None:
        """The position that a snapshot must cover to be of use here; None while none is needed."""
        return self._missing.wanted

    @property
    def lacks_state(self) -> bool:
        """Whether the applied state is not there, or is just being replaced."""
        return self._missing.state

    @property
    def installing_peers(self) -> tuple[int, ...]:
        """On a leader, the peers that its log cannot bring up to date, as far as is known."""
        return () if self._leading is None else self._leading.installing

    def match_of(self, peer: int) -> int | None:
        """On a leader, up to where the peer's log is known to be durable and equal; None on others, and of itself."""
        return None if self._leading is None or peer == self.replica else self._leading.match_of(peer)

    def follows(self, epoch: int) -> bool:
        """Whether it follows the leader of `epoch`: only then does its node answer that leader's beats for it."""
        return epoch == self.epoch and self.leader not in (0, self.replica)

    def may_read(self, now: float) -> bool:
        """Whether the applied state is the latest there is. Ask between the request and its answer."""
        return self.may_write() and self._leading is not None and self._leading.lease_valid(now)

    def may_write(self) -> bool:
        """Whether `propose` may be called. A refusal is an answer from state: it needs `may_read` as well."""
        return self._leading is not None and self._leading.serves(self.applied)

    def deadline(self) -> float | None:
        """When `tick` is next wanted; None while a leader is known and nothing is under way."""
        if self._leading is None:
            return self._stand_at
        wanted = [] if self._leading.waited else [self._leading.serve_from]
        if self._leading.handing_to:
            wanted.append(self._leading.hand_over_until)
        return min(wanted, default=None)

    # Time

    def tick(self, now: float) -> Effects:
        """Does what is due at `now`; harmless at any other time."""
        duties = Duties()
        if self._leading is not None:
            self._tick_leader(self._leading, now, duties)
        elif self._stand_at is not None and now >= self._stand_at:
            if self._hears_leader(now):
                self._ballot, self._stand_at = None, None
            else:
                self._ask_around(now, duties)
        return self._done(duties)

    def stand(self, now: float) -> Effects:
        """Seeks leadership: first asks who would vote for it. Does nothing while it leads or hears its leader."""
        duties = Duties()
        if self._leading is None and not self._hears_leader(now):
            self._ask_around(now, duties)
        return self._done(duties)

    def leader_gone(self, epoch: int, now: float) -> Effects:
        """The node of this epoch's leader says that it no longer leads: stands soon, and no longer speaks for it."""
        duties = Duties()
        if self.follows(epoch):
            self._be_follower(0, now, duties)
            timing = self.timing
            self._stand_at = now + self._random.uniform(0.0, timing.election_max - timing.election_min)
        return self._done(duties)

    def check_quorum(self, now: float) -> Effects:
        """Steps down if no majority has answered for one election timeout. For the shell's beat timer; nearly free."""
        if self._leading is not None and self._leading.unheard(now):
            return self.step_down(now)
        return NOTHING

    def step_down(self, now: float) -> Effects:
        """Gives up leadership in this epoch, if held, and waits an election timeout before standing again."""
        duties = Duties()
        if self._leading is not None:
            self._be_follower(0, now, duties)
        return self._done(duties)

    # The leader's work

    def propose(self, payloads: Sequence[bytes], now: float) -> Effects:  # noqa: ARG002
        """Appends commands, at `last_position` + 1 and on. Only while `may_write`."""
        assert self.may_write(), "only a serving leader proposes"
        duties = Duties()
        first = self._log.last_position + 1
        self._append_own(
            [Entry(self.epoch, first + index, payload, NORMAL) for index, payload in enumerate(payloads)], duties
        )
        return self._done(duties)

    def has_for(self, peer: int) -> bool:
        """Whether `append_for` would return something for this peer."""
        return self._leading is not None and self._leading.has_for(peer)

    def append_for(self, peer: int, max_bytes: int) -> Append | Fetch | None:
        """What to send to a peer now that its lane is free: at least one entry, else as many as fit in `max_bytes`.

        A `Fetch` asks the shell to read entries that are no longer in memory, and to call `fetched` with them.
        """
        return None if self._leading is None else self._leading.append_for(peer, max_bytes, self.commit)

    def fetched(self, peer: int, entries: tuple[Entry, ...]) -> Append | None:
        """The message that carries what `Fetch` asked for; None if no longer wanted. No entries: the read failed."""
        return None if self._leading is None else self._leading.fetched(peer, entries, self.commit)

    def lane_broken(self, peer: int) -> None:
        """The batch with this peer's Append was lost or not answered in time. `has_for` is then true: ask again."""
        if self._leading is not None:
            self._leading.probe(peer)

    def not_followed(self, peer: int) -> Effects:
        """A peer answered a beat but does not follow this epoch: an Append, empty if need be, will tell it."""
        duties = Duties()
        if self._leading is not None and self._leading.not_followed(peer):
            duties.wake_peers.append(peer)
        return self._done(duties)

    def ask_installing(self) -> Effects:
        """On a leader, now and then: asks peers that needed a snapshot whether they have it by now."""
        duties = Duties()
        if self._leading is not None:
            self._wake(duties, self._leading.ask_again())
        return self._done(duties)

    def hand_over(self, to: int, now: float) -> Effects:
        """Reads and writes no more in this epoch, and orders `to` to stand as soon as its log is complete.

        Steps down if that has not led to a new leader after an election timeout.
        """
        assert self._leading is not None, "only a leader hands over"
        assert to in self._leading.peers, "hands over to another voter"
        duties = Duties()
        leading = self._leading
        if not leading.handing_to:
            leading.handing_to, leading.hand_over_until = to, now + self.timing.election_max
            duties.role_changed = True
            self._order_if_complete(leading, duties)
            self._wake(duties, (to,))
        return self._done(duties)

    # What the shell has done

    def flushed(self, position: int, epoch: int) -> Effects:
        """The own log is durable up to the entry at `position`, appended in `epoch` (the entry's own).

        Position and epoch name one log, so a flush of entries that were replaced meanwhile is told apart and ignored.
        """
        duties = Duties()
        if position > self.durable and self._log.epoch_at(position) == epoch:
            self.durable = position
            self._advance_commit()
        return self._done(duties)

    def applied_to(self, position: int) -> Effects:
        """Everything up to `position` is applied. A leader may begin to serve by it."""
        assert position <= self._handed, "applied what was not handed out"
        duties = Duties()
        if position > self.applied:
            served = self.may_write()
            self.applied = position
            duties.role_changed = self.may_write() != served
            self._trim_memory()
        return self._done(duties)

    def trimmed(self, first_position: int) -> None:
        """The node's log now begins there; a durable snapshot of this node's covers what came before."""
        assert first_position - 1 <= self.applied, "trimmed what is not applied"
        self._log.trim(first_position)

    def install(self, position: int, epoch: int) -> Effects:
        """A snapshot that covers `wanted_snapshot` is durable on this node; (position, epoch) is its last entry.

        The shell puts its state in place once what these effects hold is durable, and then calls `installed`.
        """
        self._missing.begin(position)
        duties = Duties()
        restarts = self._log.epoch_at(position) != epoch
        if restarts:
            self._log.restart(position, epoch)
            self.durable = position
        duties.covered = Covered(epoch, position, restarts)
        self.durable = max(self.durable, position)
        self._matched = max(self._matched, position)
        self._handed = position
        self._commit_to(position)
        return self._done(duties)

    def installed(self) -> Effects:
        """The state is that of the snapshot that `install` told of; the log goes on from there."""
        duties = Duties()
        self._missing.state = False
        self.applied = self._handed
        self._trim_memory()
        return self._done(duties)

    def loaded(self, entries: Sequence[Entry]) -> Effects:
        """Entries that `Effects.load` asked for, from its first position on; none if the read must be repeated.

        What a snapshot has overtaken meanwhile is passed over.
        """
        duties = Duties()
        self._loading = False
        if entries and entries[0].position > self._handed:
            assert entries[0].position == self._handed + 1, "loaded what was not asked for"
            assert entries[-1].position <= min(self.commit, self.durable), "loaded what is not committed"
            assert self._log.epoch_at(entries[-1].position) == entries[-1].epoch, "the node's log and the core disagree"
            duties.apply = tuple(entries)
            self._handed = entries[-1].position
        return self._done(duties)

    # What peers say

    def step(self, message: Message, now: float) -> Effects:
        """Takes one message from another voter."""
        duties = Duties()
        if not self._is_voter(message.sender) or message.to != self.replica:
            return self._done(duties)
        match message:
            case Append():
                self._step_append(message, now, duties)
            case AppendReply():
                self._step_append_reply(message, now, duties)
            case VoteRequest(pre=True):
                self._step_question(message, now, duties)
            case VoteRequest():
                self._step_vote_request(message, now, duties)
            case VoteReply():
                self._step_vote_reply(message, now, duties)
            case HandOver():
                if self.follows(message.epoch) and self.leader == message.sender and not self._missing.state:
                    self._campaign(now, duties, ordered=True)
        return self._done(duties)

    def commit_heard(self, position: int, epoch: int) -> Effects:
        """A beat of the leader of `epoch` said how far the log is committed."""
        duties = Duties()
        if self.follows(epoch):
            self._hear_commit(position)
        return self._done(duties)

    def _step_append(self, message: Append, now: float, duties: Duties) -> None:
        if message.epoch < self.epoch:
            duties.send_after_flush.append(AppendReply(self.replica, message.sender, self.epoch, False, 0))
            return
        if message.epoch > self.epoch:
            self._raise_epoch(message.epoch, now, duties)
        assert self._leading is None, "two leaders in one epoch"
        assert self.leader in (0, message.sender), "two leaders in one epoch"
        if self.leader != message.sender or self._ballot is not None:
            self._be_follower(message.sender, now, duties)
        accepted, match, hint = self._take(message, duties)
        if accepted and message.lowest:
            # What is committed here the leader has as well.
            match = max(match, self.commit)
        duties.install = self._missing.after(message, accepted)
        duties.send_after_flush.append(AppendReply(self.replica, message.sender, self.epoch, accepted, match, hint))

    def _take(self, message: Append, duties: Duties) -> tuple[bool, int, int]:
        """Puts a leader's entries in the log; (accepted, match, hint_epoch) of the answer."""
        previous = message.previous_position
        if previous > self.commit and self._log.epoch_at(previous) != message.previous_epoch:
            match = max(self.commit, self._log.last_not_above(previous - 1, message.previous_epoch))
            return False, match, self._log.epoch_at(match) or 0
        for index, entry in enumerate(message.entries):
            if entry.position > self.commit and self._log.epoch_at(entry.position) != entry.epoch:
                self._replace(message.entries[index:], duties)
                break
        last = previous + len(message.entries)
        self._matched = max(self._matched, last)
        self._hear_commit(message.commit)
        return True, last, 0

    def _replace(self, entries: Sequence[Entry], duties: Duties) -> None:
        first = entries[0].position
        if first <= self._log.last_position:
            assert first > self.commit, "a committed entry would be replaced"
            self._log.cut(first)
            self.durable = min(self.durable, first - 1)
        self._log.append(entries)
        duties.append.extend(entries)

    def _step_append_reply(self, message: AppendReply, now: float, duties: Duties) -> None:
        if message.epoch > self.epoch:
            self._raise_epoch(message.epoch, now, duties)
        leading = self._leading
        if leading is None or message.epoch < self.epoch:
            return
        if leading.heard(message):
            self._advance_commit()
            self._trim_memory()
            self._order_if_complete(leading, duties)
        self._wake(duties, (message.sender,))

    # Elections

    def _step_question(self, request: VoteRequest, now: float, duties: Duties) -> None:
        granted = (
            request.epoch > self.epoch
            and self._leading is None
            and not self._hears_leader(now)
            and self._up_to_date(request)
        )
        epoch = request.epoch if granted else self.epoch
        duties.send_at_once.append(VoteReply(self.replica, request.sender, epoch, granted, pre=True))

    def _step_vote_request(self, request: VoteRequest, now: float, duties: Duties) -> None:
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

    def _ask_around(self, now: float, duties: Duties) -> None:
        """Asks who would vote for this replica. It stays a follower, and what it promised as one still holds."""
        if not self._is_voter(self.replica):
            self._stand_at = None
            return
        if self._missing.state:
            self._stand_at = now + self._election_timeout()
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
            membership=self.membership,
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
            self._order_if_complete(leading, duties)
        if leading.handing_to and now >= leading.hand_over_until:
            self._be_follower(0, now, duties)

    def _order_if_complete(self, leading: Leadership, duties: Duties) -> None:
        to = leading.handing_to
        if not to or leading.order_sent or not leading.waited:
            return
        if leading.match_of(to) == self._log.last_position:
            leading.order_sent = True
            duties.send_at_once.append(HandOver(self.replica, to, self.epoch))

    # State

    def _raise_epoch(self, epoch: int, now: float, duties: Duties) -> None:
        self._set_state("follower", epoch, 0, now, duties)
        self._ballot, self._leading, self.vote = None, None, 0
        duties.save = HardState(epoch, 0)
        self._stand_at = now + self._election_timeout()

    def _be_follower(self, leader: int, now: float, duties: Duties) -> None:
        """Follows `leader` in this epoch; 0: nobody yet, and stands if it stays so."""
        self._set_state("follower", self.epoch, leader, now, duties)
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
        self._wake(duties, self._leading.peers)

    def _wake(self, duties: Duties, peers: Sequence[int]) -> None:
        duties.wake_peers.extend(peer for peer in peers if self.has_for(peer))

    def _advance_commit(self) -> None:
        if self._leading is not None:
            position = self._leading.replicated(self.durable)
            if position > self.commit and self._log.epoch_at(position) == self.epoch:
                self._commit_to(position)

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
        if upto > self._handed and not self._loading and not self._missing.state:
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
        return self._random.uniform(self.timing.election_min, self.timing.election_max)
