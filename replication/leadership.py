"""A leader's own knowledge in one epoch: its peers' progress, its lease, and when it may serve.

Invariants:
- it serves once every older lease has surely ended (`waited`) and an entry of its own epoch is applied;
- once `handing_to` is set it neither reads nor writes, until the epoch ends; the order leaves only after `waited`, so
  that its target need not wait for leases older than this leader's;
- an entry counts as replicated where it is durable; of its own log, too, only what is flushed counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from replication.effects import Fetch
from replication.history import History
from replication.lease import NEVER, Contact
from replication.log import Log
from replication.membership import UNKNOWN, Membership
from replication.messages import Append, AppendReply, Entry
from replication.progress import Progress
from replication.quorum import reached_by_majority
from replication.timing import Timing

HELD_BY_LIVE_SECONDS = 5.0
"""Who has not answered a beat for so long is not waited for by a log replica that would trim its log."""


class Leadership:
    """Begins when a replica has won `epoch`, before it has appended anything in it."""

    def __init__(
        self,
        replica: int,
        epoch: int,
        log: Log,
        *,
        history: History,
        timing: Timing,
        contact: Contact,
        now: float,
        serve_from: float,
    ) -> None:
        self.replica = replica
        self.epoch = epoch
        self.first_of_epoch = log.last_position + 1
        self.began = now
        self.serve_from = serve_from
        self.waited = False
        self.handing_to = 0
        self.hand_over_until = NEVER
        self.order_sent = False
        self.retires = False
        """Whether it is no voter of the committed membership, so that another is to lead."""
        self._log = log
        self._history = history
        self._membership = membership = history.current
        self._timing = timing
        self._contact = contact
        self._lease_until = NEVER
        self._heard_at = NEVER
        self._held = 0
        self._serving_kind = not membership.is_log_only(replica)
        self._progress = {
            member.replica: Progress(next=self.first_of_epoch)
            for member in membership.members
            if member.replica != replica
        }

    @property
    def peers(self) -> tuple[int, ...]:
        """The other members."""
        return tuple(self._progress)

    def membership_changed(self, membership: Membership) -> None:
        """Other replicas are members from now on, and other voters confirm its lease: none of them has yet.

        Its patience counts from when the voters so far were heard.
        """
        last = max(map(self._confirmed_at, self._progress), default=NEVER)
        self._heard_at = max(self._heard_at, self._confirmed(last))
        self._membership = membership
        self._lease_until = NEVER
        self._progress = {
            member.replica: self._progress.get(member.replica) or Progress(next=self._log.last_position + 1)
            for member in membership.members
            if member.replica != self.replica
        }

    def nearest(self) -> int:
        """The other full voter that has most of the log."""
        others = [voter for voter in self._membership.full_voters if voter != self.replica]
        return max(others, key=lambda voter: (self._progress[voter].match, -voter))

    def complete(self) -> int:
        """A full voter that has all of the log; 0 if none has."""
        nearest = self.nearest()
        return nearest if self._progress[nearest].match == self._log.last_position else 0

    # When it may serve

    def serves(self, applied: int) -> bool:
        """Whether leases before this one are over and this epoch has begun to be applied."""
        return self.waited and applied >= self.first_of_epoch and not self.handing_to and self._serving_kind

    def lease_valid(self, now: float) -> bool:
        """Whether a majority's answers to beats cover `now`. Asks the contact only when the known lease has run out."""
        if now >= self._lease_until:
            self._look(now)
        return now < self._lease_until

    def unheard(self, now: float) -> bool:
        """Whether no majority has answered for an election timeout."""
        patience = self._timing.election_min
        if now - max(self.began, self._heard_at) <= patience:
            return False
        self._look(now)
        return now - self._heard_at > patience

    def _look(self, now: float) -> None:
        confirmed = self._confirmed(now)
        self._lease_until = confirmed + self._timing.lease
        self._heard_at = max(self._heard_at, confirmed)

    def _confirmed(self, now: float) -> float:
        return reached_by_majority(
            self._membership,
            lambda voter: now if voter == self.replica else self._confirmed_at(voter),
        )

    def _confirmed_at(self, peer: int) -> float:
        return self._contact.confirmed_at(peer, self.epoch)

    # What its peers have

    def replicated(self, durable: int) -> int:
        """The last position that a majority holds durably; the leader itself does up to `durable`."""
        return reached_by_majority(
            self._membership, lambda voter: durable if voter == self.replica else self._progress[voter].match
        )

    def match_of(self, peer: int) -> int:
        """Up to where the peer's log is known to be durable and equal."""
        return self._progress[peer].match

    def matched_by_all(self) -> int:
        """Up to where every voter's log is durable and equal."""
        return min((progress.match for progress in self._progress.values()), default=self._log.last_position)

    def has_for(self, peer: int) -> bool:
        """Whether `append_for` has something to send or to fetch."""
        progress = self._progress.get(peer)
        if progress is None or progress.waits():
            return False
        return progress.probing or progress.tell or progress.next <= self._log.last_position

    def append_for(self, peer: int, max_bytes: int, commit: int) -> Append | Fetch | None:
        """The next message for a peer, or what must be read for it.

        If it needs entries that were trimmed: the lowest Append there is, which tells it to get a snapshot unless it
        can take it after all.
        """
        if not self.has_for(peer):
            return None
        progress = self._progress[peer]
        if progress.next < self._log.first_position:
            progress.restart(self._log.first_position)
            progress.lowest = True
            return self._append(peer, progress, (), commit)
        if progress.next > self._log.last_position:
            return self._append(peer, progress, (), commit)
        if progress.next < self._log.memory_first:
            progress.fetching = progress.next
            return Fetch(peer, progress.next, max_bytes)
        return self._append(peer, progress, self._log.take(progress.next, max_bytes), commit)

    def fetched(self, peer: int, entries: Sequence[Entry], commit: int) -> Append | None:
        """The message with entries that were read for `peer`; None if the world has moved on meanwhile."""
        progress = self._progress.get(peer)
        if progress is None or progress.fetching is None:
            return None
        wanted, progress.fetching = progress.fetching, None
        if (
            not entries
            or entries[0].position != wanted
            or self._log.epoch_at(entries[-1].position) != entries[-1].epoch
        ):
            return None
        return self._append(peer, progress, tuple(entries), commit)

    def _append(self, peer: int, progress: Progress, entries: tuple[Entry, ...], commit: int) -> Append:
        previous = progress.next - 1
        epoch = self._log.epoch_at(previous)
        assert epoch is not None, "the epoch before the first position of a log is known"
        progress.sent(previous + len(entries))
        membership = self._history.at(previous) if progress.lowest else UNKNOWN
        return Append(
            self.replica, peer, self.epoch, previous, epoch, entries, commit, progress.lowest, membership, self._held
        )

    def heard(self, reply: AppendReply) -> bool:
        """Takes a peer's answer in this epoch; whether its durable, equal part grew."""
        progress = self._progress.get(reply.sender)
        if progress is None:
            return False
        if reply.accepted:
            assert reply.match <= self._log.last_position, "a peer acknowledged what was never sent"
            return progress.accepted(reply.match)
        progress.refused(self._log.last_not_above(reply.match, reply.hint_epoch))
        return False

    def probe(self, peer: int) -> None:
        """Nothing more is known of the peer than `match`."""
        progress = self._progress.get(peer)
        if progress is not None:
            self._begin_anew(progress)

    def not_followed(self, peer: int) -> bool:
        """The peer does not follow this epoch; whether an Append should tell it so now."""
        progress = self._progress.get(peer)
        if progress is None or progress.asked or progress.fetching is not None:
            return False
        self._begin_anew(progress)
        return True

    def _begin_anew(self, progress: Progress) -> None:
        """Probes from where the logs are known to match; from the end if that was trimmed: the peer may have more."""
        known = progress.match + 1
        progress.restart(known if known >= self._log.first_position else self._log.last_position + 1)

    def tell_held(self, durable: int, now: float) -> tuple[int, ...]:
        """Looks how far every full member has the log, of those that answered lately; the log replicas to be told."""
        matches = [
            progress.match
            for peer, progress in self._progress.items()
            if not self._membership.is_log_only(peer) and now - self._confirmed_at(peer) < HELD_BY_LIVE_SECONDS
        ]
        held = min(matches, default=durable)
        if held <= self._held:
            return ()
        self._held = min(held, durable)
        told = tuple(peer for peer in self._progress if self._membership.is_log_only(peer))
        for peer in told:
            self._progress[peer].tell = True
        return told

    @property
    def installing(self) -> tuple[int, ...]:
        """The peers that need a snapshot, as far as is known."""
        return tuple(peer for peer, progress in self._progress.items() if progress.installing)

    def ask_again(self) -> tuple[int, ...]:
        """Asks the peers that needed a snapshot whether they have one by now; who they are."""
        peers = self.installing
        for peer in peers:
            self._progress[peer].restart(self._progress[peer].match + 1)
        return peers
