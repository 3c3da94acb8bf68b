"""Carries one TransactWriteItems out: asks the parts, and does what `router.transactions` makes of their answers.

All items in one partition: one request, done once by its token. Else two phases: the ledger gets a row and every part
is marked at the same time; the row then moves to committed or cancelled, and only after that is durable are the parts
told. A coordinator that dies leaves marks and a row that others bring to an end (`cluster.settlement`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from cluster import ledger
from cluster.ledger import Row, State, ledger_call, row_in_the_way, row_of
from cluster.requests.call import Call, NodeOperation
from cluster.settlement import finish, settle
from cluster.wire import storage_pb2
from dynamo.errors import ApiError, transaction_in_progress, unavailable
from dynamo.table import Table
from router.context import RequestContext
from router.transactions import (
    Begun,
    Done,
    Member,
    Part,
    Pending,
    Replayed,
    Superseded,
    judge,
    judge_beginning,
    parts_of,
)

DECIDE_SECONDS_MAX = 30.0
"""After this time nothing is committed any more."""
FINISH_SECONDS_MAX = 30.0
"""How long the parts of a committed transaction are asked to apply it before the client hears that it is not known."""
FINISH_PAUSE_SECONDS = 0.1
FREE_SECONDS = 1.0
"""How long the client of a cancelled transaction waits for its items to be free."""
ATTEMPTS_MAX = 5
JOIN_SECONDS = 5.0
"""How long a call waits for another one with the same token."""
JOIN_STEP_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Identity:
    """`transaction`: by which it is done once, 16 bytes: a hash of account and client token. Without a token it is the
    request's own, and `token` is False. `payload`: a hash of what was asked for, 16 bytes."""

    transaction: bytes
    payload: bytes
    token: bool


