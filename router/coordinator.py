"""Carries one TransactWriteItems out: asks the parts, and does what `router.transactions` makes of their answers.

All items in one partition: one request, done once by its token. Else two phases: every part is marked; if all hold
their marks the ledger gets a row that says that the attempt is committed, and only after that is durable are the parts
told. A coordinator that dies leaves marks that others bring to an end (`cluster.settlement`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from cluster import ledger
from cluster.ledger import Place, Row, ledger_call, row_in_the_way, row_of
from cluster.requests.call import Call, NodeOperation
from cluster.settlement import finish
from cluster.wire import storage_pb2
from dynamo.errors import ApiError, token_mismatch, transaction_in_progress, unavailable
from dynamo.table import Table
from router.context import RequestContext
from router.transactions import Done, InProgress, Judged, Member, Part, Replayed, judge, parts_of

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
        self._superseded = 0  # attempts that were refused, or found what another one had committed long ago

    async def run(self) -> Done | Replayed:
        """Do it. Raises ApiError: `TransactionCanceledException`, or one of retryable kinds."""
        parts = parts_of(self._members, self._context.catalog.topology)
        if len(parts) == 1:
            return await self._at_once(parts[0])
        while self._superseded < ATTEMPTS_MAX:
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
        assert not isinstance(result, InProgress), "a transaction that is done at once meets no attempt at itself"
        return result

    def _call(self, part: Part[Member], operation: NodeOperation, operation_id: int) -> Call:
        return Call(part.table, part.hash, operation, operation_id, request_id=self._context.request_id)

    # --- two phases ---

    async def _attempt(self, parts: Sequence[Part[Member]]) -> Done | Replayed | None:
        """One attempt; None when another one must be made. Raises ApiError."""
        table = await self._ledger()
        attempt = self._context.random.bytes(16)
        prepared = await self._executor.call_all(
            [self._prepare(part, attempt, number) for number, part in enumerate(parts)]
        )
        judged = judge(parts, prepared)
        if isinstance(judged, Done) and self._may_decide():
            row = await self._commit(table, attempt, judged.sizes)
            if row is None or row.attempt == attempt:
                await self._finish(attempt, self._items)
                return judged
            await self._take_marks_away(attempt)
            return await self._after(table, row)
        # Nobody but this coordinator could commit the attempt, so the ledger need not hear of its end.
        await self._take_marks_away(attempt)
        return await self._without_commit(table, judged)

    async def _without_commit(self, table: Table, judged: Judged) -> Replayed | None:
        """The answer after an attempt that was given up; None: try again."""
        match judged:
            case Replayed():
                return judged
            case InProgress():
                return await self._join(table)
            case ApiError():
                if self._identity.token and judged.type == "TransactionCanceledException":
                    row = await self._look(table)  # its own effects may be what makes its conditions fail
                    if row is not None and row.attempt and not row.expired(self._now_ms()):
                        return await self._replay(row)
                raise judged
        raise unavailable("The transaction took too long; try again")

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

    async def _commit(self, table: Table, attempt: bytes, sizes: Sequence[int]) -> Row | None:
        """Have the ledger say that it is committed; the row that was in the way, None if none was. Raises ApiError when
        nobody knows: then no part may be told."""
        identity = self._identity
        update = ledger.commit(identity.transaction, attempt, identity.payload, self._items, sizes, self._now_ms())
        return row_in_the_way(await self._executor.call(ledger_call(table, update)))

    async def _finish(self, attempt: bytes, items: Sequence[Place]) -> None:
        """Have every part apply what was committed. Raises ApiError when that takes too long."""
        until = self._context.clock.boottime() + FINISH_SECONDS_MAX
        while True:
            try:
                await finish(self._executor, self._context.catalog.topology, attempt, items, commit=True)
            except ApiError:
                if self._context.clock.boottime() > until:
                    raise
                await asyncio.sleep(FINISH_PAUSE_SECONDS)
            else:
                return

    async def _take_marks_away(self, attempt: bytes) -> None:
        """Free the items, so that the client's next try does not meet them held. A part that does not answer soon is
        left to those who find its marks."""
        topology = self._context.catalog.topology
        with contextlib.suppress(ApiError, TimeoutError):
            async with asyncio.timeout(FREE_SECONDS):
                await finish(self._executor, topology, attempt, self._items, commit=False)

    # --- attempts of others ---

    async def _after(self, table: Table, row: Row) -> Replayed | None:
        """The answer when the ledger would not commit; None: try again. Raises ApiError."""
        if row.attempt and not row.expired(self._now_ms()):
            return await self._replay(row)
        self._superseded += 1
        if row.attempt:  # of a token that was used long ago: its row goes, as it would have gone soon
            await self._finish(row.attempt, row.items)
            await self._executor.call(ledger_call(table, ledger.forget(row)))
        return None

    async def _join(self, table: Table) -> Replayed | None:
        """Wait a moment for another attempt, which may end well or not; None: try again. Raises ApiError."""
        if self._context.clock.boottime() - self._began > JOIN_SECONDS:
            raise transaction_in_progress()
        # Of attempts that get in each other's way one must be the first to try again.
        await asyncio.sleep(JOIN_STEP_SECONDS * (1 + self._context.random.below(1_000) / 1_000))
        row = await self._look(table)
        return None if row is None or not row.attempt else await self._after(table, row)

    async def _replay(self, row: Row) -> Replayed:
        """It was committed before: make sure that every part has applied it. Raises ApiError."""
        if row.payload != self._identity.payload:
            raise token_mismatch()
        await self._finish(row.attempt, row.items)
        return Replayed(row.sizes)

    async def _look(self, table: Table) -> Row | None:
        reply = await self._executor.call(ledger_call(table, ledger.look(self._identity.transaction)))
        return row_of(reply.item.item)

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
    """Of an attempt's prepare of one of its parts."""
    digest = blake2b(attempt + number.to_bytes(4, "big"), digest_size=8).digest()
    return int.from_bytes(digest, "big") or 1
