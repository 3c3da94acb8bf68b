"""The smallest shell around a `Replica`: a disk that knows what is flushed, and lists of what waits to be done."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random

from replication.effects import Covered, Effects, Fetch, HardState, Install
from replication.lease import NEVER, Contact
from replication.log import LogSummary
from replication.membership import Membership
from replication.messages import MEMBERSHIP, Append, Entry, Message
from replication.replica import Replica
from replication.timing import Timing


@dataclass
class Installed:
    """The record of an installed snapshot, with the entries that it stands for."""

    covered: Covered
    entries: list[Entry]


Record = HardState | Entry | Installed


@dataclass
class Disk:
    """What is flushed. `applied` stands for the state, which a crash of the process leaves alone.

    `entries` are all since position 1, so that they can be compared; those before `first` nobody may read any more.
    `snapshot`: the position of the durable one, 0 for none.
    """

    hard_state: HardState = field(default_factory=lambda: HardState(0, 0))
    entries: list[Entry] = field(default_factory=list)
    applied: int = 0
    first: int = 1
    snapshot: int = 0
    stands_on: tuple[tuple[int, Membership], ...] = ()
    """Position and membership of the snapshot with which the log began anew, if it did."""

    def write(self, record: Record) -> None:
        """One record of the log, in order."""
        if isinstance(record, HardState):
            self.hard_state = record
        elif isinstance(record, Installed):
            self.snapshot = record.covered.position
            if record.covered.restarts:
                self.entries, self.first = list(record.entries), self.snapshot + 1
                self.stands_on = ((self.snapshot, record.covered.membership),)
        else:
            put(self.entries, record)

    def restore(self) -> None:
        """At a start: the state comes from the snapshot where the log does not begin early enough."""
        if self.applied < self.first - 1:
            self.applied = self.snapshot

    def summary(self) -> LogSummary:
        """What recovery tells the core; the entries stay on disk."""
        spans: list[tuple[int, int]] = []
        for entry in self.entries[max(self.first - 2, 0) :]:
            if not spans or spans[-1][0] != entry.epoch:
                spans.append((entry.epoch, entry.position))
        begin = self.stands_on[0][0] if self.stands_on else 0
        memberships = [
            (entry.position, Membership.decode(entry.payload))
            for entry in self.entries[begin:]
            if entry.kind == MEMBERSHIP
        ]
        return LogSummary(len(self.entries), tuple(spans), self.first, memberships=(*self.stands_on, *memberships))


def put(entries: list[Entry], entry: Entry) -> None:
    """Writes an entry at its position, in place of what was there and after."""
    assert entry.position <= len(entries) + 1, "a gap on disk"
    del entries[entry.position - 1 :]
    entries.append(entry)


class Member:
    """One replica, its disk, and its queues: `outbox`, `unflushed`, `to_apply`, `woken`.

    `committed`: the entries up to a position, for a log replica whose log begins after it.
    """

    def __init__(
        self,
        replica: int,
        membership: Membership,
        timing: Timing,
        *,
        disk: Disk | None = None,
        seed: int = 0,
        now: float = 0.0,
        restarted_at: float = NEVER,
        contact: Contact | None = None,
        memory_bytes: int = 1 << 20,
        log_only: bool = False,
        committed: Callable[[int], list[Entry]] | None = None,
    ) -> None:
        self._committed = committed
        self.disk = disk or Disk()
        self.log = list(self.disk.entries)
        self.outbox: list[Message] = []
        self.unflushed: list[Record | Message] = []
        self.to_apply: list[Entry] = []
        self.woken: list[int] = []
        self.loading: tuple[int, int] | None = None
        self.install: Install | None = None
        self.role_changes = 0
        self.replica = Replica(
            replica=replica,
            membership=membership,
            timing=timing,
            random=Random(seed),
            hard_state=self.disk.hard_state,
            log=self.disk.summary(),
            applied=self.disk.applied,
            now=now,
            restarted_at=restarted_at,
            contact=contact,
            memory_bytes=memory_bytes,
            log_only=log_only,
        )

    def perform(self, effects: Effects, installed: list[Entry] | None = None) -> None:
        """Queues what the core asks for. `installed`: the entries that a snapshot just installed stands for."""
        if effects.save is not None:
            self.unflushed.append(effects.save)
        if effects.covered is not None:
            if installed is None:
                assert self._committed is not None, "a log began anew without a snapshot"
                installed = self._committed(effects.covered.position)
            self.unflushed.append(Installed(effects.covered, installed))
            if effects.covered.restarts:
                self.log = list(installed)
        if effects.install is not None:
            self.install = effects.install
        for entry in effects.append:
            put(self.log, entry)
        self.unflushed.extend(effects.append)
        self.outbox.extend(effects.send_at_once)
        self.woken.extend(peer for peer in effects.wake_peers if peer not in self.woken)
        self.unflushed.extend(effects.send_after_flush)
        self.to_apply.extend(effects.apply)
        if effects.load is not None:
            assert self.loading is None, "asked to load while loading"
            self.loading = effects.load
        self.role_changes += effects.role_changed

    def flush(self) -> None:
        """Everything handed over so far is durable; what waited for that may leave."""
        records, self.unflushed = self.unflushed, []
        last: Entry | None = None
        for record in records:
            if isinstance(record, Record):
                self.disk.write(record)
                last = record if isinstance(record, Entry) else last
        self.outbox.extend(record for record in records if not isinstance(record, Record))
        if last is not None:
            self.perform(self.replica.flushed(last.position, last.epoch))

    def load(self, count: int) -> None:
        """Reads what the core wants to apply from the log."""
        if self.loading is not None:
            (first, last), self.loading = self.loading, None
            assert first >= self.disk.first, "loads what was trimmed"
            self.perform(self.replica.loaded(self.log[first - 1 : min(last, first + count - 1)]))

    def apply(self) -> list[Entry]:
        """Applies what was handed out, and tells the core."""
        entries, self.to_apply = self.to_apply, []
        if entries:
            assert entries[0].position == self.disk.applied + 1, "applied out of order"
            self.disk.applied = entries[-1].position
            self.perform(self.replica.applied_to(self.disk.applied))
        return entries

    def append_for(self, peer: int, max_bytes: int = 1 << 20) -> Append | None:
        """The next message for a peer whose lane is free, read from the log if need be."""
        made = self.replica.append_for(peer, max_bytes)
        if not isinstance(made, Fetch):
            return made
        assert made.first_position >= self.disk.first, "fetches what was trimmed"
        end = made.first_position + max(1, made.max_bytes // 64)
        return self.replica.fetched(made.peer, tuple(self.log[made.first_position - 1 : end - 1]))

    def trim(self, first: int) -> None:
        """A snapshot of what is applied is made, and the log before `first` goes."""
        if not self.replica.log_only:
            self.disk.snapshot = self.disk.applied
        self.disk.first = first
        self.replica.trimmed(first)

    def begin_install(self, entries: list[Entry], membership: Membership) -> None:
        """A snapshot of a log that begins with these entries, and of that membership, is durable here."""
        assert self.install is not None
        self.install = None
        self.to_apply.clear()
        self.perform(self.replica.install(entries[-1].position, entries[-1].epoch, membership), entries)

    def finish_install(self) -> None:
        """Its record is flushed: its state takes the place of the old one."""
        self.disk.applied = self.disk.snapshot
        self.perform(self.replica.installed())

    def settle(self) -> None:
        """Flushes, loads and applies until nothing waits."""
        while self.unflushed or self.to_apply or self.loading:
            self.flush()
            self.load(1000)
            self.apply()

    def sent(self) -> Iterable[Message]:
        """Takes what is in the outbox."""
        messages, self.outbox = self.outbox, []
        return messages
