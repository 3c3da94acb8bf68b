"""How long writes to a partition stood still."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise


def longest_gap(times: Iterable[float], first: float, last: float) -> float:
    """The longest time between two successes that touches [first, last]; one before and one after it are needed.

    `times`: when each success ended, in any order. A gap that only begins or only ends within the time counts whole.
    Raises ValueError when there was no success before `first` or none after `last`.
    """
    ordered = sorted(times)
    if not ordered or ordered[0] > first or ordered[-1] < last:
        raise ValueError("there must be successes before and after")
    pairs = pairwise(ordered)
    return max((later - earlier for earlier, later in pairs if later > first and earlier < last), default=0.0)


def percentile(values: Sequence[float], part: float) -> float:
    """The smallest value that at least `part` (0 to 1) of all do not exceed; 0 without values."""
    if not values:
        return 0.0
    return sorted(values)[max(0, math.ceil(part * len(values)) - 1)]