class Coordinator:
    """One transaction. Times are those of this process alone."""

    def __init__(self, context: RequestContext, members: Sequence[Member], identity: Identity) -> None:
        self._context = context
        self._executor = context.executor
        self._members = members
        self._items = [member.place for member in members]
        self._identity = identity
        self._began = context.clock.boottime()

    async def run(self) -> Done | Replayed:
        """Do it. Raises ApiError: `TransactionCanceledException`, or one of retryable kinds."""
        parts = parts_of(self._members, self._context.catalog.topology)
        if len(parts) == 1:
            return await self._at_once(parts[0])
        for _ in range(ATTEMPTS_MAX):
            outcome = await self._attempt(parts)
            if outcome is not None:
                return outcome
        raise unavailable("The transaction was cancelled again and again while its partitions did not answer")

    async def _at_once(self, part: Part[Member]) -> Done | Replayed:
        operation = storage_pb2.Transact(
            actions=[member.action for member in part.members],
            transaction=self._identity.transaction if self._identity.token else b"",
            payload=self._identity.payload,
        )
        result = judge([part], [await self._executor.call(self._call(part, operation, self._context.operation_id()))])
        if isinstance(result, ApiError):
            raise result
        return result

    def _call(self, part: Part[Member], operation: NodeOperation, operation_id: int) -> Call:
        return Call(part.table, part.hash, operation, operation_id, request_id=self._context.request_id)

    # --- two phases ---

    async def _attempt(self, parts: Sequence[Part[Member]]) -> Done | Replayed | None:
        """One attempt; None when somebody else has cancelled it. Raises ApiError."""
        table = await self._ledger()
        attempt = self._context.random.bytes(16)
        begun, *prepared = await self._executor.call_all(
            [self._begin(table, attempt), *(self._prepare(part, attempt, n) for n, part in enumerate(parts, 1))]
        )
        begun, row = _what_is_in_the_way(begun)
        beginning = judge_beginning(begun, row, attempt, self._identity.payload)
        judged = judge(parts, prepared)
        if isinstance(beginning, Begun) and isinstance(judged, Done) and self._may_decide():
            if not await self._commit(table, attempt, judged.sizes):
                await self._take_marks_away(attempt)
                return None
            await self._finish(attempt)
            self._note_done(table, attempt)
            return judged
        never_begun = isinstance(beginning, Row | Pending | Superseded)
        if never_begun or await self._cancel(table, attempt, known=isinstance(beginning, Begun)):
            await self._take_marks_away(attempt)
        return await self._without_commit(table, beginning, judged)

    async def _without_commit(
        self, table: Table, beginning: object, judged: Done | Replayed | ApiError
    ) -> Replayed | None:
        """The answer after an attempt that was given up; None: try again."""
        match beginning:
            case Row():
                return await self._replay(table, beginning)
            case Pending(other):
                return await self._join(table, other)
            case Superseded():
                return None
        if isinstance(beginning, ApiError) and beginning.status < 500:
            raise beginning
        if isinstance(judged, Replayed):
            return judged
        if isinstance(judged, ApiError):
            raise judged
        raise beginning if isinstance(beginning, ApiError) else unavailable("The transaction took too long; try again")

    def _begin(self, table: Table, attempt: bytes) -> Call:
        identity = self._identity
        update = ledger.begin(identity.transaction, attempt, identity.payload, self._items, self._now_ms())
        return ledger_call(table, update, _operation_id(attempt, 0))

    def _prepare(self, part: Part[Member], attempt: bytes, number: int) -> Call:
        operation = storage_pb2.Prepare(
            actions=[member.action for member in part.members],
            transaction=self._identity.transaction,
            payload=self._identity.payload,
            attempt=attempt,
            started_ms=self._now_ms(),
        )
        return self._call(part, operation, _operation_id(attempt, number))

    def _may_decide(self) -> bool:
        return self._context.clock.boottime() - self._began < DECIDE_SECONDS_MAX

    async def _commit(self, table: Table, attempt: bytes, sizes: Sequence[int]) -> bool:
        """Whether the ledger says that it is committed. Raises ApiError when nobody knows: then no part may be told."""
        update = ledger.commit(self._identity.transaction, attempt, sizes, self._now_ms())
        row = row_in_the_way(await self._executor.call(ledger_call(table, update)))
        return row is None or (row.attempt == attempt and row.state is State.COMMITTED)

    async def _finish(self, attempt: bytes) -> None:
        """Have every part apply what was committed. Raises ApiError when that takes too long."""
        until = self._context.clock.boottime() + FINISH_SECONDS_MAX
        while True:
            try:
                await finish(self._executor, self._context.catalog.topology, attempt, self._items, commit=True)
            except ApiError:
                if self._context.clock.boottime() > until:
                    raise
                await asyncio.sleep(FINISH_PAUSE_SECONDS)
            else:
                return

    async def _cancel(self, table: Table, attempt: bytes, *, known: bool) -> bool:
        """Have the ledger say that the attempt, which is `known` to stand there or may, is cancelled. False if nobody
        knows whether it does: then no part may be told, and those who find the marks will see to them."""
        transaction, now_ms = self._identity.transaction, self._now_ms()
        try:
            if known:
                await self._executor.call(ledger_call(table, ledger.cancel(transaction, attempt, now_ms)))
            else:
                await settle(self._executor, self._context.catalog.topology, transaction, attempt, now_ms)
        except ApiError:
            return False
        return True

    async def _take_marks_away(self, attempt: bytes) -> None:
        """Free the items, so that the client's next try does not meet them held. A part that does not answer soon is
        left to those who find its marks."""
        topology = self._context.catalog.topology
        with contextlib.suppress(ApiError, TimeoutError):
            async with asyncio.timeout(FREE_SECONDS):
                await finish(self._executor, topology, attempt, self._items, commit=False)

    # --- transactions that others began ---

    async def _join(self, table: Table, other: bytes) -> Replayed | None:
        """Wait for another attempt to end; None if it was cancelled. Raises ApiError."""
        until = self._context.clock.boottime() + JOIN_SECONDS
        while self._context.clock.boottime() < until:
            await asyncio.sleep(JOIN_STEP_SECONDS)
            reply = await self._executor.call(ledger_call(table, ledger.look(self._identity.transaction)))
            row = row_of(reply.item.item)
            if row is None or row.attempt != other or row.state is State.CANCELLED:
                return None
            if row.state is State.COMMITTED:
                return await self._replay(table, row)
        raise transaction_in_progress()

    async def _replay(self, table: Table, row: Row) -> Replayed:
        """It was committed before: make sure that every part has applied it."""
        if not row.done:
            await finish(self._executor, self._context.catalog.topology, row.attempt, row.items, commit=True)
            self._note_done(table, row.attempt)
        return Replayed(row.sizes)

    # --- the ledger ---

    async def _ledger(self) -> Table:
        """The ledger's table; auto-admin makes it when the first transaction needs it."""
        catalog = self._context.catalog
        for look_again in (catalog.refresh, None):
            if (table := catalog.topology.internal_table(ledger.PURPOSE)) is not None:
                return table
            if look_again is not None:
                await look_again()
        return await catalog.create_table(ledger.ledger_table(self._context.clock.wall()))

    def _note_done(self, table: Table, attempt: bytes) -> None:
        """Nobody waits for this: without it the row's own partition asks all parts again before it forgets the row."""
        update = ledger.done(self._identity.transaction, attempt, self._now_ms())
        self._executor.submit(ledger_call(table, update), _ignore)

    def _now_ms(self) -> int:
        return int(self._context.clock.wall() * 1000)


def _what_is_in_the_way(begun: storage_pb2.Reply | ApiError) -> tuple[storage_pb2.Reply | ApiError, Row | None]:
    """What became of writing an attempt to the ledger: the reply or an error, and the row that was in its way."""
    if isinstance(begun, ApiError):
        return begun, None
    try:
        return begun, row_in_the_way(begun)
    except ApiError as error:
        return error, None


def _operation_id(attempt: bytes, number: int) -> int:
    """Of an attempt's `begin` (0), or of the prepare of one of its parts."""
    digest = blake2b(attempt + number.to_bytes(4, "big"), digest_size=8).digest()
    return int.from_bytes(digest, "big") or 1


def _ignore(_result: storage_pb2.Reply | ApiError) -> None:
    """A reply that nobody waits for."""
