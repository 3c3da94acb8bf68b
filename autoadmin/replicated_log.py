"""A member's own copy of the log, and the only place that makes anything durable.

What is handed over between two flushes goes to the disk together, in one synced transaction. The log stays small: the
catalog is written now and then as of a later position, and the log before it is trimmed, but for what a follower that
is a little behind may ask for.

A call that waits for a flush while one is under way is answered by the next.

Invariants:
- `record` and `entries` are what will be durable once everything handed over is flushed;
- a write that fails leaves nothing of it on the disk, and the member starts over from what is there (`failed`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import msgspec

from autoadmin.catalog import Change
from autoadmin.records import MemberRecord, Stored, Write
from autoadmin.state import StateError, StateStore
from cluster.executor import Executor
from replication.effects import Covered, HardState
from replication.log import LogSummary
from replication.membership import Membership
from replication.messages import MEMBERSHIP, Entry

SAVE_ENTRIES = 64
"""After so many applied entries the catalog is written, and the log trimmed."""
KEPT_ENTRIES = 256
KEPT_BYTES = 4 << 20
"""How much of the log stays for followers that are a little behind."""


class ReplicatedLog:
    """Begins with what the disk holds. Calls that hand something over never block; `run` writes it."""

    def __init__(self, store: StateStore, executor: Executor) -> None:
        self._store = store
        self._executor = executor
        self.record = MemberRecord("", 0)
        self.entries: list[Entry] = []
        self._pending: list[Entry] = []
        self._unsaved: list[tuple[int, Change]] = []
        self._applied = 0
        self._covered: Change | None = None
        self._restarts = False
        self._dirty = False
        self.writing = False
        self.flushes = 0
        self._callbacks: list[Callable[[bool], None]] = []
        self._wanted = asyncio.Event()

    # --- what the disk holds ---

    async def load(self) -> Stored:
        """Begin (again) with what is durable. What was handed over and not written is forgotten."""
        stored = await self._executor.run(self._store.load)
        if stored.member is not None:
            self.record = stored.member
        self.entries = list(stored.entries)
        self._pending.clear()
        self._covered, self._restarts, self._dirty = None, False, False
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(False)
        self._unsaved = [(at, change) for at, change in self._unsaved if at > self.record.applied]
        self._applied = max(self._applied, self.record.applied)
        return stored

    @property
    def last_position(self) -> int:
        """Where the log ends."""
        return self.entries[-1].position if self.entries else self.record.base_position

    @property
    def first_position(self) -> int:
        """The first position that is still there."""
        return self.record.base_position + 1

    def summary(self) -> LogSummary:
        """The log as the core wants it."""
        base, epoch = self.record.base_position, self.record.base_epoch
        spans = [(epoch, base)] if base else []
        for entry in self.entries:
            if not spans or spans[-1][0] != entry.epoch:
                spans.append((entry.epoch, entry.position))
        memberships = [(e.position, Membership.decode(e.payload)) for e in self.entries if e.kind == MEMBERSHIP]
        return LogSummary(self.last_position, tuple(spans), base + 1, tuple(self.entries), tuple(memberships))

    @property
    def hard_state(self) -> HardState:
        """Epoch and vote."""
        return HardState(self.record.epoch, self.record.vote)

    def membership(self, position: int | None = None) -> Membership | None:
        """Who votes as of `position`, or of the log's end; None while this member is of no group."""
        for entry in reversed(self.entries):
            if entry.kind == MEMBERSHIP and (position is None or entry.position <= position):
                return Membership.decode(entry.payload)
        return Membership.decode(self.record.membership) if self.record.membership else None

    def epoch_at(self, position: int) -> int:
        """The epoch of the entry at `position`, which the log holds or follows."""
        if position == self.record.base_position:
            return self.record.base_epoch
        return self.entries[position - self.first_position].epoch

    def read(self, first: int, max_bytes: int) -> tuple[Entry, ...]:
        """Entries from `first` on, at least one; none where the log was trimmed."""
        if first < self.first_position:
            return ()
        found: list[Entry] = []
        for entry in self.entries[first - self.first_position :]:
            max_bytes -= len(entry.payload)
            if found and max_bytes < 0:
                break
            found.append(entry)
        return tuple(found)

    # --- what is handed over ---

    def identify(self, record: MemberRecord) -> None:
        """Who this member is, or the group that it now belongs to."""
        self.record = record
        self._applied = max(self._applied, record.applied)
        self._want()

    def save(self, state: HardState) -> None:
        """Epoch and vote."""
        self.record = msgspec.structs.replace(self.record, epoch=state.epoch, vote=state.vote)
        self._want()

    def append(self, entries: Sequence[Entry]) -> None:
        """Entries, which replace those at their positions and all after."""
        first = entries[0].position
        del self.entries[first - self.first_position :]
        self.entries.extend(entries)
        self._pending = [entry for entry in self._pending if entry.position < first]
        self._pending.extend(entries)
        self._want()

    def cover(self, covered: Covered, catalog: Change) -> None:
        """The whole catalog as of a position of the leader's log: it takes the place of what is here up to there."""
        position = covered.position
        if covered.restarts:
            self.entries.clear()
            self._pending.clear()
            self._restarts = True
        else:
            del self.entries[: position + 1 - self.first_position]
            self._pending = [entry for entry in self._pending if entry.position > position]
        self.record = msgspec.structs.replace(
            self.record,
            base_position=position,
            base_epoch=covered.epoch,
            applied=position,
            membership=covered.membership.encode(),
        )
        self._covered, self._applied = catalog, position
        self._want()

    def applied(self, position: int, change: Change | None) -> None:
        """The entry at `position` was applied, and was this change of the catalog, if any."""
        self._applied = position
        if change is not None:
            self._unsaved.append((position, change))

    def after_flush(self, callback: Callable[[bool], None]) -> None:
        """Call back once everything handed over so far is durable: at once when nothing waits. With False when it could
        not be written."""
        if not self.writing and not self._dirty:
            callback(True)
            return
        self._callbacks.append(callback)
        self._wanted.set()

    async def flushed(self) -> bool:
        """Return once everything handed over so far is durable; False when it could not be written."""
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.after_flush(lambda durable: None if done.done() else done.set_result(durable))
        return await done

    def _want(self) -> None:
        self._dirty = True
        self._wanted.set()

    # --- writing ---

    async def run(self, flushed: Callable[[int, int], None], failed: Callable[[Exception], Awaitable[None]]) -> None:
        """Write whenever something was handed over, until cancelled.

        `flushed` hears position and epoch of the log's last entry; `failed` has `load` called before it returns.
        """
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            callbacks, self._callbacks = self._callbacks, []
            try:
                if self._dirty:
                    await self._flush(flushed)
            except (OSError, StateError) as error:
                for callback in callbacks:
                    callback(False)
                await failed(error)
            else:
                for callback in callbacks:
                    callback(True)

    async def write(self) -> None:
        """Write what was handed over before `run`. Raises OSError."""
        await self._flush(lambda _position, _epoch: None)

    async def _flush(self, flushed: Callable[[int, int], None]) -> None:
        write, last = self._next_write(), self.last_position
        epoch = self.epoch_at(last)
        self._pending, self._covered = [], None
        self._restarts = self._dirty = False
        self.writing = True
        try:
            await self._executor.run(partial(self._store.write, write))
        finally:
            self.writing = False
        self.flushes += 1
        self._unsaved = [(at, change) for at, change in self._unsaved if at > write.member.applied]
        if last:
            flushed(last, epoch)

    def _next_write(self) -> Write:
        if self._covered is not None:
            return Write(self.record, tuple(self._pending), self._restarts, (self._covered,))
        if self._applied - self.record.applied < SAVE_ENTRIES:
            return Write(self.record, tuple(self._pending))
        self._trim()
        return Write(self.record, tuple(self._pending), changes=tuple(change for _, change in self._unsaved))

    def _trim(self) -> None:
        """Let the catalog be written as of what is applied, and the log begin later."""
        base = max(self.record.base_position, self._applied - KEPT_ENTRIES)
        room = KEPT_BYTES
        for entry in reversed(self.entries[: self._applied + 1 - self.first_position]):
            room -= len(entry.payload)
            if room < 0:
                base = max(base, entry.position)
                break
        membership = self.membership(base)
        epoch = self.epoch_at(base)
        del self.entries[: base + 1 - self.first_position]
        self.record = msgspec.structs.replace(
            self.record,
            base_position=base,
            base_epoch=epoch,
            applied=self._applied,
            membership=b"" if membership is None else membership.encode(),
        )
