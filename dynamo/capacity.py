"""Capacity units of reads and writes, and a token bucket to meter them by.

Rules: the developer guide's capacity unit calculations. Sizes are DynamoDB's bytes (see `item.item_size`), 0 for a
missing item. An index charges a write by the change of its entry (`index_write_units`).
"""

from __future__ import annotations

READ_UNIT_SIZE = 4096
WRITE_UNIT_SIZE = 1024


def read_units(size: int, consistent: bool) -> float:
    """Units of reading `size` bytes: of one item, or of all that a Query or Scan page went through, rounded up once."""
    units = _steps(size, READ_UNIT_SIZE)
    return float(units) if consistent else units / 2


def transactional_read_units(size: int) -> float:
    """Units of reading one item in a transaction: twice the consistent ones."""
    return 2.0 * _steps(size, READ_UNIT_SIZE)


def write_units(old_size: int, new_size: int) -> float:
    """Units of turning an item of `old_size` bytes into one of `new_size`: by the larger, at least one."""
    return float(_steps(max(old_size, new_size), WRITE_UNIT_SIZE))


def transactional_write_units(old_size: int, new_size: int) -> float:
    """Units of a write in a transaction, or of its ConditionCheck (with both sizes the same): doubled."""
    return 2 * write_units(old_size, new_size)


def index_write_units(old_size: int, new_size: int, *, same_key: bool, changed: bool) -> float:
    """Units that one index charges for a write: by its entry's size before and after, 0 where there is none.

    An unchanged entry costs nothing, one that moves to another key a delete and an insert.
    """
    if not (old_size or new_size) or not changed:
        return 0.0
    if old_size and new_size and not same_key:
        return write_units(old_size, 0) + write_units(0, new_size)
    return write_units(old_size, new_size)


def _steps(size: int, step: int) -> int:
    return max(1, -(-size // step))


class TokenBucket:
    """Tokens that flow in at `rate` per second up to `capacity`. Times are seconds of one clock that never runs back.

    Costs that are known only afterwards are taken as debt, which must be paid before anything is admitted again.
    """

    def __init__(self, rate: float, capacity: float, now: float) -> None:
        self._rate = rate
        self._capacity = capacity
        self._tokens = capacity
        self._seen = now

    def tokens(self, now: float) -> float:
        """What is there; negative while in debt."""
        self._fill(now)
        return self._tokens

    def try_take(self, cost: float, now: float) -> bool:
        """Takes the cost if it is all there, else nothing."""
        self._fill(now)
        if self._tokens < cost:
            return False
        self._tokens -= cost
        return True

    def take(self, cost: float, now: float) -> None:
        """Takes the cost, into debt if need be."""
        self._fill(now)
        self._tokens -= cost

    def set_rate(self, rate: float, capacity: float, now: float) -> None:
        """Changes the flow from now on; what is there stays, up to the new capacity."""
        self._fill(now)
        self._rate = rate
        self._capacity = capacity
        self._tokens = min(self._tokens, capacity)

    def _fill(self, now: float) -> None:
        if now > self._seen:
            self._tokens = min(self._capacity, self._tokens + (now - self._seen) * self._rate)
            self._seen = now
