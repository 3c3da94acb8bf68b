"""Answers that no entry of the log holds, so that a request that arrives again changes nothing after them.

A write that goes ahead leaves its operation id in the log. One that is refused, or has nothing to do, leaves none: were
its message to come once more, after others' writes, it could then go ahead, though its client was told otherwise. That
holds for single writes, for batches and for transactions, whatever it is that stood against them.

A leader remembers them while it leads, in memory: what still comes to an earlier leader is refused there.
"""

from __future__ import annotations

from typing import Final

from storagenode.decisions import Answer

GENERATION_ANSWERS: Final = 4_096
GENERATION_BYTES: Final = 1 << 20
"""An answer may carry items. Two generations of so many answers, or bytes, are remembered."""


class UnwrittenAnswers:
    """Operation id → the answer, the latest two generations of them."""

    def __init__(self) -> None:
        self._current: dict[int, Answer] = {}
        self._older: dict[int, Answer] = {}
        self._bytes = 0

    def find(self, operation_id: int, applied: int) -> Answer | None:
        """The answer that this operation had; `applied`: what need not be waited for any more."""
        known = self._current.get(operation_id) or self._older.get(operation_id)
        if known is None or known.after > applied:
            return known
        return Answer(known.reply, 0)

    def add(self, operation_id: int, answer: Answer) -> None:
        """This operation, 0 for none, was answered so."""
        if not operation_id:
            return
        size = answer.reply.ByteSize()
        if len(self._current) >= GENERATION_ANSWERS or self._bytes + size > GENERATION_BYTES:
            self._older, self._current, self._bytes = self._current, {}, 0
        self._current[operation_id] = answer
        self._bytes += size

    def clear(self) -> None:
        """Leadership is lost."""
        self._current.clear()
        self._older.clear()
        self._bytes = 0
