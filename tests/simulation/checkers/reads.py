"""Eventually consistent reads may be old, never invented."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tests.simulation.workloads.history import Operation, Value


def invented_reads(operations: Iterable[Operation]) -> Iterator[str]:
    """Eventually consistent reads of values that nobody had begun to write, or whose write was refused."""
    operations = list(operations)
    written: dict[tuple[str, Value], float] = {}
    adds: dict[str, list[float]] = {}
    for operation in operations:
        if operation.kind == "add":
            adds.setdefault(operation.key, []).append(operation.invoked)
        elif operation.kind in ("put", "replace") and operation.done is not False:
            written.setdefault((operation.key, operation.value), operation.invoked)
    for read in _eventual(operations):
        if isinstance(read.found, int):
            begun = sum(invoked <= read.returned for invoked in adds.get(read.key, ()))
            if not 0 < read.found <= begun:
                yield f"{read} of only {begun} adds"
        elif read.found is not None and written.get((read.key, _value(read)), read.returned + 1) > read.returned:
            yield str(read)


def uncommitted_reads(operations: Iterable[Operation], committed: Mapping[str, set[Value]]) -> Iterator[str]:
    """Eventually consistent reads of values that never were in the replicated log; `committed`: what was, by item."""
    for read in _eventual(operations):
        if read.found is not None and _value(read) not in committed.get(read.key, ()):
            yield f"{read}: never committed"


def _eventual(operations: Iterable[Operation]) -> Iterator[Operation]:
    for operation in operations:
        if operation.kind == "get" and not operation.consistent and operation.done:
            yield operation


def _value(read: Operation) -> Value:
    assert read.found is None or isinstance(read.found, (str, int))
    return read.found
