"""Counters: every acknowledged add counts once, and nothing else counts more than once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.simulation.workloads.history import Operation


def wrong_counters(operations: Sequence[Operation]) -> Iterator[str]:
    """Counters whose last strong read, after all else, is outside of what was acknowledged and what may have been."""
    sums: dict[str, list[int]] = {}
    last: dict[str, Operation] = {}
    for operation in operations:
        if operation.kind == "add":
            low_high = sums.setdefault(operation.key, [0, 0])
            low_high[0] += bool(operation.done)
            low_high[1] += 1
        elif operation.kind == "get" and operation.consistent and operation.done:
            last[operation.key] = operation
    for key, (low, high) in sums.items():
        found = (last[key].found if key in last else None) or 0
        if not isinstance(found, int) or not low <= found <= high:
            yield f"{key} is {found}; {low} adds were acknowledged and {high} were sent"
