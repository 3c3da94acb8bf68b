"""What workloads speak to: a client that retries as an AWS SDK does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, or none. `error` is the error's type without its namespace, "" for success.

    `doubtful`: an earlier try of the same request ended without a clear answer: it may still come to pass, once.
    `last_sent`: when the try left that was answered.
    """

    error: str
    body: dict[str, Any] = field(default_factory=dict)
    doubtful: bool = False
    last_sent: float = 0.0


class Client(Protocol):
    """One client. Its operations follow each other."""

    @property
    def name(self) -> str:
        """For the history."""
        ...

    async def call(self, operation: str, body: dict[str, Any]) -> Reply | None:
        """The reply, after retries with one invocation id; None when none of them brought a clear one."""
        ...
