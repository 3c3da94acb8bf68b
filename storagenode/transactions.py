"""What a partition's leader decides on its part of transactions: done at once, marked, committed, cancelled, read. And
on batches, which share their entries but promise nothing together.

An action sees the items as they are after all writes in flight, and no mark but its own transaction's may be on them.
Either all actions of a request go ahead, in one entry, or none does and the answer says of each what it met.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec

from cluster.wire import storage_pb2
from dynamo.errors import ApiError, transaction_conflict, unavailable
from dynamo.table import Table
from storagenode.decisions import Answer, Decision, Propose, failure
from storagenode.storage.store import Store
from storagenode.transaction_commands import (
    NO_PAYLOAD,
    NO_TRANSACTION,
    MarkedItem,
    OnCommit,
    PrepareCommand,
    TransactCommand,
    WrittenItem,
    encode_finish,
    encode_prepare,
    encode_transact,
)
from storagenode.transaction_marks import Changes, Mark, Marks
from storagenode.transaction_tokens import TokenRow, Tokens
from storagenode.writes import (
    Changed,
    Old,
    Outcome,
    Refused,
    Unchanged,
    decide_check,
    decide_delete,
    decide_put,
    decide_update,
)

KINDS: Final = frozenset({"transact", "prepare", "finish", "batch"})
"""The requests that are decided here, as `Request` names them."""

PREPARE_MS_MAX: Final = 60_000
"""How old a prepare may be, by this node's clock. One that got lost on the way for longer would mark items of a
transaction that was long finished: operation ids are remembered for 90 s. No coordinator works for over 30 s."""


class Weighed(msgspec.Struct, frozen=True):
    """What a change does: the answer to it, and by how many bytes the item collection grows (0 where there is none)."""

    reply: storage_pb2.WriteReply
    growth: int


class Ground(Protocol):
    """The partition that transactions are decided on."""

    schema: Table | None

    def current(self, key: bytes) -> tuple[Old, int]:
        """The item after all writes in flight, and the position that this rests on (0: it is applied)."""
        ...

    def weigh(self, key: bytes, old: Old, changed: Changed) -> Weighed | ApiError:
        """What a change would do; an error if there is no room for it."""
        ...

    def growth(self, key: bytes, old: Old, changed: Changed) -> int:
        """By how many bytes a change makes the item collection grow; 0 where there is none."""
        ...

    def put_in_flight(self, key: bytes, changed: Changed, growth: int, stamp: int, position: int) -> bytes:
        """The entry proposed at `position` changes the item. The bytes to be stored, a tombstone for a delete."""
        ...

    def next_stamp(self, wall_ms: int) -> int:
        """A stamp above all others of the partition."""
        ...


class _Decided(msgspec.Struct, frozen=True):
    """What an action comes to, and by how much it makes the item collection grow. It rests on what is applied up to
    `resting_on`."""

    key: bytes
    old: Old
    outcome: Outcome
    growth: int
    result: storage_pb2.ActionResult
    resting_on: int

    @property
    def size(self) -> int:
        """The larger of the item's sizes before and after."""
        return max(self.old.size, self.outcome.size if isinstance(self.outcome, Changed) else 0)


