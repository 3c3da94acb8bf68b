"""Ways in which transactions could be wrong. The simulation must find each of them, with few seeds of its `PLANS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final
from unittest.mock import patch

from cluster import ledger
from cluster.ledger import Place
from cluster.settlement import finish_calls
from cluster.wire import storage_pb2
from router import transaction_reads
from router.context import RequestContext
from router.coordinator import Coordinator, Identity
from router.operations import transact_write_items
from router.transactions import Part, Read, judge_reads
from storagenode.storage.store import Store
from storagenode.transaction_commands import OnCommit
from storagenode.transaction_marks import Mark, Marks
from storagenode.transaction_tokens import Tokens
from storagenode.transactions import Transactions
from tests.simulation.scenarios.bank import Plan, run_bank

MUTANTS: dict[str, Callable[[], AbstractContextManager[None]]] = {}


_DEFAULT: Final = Plan(seconds=20)
_SLOW: Final = Plan(seconds=20, clients=8, think=(0.0, 0.05), weights={"slow way from a router": 1.0}, pause=(0.2, 1.0))
"""Messages of one request come at very different times."""
PLANS: Final[dict[str, Plan]] = {"reads_of_one_look": _SLOW}


def seeds_until_found(name: str, seeds: Sequence[int]) -> int | None:
    """How many of these seeds it took to find the mutant; None when none did."""
    for number, seed in enumerate(seeds, 1):
        if run_bank(seed, PLANS.get(name, _DEFAULT), MUTANTS[name]).violations:
            return number
    return None


def _mutant(function: Callable[[], Iterator[None]]) -> Callable[[], Iterator[None]]:
    MUTANTS[function.__name__] = contextmanager(function)
    return function


@_mutant
def answer_before_the_parts_have_applied() -> Iterator[None]:
    """The client is told once the ledger says committed."""

    async def finish_later(self: Coordinator, attempt: bytes, items: Sequence[Place]) -> None:
        for call in finish_calls(self._context.catalog.topology, attempt, items, commit=True):
            self._executor.submit(call, lambda _: None)

    with patch.object(Coordinator, "_finish", finish_later):
        yield


@_mutant
def commit_what_recovery_has_cancelled() -> Iterator[None]:
    """The coordinator does not heed that the ledger refuses to commit."""
    commit = Coordinator._commit

    async def commit_anyway(self: Coordinator, *arguments: Any) -> None:
        await commit(self, *arguments)

    with patch.object(Coordinator, "_commit", commit_anyway):
        yield


@_mutant
def reads_that_ignore_marks() -> Iterator[None]:
    """Only versions are compared."""

    def judge(
        parts: Sequence[Part[Read]], first: Sequence[storage_pb2.Reply], second: Sequence[storage_pb2.Reply]
    ) -> Any:
        for reply in (*first, *second):
            for read in reply.transact_get.reads:
                read.marked = False
        return judge_reads(parts, first, second)

    with patch.object(transaction_reads, "judge_reads", judge):
        yield


@_mutant
def reads_of_one_look() -> Iterator[None]:
    """The second look is left out."""

    def judge(parts: Sequence[Part[Read]], first: Sequence[storage_pb2.Reply], _: Sequence[storage_pb2.Reply]) -> Any:
        return judge_reads(parts, first, [])

    with patch.object(transaction_reads, "judge_reads", judge):
        yield


@_mutant
def marks_that_single_writes_ignore() -> Iterator[None]:
    """A put or update goes through a mark."""
    with patch.object(Transactions, "conflict", lambda _self, _key: None):
        yield


@_mutant
def marks_lost_at_failover() -> Iterator[None]:
    """A replica that is opened again, or loses leadership, forgets the marks."""
    load = Marks.__init__

    def load_none(self: Marks, store: Store) -> None:
        load(self, store)
        self.applied.clear()

    with (
        patch.object(Marks, "__init__", load_none),
        patch.object(Marks, "abandon", lambda self: self.applied.clear()),
    ):
        yield


@_mutant
def tokens_that_are_forgotten() -> Iterator[None]:
    """Every try of a client is a transaction of its own."""
    identity_of = transact_write_items.identity_of

    def anew(context: RequestContext, _token: str | None, payload: object) -> Identity:
        return identity_of(context, context.random.bytes(8).hex(), payload)

    with patch.object(transact_write_items, "identity_of", anew):
        yield


@_mutant
def checks_that_hold_nothing() -> Iterator[None]:
    """A condition check holds when its part is prepared, and nobody hinders others from making it false since."""

    def heedless(original: Callable[..., Any]) -> Callable[..., Any]:
        def decide(self: Transactions, *arguments: Any) -> Any:
            with patch.object(Marks, "current", _unless_checked):
                return original(self, *arguments)

        return decide

    with (
        patch.object(Transactions, "conflict", heedless(Transactions.conflict)),
        patch.object(Transactions, "_decide", heedless(Transactions._decide)),
    ):
        yield


_current = Marks.current


def _unless_checked(marks: Marks, key: bytes) -> tuple[Mark | None, int]:
    mark, since = _current(marks, key)
    return (None, since) if mark is not None and mark.on_commit is OnCommit.NOTHING else (mark, since)


@_mutant
def tokens_that_one_partition_forgets() -> Iterator[None]:
    """A transaction within one partition is done again when its token comes again."""
    with patch.object(Tokens, "find", lambda _self, _transaction, _now: None):
        yield


@_mutant
def tokens_that_the_ledger_forgets() -> Iterator[None]:
    """A transaction over partitions may begin again as soon as it is done."""
    with patch.object(ledger, "ROW_MS", -120_000):
        yield
