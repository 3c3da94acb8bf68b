"""What clients asked and heard, and when: all that the checkers go by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

FOREVER: Final = float("inf")

Kind: TypeAlias = Literal["get", "put", "replace", "add", "delete"]
"""`replace` is a put under the condition that the item is the one named by `expected`."""

Value: TypeAlias = str | int | None
"""What is told apart of an item: its unique token, or a counter's number. None: there is no item."""


class Unknown:
    """Nobody knows what became of the operation, or (a put without ReturnValues) what it found."""

    def __repr__(self) -> str:
        return "?"


UNKNOWN: Final = Unknown()


@dataclass(slots=True, eq=False)
class Operation:
    """One operation on one item.

    `found`: the value that it met, if the answer told: of a get what it read, of a put or a failed replace the old
    item; of an add the sum before. `done`: whether it changed the item as asked; None: unknown. `returned` is then
    FOREVER: it may happen at any later time, or never.
    """

    client: str
    key: str
    kind: Kind
    invoked: float
    value: Value = None
    expected: Value = None
    returned: float = FOREVER
    found: Value | Unknown = UNKNOWN
    done: bool | None = None
    consistent: bool = True

    def __str__(self) -> str:
        until = "..." if self.returned == FOREVER else f"{self.returned:.6f}"
        asked = f"{self.expected} -> {self.value}" if self.kind == "replace" else f"{self.value}"
        outcome = {True: "done", False: "refused", None: "unknown"}[self.done]
        return (
            f"{self.invoked:.6f} {until:>10} {self.client:9} {self.kind} {self.key} {asked}: {outcome}, "
            f"found {self.found}{'' if self.consistent else ' (eventually consistent)'}"
        )


@dataclass
class History:
    """All operations of a run, in order of their beginning."""

    now: Callable[[], float]
    operations: list[Operation] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    """Answers that no client should ever get."""

    def begin(self, client: str, key: str, kind: Kind, **asked: Any) -> Operation:
        """A client sends an operation."""
        operation = Operation(client, key, kind, self.now(), **asked)
        self.operations.append(operation)
        return operation

    def end(self, operation: Operation, *, done: bool, found: Value | Unknown = UNKNOWN) -> None:
        """The client has an answer."""
        operation.returned = self.now()
        operation.done = done
        operation.found = found

    def strong_by_key(self) -> Iterator[tuple[str, list[Operation]]]:
        """Per item, everything but eventually consistent reads and reads without an answer."""
        keys: dict[str, list[Operation]] = {}
        for operation in self.operations:
            if operation.kind == "get" and (operation.done is None or not operation.consistent):
                continue
            keys.setdefault(operation.key, []).append(operation)
        yield from keys.items()