class Transactions:
    """Marks and tokens of one partition, and the decisions that rest on them."""

    def __init__(
        self, store: Store, ground: Ground, remember: Callable[[int, int, storage_pb2.TransactReply], None]
    ) -> None:
        """`remember(operation_id, position, reply)`: the request is being done by the entry at that position."""
        self.marks = Marks(store)
        self.tokens = Tokens(store)
        self._ground = ground
        self._remember = remember

    def conflict(self, key: bytes) -> Answer | None:
        """The answer to a write of an item that a transaction holds; None if none does."""
        mark, resting_on = self.marks.current(key)
        return None if mark is None else Answer(failure(transaction_conflict(), 0), resting_on)

    def decide(self, request: storage_pb2.Request, wall_ms: int, position: int) -> Decision:
        """What becomes of a request of `KINDS`. As `Partition.decide`."""
        if request.HasField("finish"):
            return self._finish(request.finish, wall_ms, position)
        if request.HasField("prepare"):
            return self._prepare(request, wall_ms, position)
        if request.HasField("batch"):
            return self._batch(request, wall_ms, position)
        return self._transact(request, wall_ms, position)

    def applied_to(self, changes: Changes, position: int) -> None:
        """Everything up to `position` is applied, and changed marks like this."""
        if changes or self.marks:
            self.marks.take(changes, position)
        self.tokens.applied_to(position)

    def abandon(self) -> None:
        """Leadership is lost: nothing is in flight any more."""
        self.marks.abandon()
        self.tokens.abandon()

    def _transact(self, request: storage_pb2.Request, wall_ms: int, position: int) -> Decision:
        transact = request.transact
        stamp = self._ground.next_stamp(wall_ms)
        if (earlier := self._earlier(transact.transaction, transact.payload, stamp)) is not None:
            return earlier
        decided = [self._decide(action) for action in transact.actions]
        reply = _reply(decided)
        if _any_failed(decided):
            return Answer(reply, _resting_on(decided))
        writes = []
        for each in decided:
            if isinstance(each.outcome, Changed):
                stored = self._ground.put_in_flight(each.key, each.outcome, each.growth, stamp, position)
                writes.append(WrittenItem(each.key, stored, each.old.size))
        sizes = tuple(reply.sizes)
        self.tokens.add(transact.transaction, TokenRow(transact.payload, stamp, sizes), position)
        command = TransactCommand(
            request.operation_id,
            stamp,
            transact.transaction or NO_TRANSACTION,
            transact.payload,
            sizes,
            tuple(writes),
            reply.SerializeToString(),
        )
        self._remember(request.operation_id, position, reply)
        return Propose(encode_transact(command), reply)

    def _batch(self, request: storage_pb2.Request, wall_ms: int, position: int) -> Decision:
        """Writes that do not depend on each other: what can be done is done, in one entry."""
        stamp = self._ground.next_stamp(wall_ms)
        decided, writes = [], []
        for action in request.batch.actions:
            each = self._decide(action)
            decided.append(each)
            if isinstance(each.outcome, Changed):
                stored = self._ground.put_in_flight(each.key, each.outcome, each.growth, stamp, position)
                writes.append(WrittenItem(each.key, stored, each.old.size))
        reply = storage_pb2.TransactReply(results=[each.result for each in decided])
        if not writes:
            return Answer(reply, _resting_on(decided))
        command = TransactCommand(
            request.operation_id, stamp, NO_TRANSACTION, NO_PAYLOAD, (), tuple(writes), reply.SerializeToString()
        )
        self._remember(request.operation_id, position, reply)
        return Propose(encode_transact(command), reply)

    def _prepare(self, request: storage_pb2.Request, wall_ms: int, position: int) -> Decision:
        prepare = request.prepare
        stamp = self._ground.next_stamp(wall_ms)
        if abs(wall_ms - prepare.started_ms) > PREPARE_MS_MAX:
            late = failure(unavailable("The transaction took too long, or the clocks of the cluster differ"), 0)
            results = [storage_pb2.ActionResult(failure=late)] * len(prepare.actions)
            return Answer(storage_pb2.TransactReply(results=results), 0)
        if (earlier := self._earlier(prepare.transaction, prepare.payload, stamp)) is not None:
            return earlier
        decided = [self._decide(action) for action in prepare.actions]
        reply = _reply(decided)
        if _any_failed(decided):
            if (other := self._other_attempt(prepare.transaction, decided)) is not None:
                return other
            return Answer(reply, _resting_on(decided))
        items = tuple([_marked(each) for each in decided])
        for key, on_commit, old_size, size, body in items:
            mark = Mark(prepare.transaction, prepare.attempt, stamp, on_commit, old_size, size, body)
            self.marks.change(key, mark, position)
        command = PrepareCommand(
            request.operation_id, stamp, prepare.transaction, prepare.attempt, items, reply.SerializeToString()
        )
        self._remember(request.operation_id, position, reply)
        return Propose(encode_prepare(command), reply)

    def _finish(self, finish: storage_pb2.Finish, wall_ms: int, position: int) -> Decision:
        held: list[tuple[bytes, Mark]] = []
        resting_on = 0
        for key in finish.keys:
            mark, since = self.marks.current(key)
            if mark is not None and mark.attempt == finish.attempt:
                held.append((key, mark))
            else:
                resting_on = max(resting_on, since)
        reply = storage_pb2.TransactReply()
        if not held:
            return Answer(reply, resting_on)
        stamp = self._ground.next_stamp(wall_ms)
        for key, mark in held:
            self.marks.change(key, None, position)
            if finish.commit and mark.on_commit is not OnCommit.NOTHING:
                self._commit(key, mark, stamp, position)
        return Propose(encode_finish(finish.commit, stamp, finish.attempt, [key for key, _ in held]), reply)

    def _commit(self, key: bytes, mark: Mark, stamp: int, position: int) -> None:
        old, _ = self._ground.current(key)
        changed = Changed(None if mark.on_commit is OnCommit.DELETE else mark.body, mark.size, b"")
        self._ground.put_in_flight(key, changed, self._ground.growth(key, old, changed), stamp, position)

    def _earlier(self, transaction: bytes, payload: bytes, now: int) -> Answer | None:
        """The answer to a transaction that this partition has done alone before."""
        if (found := self.tokens.find(transaction, now)) is None:
            return None
        row, resting_on = found
        reply = storage_pb2.TransactReply
        if row.payload == payload:
            return Answer(reply(earlier=reply.SAME, sizes=row.sizes), resting_on)
        return Answer(reply(earlier=reply.OTHER), resting_on)

    def _other_attempt(self, transaction: bytes, decided: Sequence[_Decided]) -> Answer | None:
        """The answer to an attempt at a transaction that somebody else is about to do."""
        for each in decided:
            mark, since = self.marks.current(each.key)
            if mark is not None and mark.transaction == transaction:
                return Answer(storage_pb2.TransactReply(earlier=storage_pb2.TransactReply.IN_PROGRESS), since)
        return None

    def _decide(self, action: storage_pb2.Action) -> _Decided:
        kind = action.WhichOneof("action")
        key: bytes = getattr(action, kind).key
        old, resting_on = self._ground.current(key)
        mark, since = self.marks.current(key)
        if mark is not None:
            return _refused(key, old, transaction_conflict(), since)
        outcome = self._outcome(action, kind, old)
        if isinstance(outcome, Refused):
            return _refused(key, old, outcome.error, resting_on)
        if isinstance(outcome, Unchanged):
            reply = storage_pb2.WriteReply(old_size=old.size, new_size=old.size)
            return _Decided(key, old, outcome, 0, storage_pb2.ActionResult(write=reply), resting_on)
        weighed = self._ground.weigh(key, old, outcome)
        if isinstance(weighed, ApiError):
            return _refused(key, old, weighed, resting_on)
        result = storage_pb2.ActionResult(write=weighed.reply)
        return _Decided(key, old, outcome, weighed.growth, result, resting_on)

    def _outcome(self, action: storage_pb2.Action, kind: str, old: Old) -> Outcome:
        match kind:
            case "put":
                return decide_put(action.put, old)
            case "update":
                return decide_update(action.update, old, self._ground.schema, flat=True)
            case "delete":
                return decide_delete(action.delete, old)
            case _:
                return decide_check(action.check, old)


def _refused(key: bytes, old: Old, error: ApiError, resting_on: int) -> _Decided:
    result = storage_pb2.ActionResult(failure=failure(error, old.size))
    return _Decided(key, old, Refused(error), 0, result, resting_on)


def _reply(decided: Sequence[_Decided]) -> storage_pb2.TransactReply:
    return storage_pb2.TransactReply(results=[each.result for each in decided], sizes=[each.size for each in decided])


def _any_failed(decided: Sequence[_Decided]) -> bool:
    return any(isinstance(each.outcome, Refused) for each in decided)


def _resting_on(decided: Sequence[_Decided]) -> int:
    return max(each.resting_on for each in decided)


def _marked(decided: _Decided) -> MarkedItem:
    """What a commit makes of the item."""
    outcome, old_size = decided.outcome, decided.old.size
    if not isinstance(outcome, Changed):
        return MarkedItem(decided.key, OnCommit.NOTHING, old_size, old_size, b"")
    if outcome.body is None:
        return MarkedItem(decided.key, OnCommit.DELETE, old_size, 0, b"")
    return MarkedItem(decided.key, OnCommit.PUT, old_size, outcome.size, outcome.body)
