"""Whether transactions on a few items could have come one after the other, each between its sending and its answer.

The same search as for one item (`linearizability`), over the state of all items together: strict serializability is
linearizability of the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from tests.simulation.checkers.search import STEPS_MAX, Search, Undecided
from tests.simulation.workloads.transactions import FOREVER, Transaction, Value

State: TypeAlias = tuple[Value, ...]
"""The values of all items, in the order of their names."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """No order fits. `before`: the most transactions that could be ordered; `state`: the items then; `next`: those of
    which none fitted."""

    before: tuple[Transaction, ...]
    state: dict[str, Value]
    next: tuple[Transaction, ...]

    def __str__(self) -> str:
        done = "\n".join(f"    {each}" for each in self.before[-12:])
        stuck = "\n".join(f"    {each}" for each in self.next)
        return f"  after\n{done}\n  the items are {self.state}, and none of these fits:\n{stuck}"


def check_transactions(transactions: Sequence[Transaction], steps_max: int = STEPS_MAX) -> Stuck | None:
    """None if they are strictly serializable, from a state without items. Raises Undecided after `steps_max` steps."""
    search = _Search(_that_matter(transactions))
    if search.possible(steps_max):
        return None
    before, state, next_ = search.best()
    return Stuck(before, dict(zip(search.keys, state, strict=True)), next_)


def violations(transactions: Sequence[Transaction]) -> Iterator[str]:
    """What is wrong with transactions and single operations on a group of items."""
    try:
        if stuck := check_transactions([each for each in transactions if not each.alone]):
            yield f"transactions are not serializable:\n{stuck}"
        for key in sorted({key for each in transactions for key in (*each.reads, *each.writes)}):
            if stuck := check_transactions(list(_of_item(transactions, key))):
                yield f"{key} is not linearizable:\n{stuck}"
    except Undecided as undecided:
        yield str(undecided)


def _of_item(transactions: Sequence[Transaction], key: str) -> Iterator[Transaction]:
    """What transactions do to one item."""
    for each in transactions:
        reads = {key: each.reads[key]} if key in each.reads else {}
        writes = {key: each.writes[key]} if key in each.writes else {}
        if reads or writes:
            yield replace(each, reads=reads, writes=writes)


def _that_matter(transactions: Sequence[Transaction]) -> list[Transaction]:
    """Without those of unknown outcome of whose values nobody knows: in any order that has one it can be left out."""
    known = {(key, value) for each in transactions for key, value in each.reads.items()}
    return [each for each in transactions if each.returned < FOREVER or known & each.writes.items()]


class _Search(Search[Transaction, State]):
    def __init__(self, transactions: Sequence[Transaction]) -> None:
        self.keys = sorted({key for each in transactions for key in (*each.reads, *each.writes)})
        self._index = {key: index for index, key in enumerate(self.keys)}
        super().__init__(transactions, (None,) * len(self.keys))

    def moves(self, mask: int, state: State) -> Iterator[tuple[int, State]]:
        """What may come next, with the state then. One that only reads, and fits, may go at once."""
        changes: list[tuple[int, State]] = []
        for at in self.candidates(mask):
            each = self.operations[at]
            if any(state[self._index[key]] != value for key, value in each.reads.items()):
                continue
            if not each.writes:
                yield at, state
                return
            changes.append((at, self._after(each, state)))
        # The one that returned first is likeliest to have come first; those of unknown outcome come last.
        yield from sorted(changes, key=lambda move: self.operations[move[0]].returned)

    def _after(self, transaction: Transaction, state: State) -> State:
        changed = list(state)
        for key, value in transaction.writes.items():
            changed[self._index[key]] = value
        return tuple(changed)
