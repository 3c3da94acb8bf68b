"""Whether a history of one item could have come from one copy that does one operation at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.simulation.checkers.search import STEPS_MAX, Search, Undecided
from tests.simulation.workloads.history import FOREVER, UNKNOWN, Operation, Value

__all__ = ["Stuck", "Undecided", "after", "check_item"]


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
    search = _Search(operations, initial)
    return None if search.possible(steps_max) else Stuck(*search.best())


class _Search(Search[Operation, Value]):
    def moves(self, mask: int, value: Value) -> Iterator[tuple[int, Value]]:
        """What may come next, with the value then: what is likelier to lead to the end first.

        A read that fits now may go at once, without a second choice. Of unknown ones that ask the same, the oldest
        speaks for all.
        """
        changes: list[tuple[int, Value]] = []
        doubtful: list[tuple[int, Value]] = []
        asked: set[tuple[str, Value, Value]] = set()
        for at in self.candidates(mask):
            operation = self.operations[at]
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
        yield from sorted(changes, key=lambda move: self.operations[move[0]].returned)
        yield from doubtful
