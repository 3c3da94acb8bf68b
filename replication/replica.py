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

from replication.changes import Change, Promote, changed
from replication.duties import Duties
from replication.effects import NOTHING, Covered, Effects, Fetch
from replication.elections import Elections
from replication.membership import Membership
from replication.messages import (
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
from replication.state import MEMORY_BYTES, Role

__all__ = ["MEMORY_BYTES", "Replica", "Role"]


class Replica(Elections):
    """`membership`: the one that the log stands on, `UNKNOWN` for a replica that is added to a partition.

    `restarted_at`: the start of this process, if the replica existed before it; `NEVER` for a new replica. `log_only`:
    it keeps the log and votes, and has no state. It may be elected, to bring another up to date; it never serves.
    """

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

    def deadline(self) -> float | None:
        """When `tick` is next wanted; None while a leader is known and nothing is under way."""
        if self._leading is None:
            return self._stand_at
        wanted = [] if self._leading.waited else [self._leading.serve_from]
        if self._leading.handing_to:
            wanted.append(self._leading.hand_over_until)
        elif self._leading.retires:
            wanted.append(self._leading.began)
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
            if self.log_only and self._stand_at is None:
                self._stand_at = now + self.timing.election_max
            else:
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

    def tell_held(self, now: float) -> Effects:
        """On a leader, now and then: tells log replicas how much of their log nobody needs any more."""
        duties = Duties()
        if self._leading is not None:
            self._wake(duties, self._leading.tell_held(self.durable, now))
        return self._done(duties)

    def hand_over(self, to: int, now: float) -> Effects:
        """Reads and writes no more in this epoch, and orders `to` to stand as soon as its log is complete.

        Steps down if that has not led to a new leader after an election timeout.
        """
        assert self._leading is not None, "only a leader hands over"
        assert to != self.replica, "hands over to another replica"
        assert to in self.heirs, "hands over to a full voter"
        duties = Duties()
        if not self._leading.handing_to:
            self._hand_over(self._leading, to, now, duties)
        return self._done(duties)

    # Changes of membership

    @property
    def membership_committed(self) -> bool:
        """Whether the membership in force, as far as is known here, stays in force."""
        return self._history.position <= self.commit

    @property
    def committed_membership(self) -> Membership:
        """The last one that is known to be committed."""
        return self._history.at(self.commit)

    def epoch_at(self, position: int) -> int | None:
        """The epoch of an entry of the log, or of what it stands on; None of others."""
        return self._log.epoch_at(position)

    def membership_at(self, position: int) -> Membership:
        """The membership in force after this position of the log, which is not before its beginning."""
        return self._history.at(position)

    @property
    def heirs(self) -> tuple[int, ...]:
        """The full voters, of both sets: who may be ordered to lead."""
        return tuple(voter for voter in self.membership.replicas() if not self.membership.is_log_only(voter))

    def may_change(self) -> bool:
        """Whether `change` may be called: while it serves, and every earlier change is done."""
        return self.may_write() and self.membership_committed and not self.membership.joint

    def change(self, change: Change, now: float) -> Effects:  # noqa: ARG002
        """Takes one step. Only while `may_change`. Raises ValueError, having done nothing, if it cannot be taken.

        A joint membership is left by itself, once it is committed.
        """
        assert self.may_change(), "only a serving leader changes the membership, once at a time"
        assert self._leading is not None
        membership = changed(self.membership, change)
        if isinstance(change, Promote):
            for voter in change.voters:
                # Its node was heard through it: nothing that another replica there said can be taken for its word.
                if voter not in self._voters and not self._leading.match_of(voter):
                    raise ValueError(f"replica {voter} was not heard of yet")
        duties = Duties()
        self._append_membership(membership, duties)
        return self._done(duties)

    # What the shell has done

    def flushed(self, position: int, epoch: int) -> Effects:
        """The own log is durable up to the entry at `position`, appended in `epoch` (the entry's own).

        Position and epoch name one log, so a flush of entries that were replaced meanwhile is told apart and ignored.
        """
        duties = Duties()
        if position > self.durable and self._log.epoch_at(position) == epoch:
            self.durable = position
            self._advance_commit(duties)
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
        self._history.forget(first_position - 1)

    def install(self, position: int, epoch: int, membership: Membership) -> Effects:
        """A snapshot that covers `wanted_snapshot` is durable on this node; (position, epoch) is its last entry.

        `membership` was in force there. The shell puts its state in place once what these effects hold is durable, and
        then calls `installed`.
        """
        self._missing.begin(position)
        duties = Duties()
        restarts = self._log.epoch_at(position) != epoch
        if restarts:
            self._begin_log_anew(position, epoch, membership, duties)
        else:
            duties.covered = Covered(epoch, position, False, self._history.at(position))
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

    def want_state(self, covers: int) -> None:
        """The applied state is damaged, and nothing on this node mends it: a snapshot that covers this position is
        wanted, though all goes on meanwhile."""
        self._missing.renew(max(covers, self._log.first_position - 1))

    def want_no_state(self) -> None:
        """After `want_state`: nobody can give a snapshot now."""
        self._missing.give_up()

    def lose_state(self, now: float) -> Effects:
        """The applied state is not to be used any more: as after a restart without it, until `restored` or
        `installed`."""
        duties = Duties()
        if self._leading is not None or self._ballot is not None:
            self._be_follower(0 if self.role != "follower" else self.leader, now, duties)
        self._missing.state = True
        return self._done(duties)

    def restored(self, position: int) -> Effects:
        """After `lose_state`: the state was made anew, as of this position; the log goes on from there."""
        assert self._missing.state, "the state is there"
        assert self._log.first_position - 1 <= position <= self.durable, "the log does not go on from there"
        self._missing = Missing(False, None)
        self.applied = self._handed = position
        return self._done(Duties())

    def loaded(self, entries: Sequence[Entry]) -> Effects:
        """Entries that `Effects.load` asked for, from its first position on; none if the read must be repeated.

        What a snapshot has overtaken meanwhile, or belongs to a state that was replaced, is passed over.
        """
        duties = Duties()
        self._loading = False
        if entries and entries[0].position == self._handed + 1 and not self._missing.state:
            assert entries[-1].position <= min(self.commit, self.durable), "loaded what is not committed"
            assert self._log.epoch_at(entries[-1].position) == entries[-1].epoch, "the node's log and the core disagree"
            duties.apply = tuple(entries)
            self._handed = entries[-1].position
        return self._done(duties)

    # What peers say

    def step(self, message: Message, now: float) -> Effects:
        """Takes one message from another replica of the partition, which may know of a later membership."""
        duties = Duties()
        if message.to != self.replica:
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
                if self.follows(message.epoch) and self.leader == message.sender and self._may_stand():
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
            if message.lowest and self.log_only:
                # It needs no state: what it lacks is committed, and in the leader's snapshot.
                self._begin_log_anew(previous, message.previous_epoch, message.membership, duties)
                self._commit_to(previous)
                return True, previous, 0
            match = max(self.commit, self._log.last_not_above(previous - 1, message.previous_epoch))
            return False, match, self._log.epoch_at(match) or 0
        for index, entry in enumerate(message.entries):
            if entry.position > self.commit and self._log.epoch_at(entry.position) != entry.epoch:
                self._replace(message.entries[index:], duties)
                break
        last = previous + len(message.entries)
        self._matched = max(self._matched, last)
        self._hear_commit(message.commit)
        self.held = max(self.held, min(message.held, self.commit, self.durable))
        return True, last, 0

    def _replace(self, entries: Sequence[Entry], duties: Duties) -> None:
        first = entries[0].position
        if first <= self._log.last_position:
            assert first > self.commit, "a committed entry would be replaced"
            self._log.cut(first)
            self.durable = min(self.durable, first - 1)
        fell_back = self._history.cut(first)
        self._log.append(entries)
        duties.append.extend(entries)
        if self._history.append(entries) or fell_back:
            self._membership_changed(duties)

    def _begin_log_anew(self, position: int, epoch: int, membership: Membership, duties: Duties) -> None:
        """The log holds nothing but that a snapshot covers it up to `position`, where `membership` was in force."""
        self._log.restart(position, epoch)
        self._history.restart(position, membership)
        self.durable = position
        duties.covered = Covered(epoch, position, True, membership)
        self._matched = max(self._matched, position)
        self._membership_changed(duties)

    def _step_append_reply(self, message: AppendReply, now: float, duties: Duties) -> None:
        if message.epoch > self.epoch:
            self._raise_epoch(message.epoch, now, duties)
        leading = self._leading
        if leading is None or message.epoch < self.epoch:
            return
        if leading.heard(message):
            self._advance_commit(duties)
            self._trim_memory()
            self._let_lead(leading, now, duties)
        self._wake(duties, (message.sender,))
