"""Chance as every service sees it. Nothing else in the services asks the machine for random numbers."""

from __future__ import annotations

import random
import secrets
from typing import Protocol


class RandomSource(Protocol):
    """Where ids and jitter come from; a test or the simulator seeds it."""

    def below(self, bound: int) -> int:
        """A whole number from 0 to `bound` - 1."""
        ...

    def fraction(self) -> float:
        """A number from 0 up to, but not including, 1."""
        ...

    def bytes(self, count: int) -> bytes:
        """`count` random bytes."""
        ...


class SystemRandom:
    """The machine's source, fit for ids that nobody may guess."""

    def below(self, bound: int) -> int:
        """A whole number from 0 to `bound` - 1."""
        return secrets.randbelow(bound)

    def fraction(self) -> float:
        """A number from 0 up to, but not including, 1."""
        return secrets.SystemRandom().random()

    def bytes(self, count: int) -> bytes:
        """`count` random bytes."""
        return secrets.token_bytes(count)


class SeededRandom:
    """The same numbers for the same seed, for tests and the simulator."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, bound: int) -> int:
        """A whole number from 0 to `bound` - 1."""
        return self._random.randrange(bound)

    def fraction(self) -> float:
        """A number from 0 up to, but not including, 1."""
        return self._random.random()

    def bytes(self, count: int) -> bytes:
        """`count` random bytes."""
        return self._random.randbytes(count)
