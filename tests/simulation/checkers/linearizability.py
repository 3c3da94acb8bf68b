"""Whether a history of one item could have come from one copy that does one operation at a time.

The search of Wing and Gong ("Testing and Verifying Concurrent Objects", 1993): linearize any operation that began
before every other open one had returned, and go back when nothing fits; with Lowe's memory of the (operations done,
state) pairs that have led nowhere ("Testing for linearizability", 2017). An operation whose outcome is unknown may be
linearized at any time after its beginning, or never.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.simulation.workloads.history import FOREVER, UNKNOWN, Operation, Value

STEPS_MAX = 400_000


class Undecided(Exception):  # noqa: N818
    """The search was given up."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """No order fits. `before`: the most operations that could be ordered; `value`: the item then; `next`: those of
    which none fitted."""

    before: tuple[Operation, ...]
    value: Value
    next: tuple[Operation, ...]

    def __str__(self) -> str:
        done = "\n".join(f"    {operation}" for operation in self.before[-12:])
        stuck = "\n".join(f"    {operation}" for operation in self.next)
        return f"  after\n{done}\n  the item is {self.value}, and none of these fits:\n{stuck}"


def after(operation: Operation, value: Value) -> tuple[bool, Value]:
    """Whether the operation, as answered, can meet an item of this value, and the item's value then."""
    if operation.done and operation.found is not UNKNOWN and operation.found != value:
        return False, value
    match operation.kind:
        case "get":
            return True, value
        case "put":
            return True, operation.value
        case "delete":
            return True, None
        case "add":
            assert not isinstance(value, str)
            assert isinstance(operation.value, int)
            return True, (value or 0) + operation.value
        case "replace" if operation.done is False:
            return value != operation.expected and operation.found in (value, UNKNOWN), value
        case "replace":
            return value == operation.expected, operation.value


def check_item(operations: Sequence[Operation], initial: Value = None, steps_max: int = STEPS_MAX) -> Stuck | None:
    """None if the history is linearizable. Raises Undecided after `steps_max` steps."""
    return _Search(operations, initial).run(steps_max)


class _Search:
    def __init__(self, operations: Sequence[Operation], initial: Value) -> None:
        self._operations = sorted(operations, key=lambda operation: operation.invoked)
        self._initial = initial
        self._known = sum(1 << at for at, operation in enumerate(self._operations) if operation.returned < FOREVER)
        self._best: tuple[list[int], Value, int] = ([], initial, 0)

    def run(self, steps_max: int) -> Stuck | None:
        seen: set[tuple[int, Value]] = set()
        order: list[int] = []
        stack = [(0, self._moves(0, self._initial))]
        for _ in range(steps_max):
            mask, moves = stack[-1]
            if mask & self._known == self._known:
                return None
            move = next(moves, None)
            if move is None:
                stack.pop()
                if not stack:
                    return self._stuck()
                order.pop()
                continue
            at, new_value = move
            new_mask = mask | 1 << at
            if (new_mask, new_value) in seen:
                continue
            seen.add((new_mask, new_value))
            order.append(at)
            if len(order) > len(self._best[0]):
                self._best = (list(order), new_value, new_mask)
            stack.append((new_mask, self._moves(new_mask, new_value)))
        raise Undecided(f"no verdict on {len(self._operations)} operations after {steps_max} steps")

    def _candidates(self, mask: int) -> list[int]:
        """Operations that no other open one must precede."""
        operations = self._operations
        found: list[int] = []
        at, first_return = _first_open(mask), FOREVER
        while at < len(operations) and operations[at].invoked <= first_return:
            if not mask >> at & 1:
                found.append(at)
                first_return = min(first_return, operations[at].returned)
            at += 1
        return [at for at in found if operations[at].invoked <= first_return]

    def _moves(self, mask: int, value: Value) -> Iterator[tuple[int, Value]]:
        """What may come next, with the value then: what is likelier to lead to the end first.

        A read that fits now may go at once, without a second choice. Of unknown ones that ask the same, the oldest
        speaks for all.
        """
        changes: list[tuple[int, Value]] = []
        doubtful: list[tuple[int, Value]] = []
        asked: set[tuple[str, Value, Value]] = set()
        for at in self._candidates(mask):
            operation = self._operations[at]
            fits, new_value = after(operation, value)
            if not fits:
                continue
            if operation.returned < FOREVER:
                if operation.kind == "get" or operation.done is False:
                    yield at, value
                    return
                changes.append((at, new_value))
            elif new_value != value and (same := (operation.kind, operation.value, operation.expected)) not in asked:
                asked.add(same)
                doubtful.append((at, new_value))
        # The one that returned first is likeliest to have been done first.
        yield from sorted(changes, key=lambda move: self._operations[move[0]].returned)
        yield from doubtful

    def _stuck(self) -> Stuck:
        order, value, mask = self._best
        operations = self._operations
        return Stuck(
            tuple(operations[at] for at in order), value, tuple(operations[at] for at in self._candidates(mask))
        )


def _first_open(mask: int) -> int:
    """The lowest bit that is not set."""
    return (~mask & (mask + 1)).bit_length() - 1
