"""A search for an order in which operations that overlapped could have come one after the other.

That of Wing and Gong ("Testing and Verifying Concurrent Objects", 1993): put any operation next that began before
every other open one had returned, and go back when nothing fits; with Lowe's memory of the (operations done, state)
pairs that have led nowhere ("Testing for linearizability", 2017). An operation whose outcome is unknown never returned:
it may come at any time after its beginning, or never.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from typing import Final, Generic, Protocol, TypeVar

FOREVER: Final = float("inf")
STEPS_MAX: Final = 400_000


class Undecided(Exception):  # noqa: N818
    """The search was given up."""


class Timed(Protocol):
    """What is ordered. `returned` is FOREVER if nobody knows what became of it."""

    invoked: float
    returned: float


O = TypeVar("O", bound=Timed)  # noqa: E741
S = TypeVar("S", bound=Hashable)


class Search(ABC, Generic[O, S]):
    """One search, from the state `initial`. Subclasses say what fits where."""

    def __init__(self, operations: Sequence[O], initial: S) -> None:
        self.operations = sorted(operations, key=lambda operation: operation.invoked)
        self._initial = initial
        self._known = sum(1 << at for at, operation in enumerate(self.operations) if operation.returned < FOREVER)
        self._best: tuple[list[int], S, int] = ([], initial, 0)

    @abstractmethod
    def moves(self, mask: int, state: S) -> Iterator[tuple[int, S]]:
        """What may come next, by its index, with the state then: what is likelier to lead to the end first."""

    def possible(self, steps_max: int = STEPS_MAX) -> bool:
        """Whether there is an order. Raises Undecided after `steps_max` steps."""
        seen: set[tuple[int, S]] = set()
        order: list[int] = []
        stack = [(0, self.moves(0, self._initial))]
        for _ in range(steps_max):
            mask, moves = stack[-1]
            if mask & self._known == self._known:
                return True
            move = next(moves, None)
            if move is None:
                stack.pop()
                if not stack:
                    return False
                order.pop()
                continue
            at, state = move
            mask |= 1 << at
            if (mask, state) in seen:
                continue
            seen.add((mask, state))
            order.append(at)
            if len(order) > len(self._best[0]):
                self._best = (list(order), state, mask)
            stack.append((mask, self.moves(mask, state)))
        raise Undecided(f"no verdict on {len(self.operations)} operations after {steps_max} steps")

    def candidates(self, mask: int) -> list[int]:
        """Operations that no other open one must precede."""
        operations = self.operations
        found: list[int] = []
        at, first_return = _first_open(mask), FOREVER
        while at < len(operations) and operations[at].invoked <= first_return:
            if not mask >> at & 1:
                found.append(at)
                first_return = min(first_return, operations[at].returned)
            at += 1
        return [at for at in found if operations[at].invoked <= first_return]

    def best(self) -> tuple[tuple[O, ...], S, tuple[O, ...]]:
        """The most operations that could be ordered, the state then, and those of which none fitted."""
        order, state, mask = self._best
        operations = self.operations
        return (
            tuple([operations[at] for at in order]),
            state,
            tuple([operations[at] for at in self.candidates(mask)]),
        )


def _first_open(mask: int) -> int:
    """The lowest bit that is not set."""
    return (~mask & (mask + 1)).bit_length() - 1
