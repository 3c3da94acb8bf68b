"""Transactions that were done in one partition alone, so that a client's retry with the same token does nothing.

Each is remembered for 10 minutes of the partition's own clock. What is forgotten follows from the log alone: every
TRANSACT entry takes away the oldest tokens that have had their time, a few at most.
"""

from __future__ import annotations

import struct
from collections import deque
from contextlib import closing
from itertools import islice
from typing import Final, NamedTuple

from dynamo.codec import make_stamp
from dynamo.keys import next_key
from storagenode.storage import layout
from storagenode.storage.store import Store, StoreBroken, WriteBatch
from storagenode.transaction_commands import NO_TRANSACTION, TransactCommand

REMEMBERED_MS: Final = 600_000
"""ClientRequestToken's 10 minutes."""
FORGOTTEN_AT_ONCE_MAX: Final = 4

_TOKEN: Final = struct.Struct("<16sQH")
_AGE: Final = struct.Struct("<Q16s")


class TokenRow(NamedTuple):
    """A transaction done before: the hash of its payload, the partition's clock then, and by action the larger of its
    item's sizes."""

    payload: bytes
    stamp: int
    sizes: tuple[int, ...]


def encode_token(row: TokenRow) -> bytes:
    """The value of a token's row in the store."""
    count = len(row.sizes)
    return layout.checked(_TOKEN.pack(row.payload, row.stamp, count) + struct.pack(f"<{count}I", *row.sizes))


def decode_token(value: bytes) -> TokenRow:
    """The inverse. Raises StoreBroken if it is damaged."""
    data = layout.unchecked(value)
    try:
        payload, stamp, count = _TOKEN.unpack_from(data)
        return TokenRow(payload, stamp, struct.unpack_from(f"<{count}I", data, _TOKEN.size))
    except struct.error as error:
        raise StoreBroken("a token's row has another length") from error


class Tokens:
    """The tokens of a partition as its leader sees them: applied, or in flight."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._in_flight: dict[bytes, tuple[int, TokenRow]] = {}

    def find(self, transaction: bytes, now: int) -> tuple[TokenRow, int] | None:
        """The transaction of this key, if it was done within 10 minutes of the stamp `now`, and the position that this
        rests on (0: it is applied)."""
        if not transaction:
            return None
        if (pending := self._in_flight.get(transaction)) is not None:
            return pending[1], pending[0]
        value = self._store.row(layout.token_key(transaction))
        if value is None:
            return None
        row = decode_token(value)
        return None if row.stamp < now - make_stamp(REMEMBERED_MS, 0) else (row, 0)

    def add(self, transaction: bytes, row: TokenRow, position: int) -> None:
        """The entry proposed at `position` does this transaction."""
        if transaction:
            self._in_flight[transaction] = (position, row)

    def applied_to(self, position: int) -> None:
        """Everything up to this position is in the store."""
        if self._in_flight:
            self._in_flight = {key: pending for key, pending in self._in_flight.items() if pending[0] > position}

    def abandon(self) -> None:
        """Nothing is in flight any more."""
        self._in_flight.clear()


class _Age(NamedTuple):
    position: int
    stamp: int
    transaction: bytes


class TokensTaken:
    """What entries that are being applied do to tokens. Entry by entry, however many are applied together."""

    def __init__(self, store: Store, batch: WriteBatch) -> None:
        self._store = store
        self._rows = batch.rows
        self._old: deque[_Age] = deque()  # the next ones in the store
        self._old_from: bytes | None = layout.TOKEN_AGE  # where those after them begin; None: there are none
        self._new: deque[_Age] = deque()  # those of this batch

    def take(self, command: TransactCommand, position: int) -> None:
        """Remember the transaction, unless it has no key, and forget what has had its time."""
        if command.transaction == NO_TRANSACTION:
            return
        self._forget(command.stamp - make_stamp(REMEMBERED_MS, 0))
        row = TokenRow(command.payload, command.stamp, command.sizes)
        self._rows[layout.token_key(command.transaction)] = encode_token(row)
        self._rows[layout.token_age_key(position)] = layout.checked(_AGE.pack(command.stamp, command.transaction))
        self._new.append(_Age(position, command.stamp, command.transaction))

    def _forget(self, before: int) -> None:
        for _ in range(FORGOTTEN_AT_ONCE_MAX):
            oldest = self._oldest()
            if not oldest or oldest[0].stamp >= before:
                return
            age = oldest.popleft()
            self._rows[layout.token_age_key(age.position)] = None
            if self._stamp_of(age.transaction) == age.stamp:  # else the token was used again since
                self._rows[layout.token_key(age.transaction)] = None

    def _oldest(self) -> deque[_Age]:
        if not self._old and self._old_from is not None:
            with closing(self._store.rows(self._old_from, layout.prefix_end(layout.TOKEN_AGE))) as found:
                rows = list(islice(found, FORGOTTEN_AT_ONCE_MAX))
            self._old.extend(_age(*row) for row in rows)
            self._old_from = next_key(rows[-1][0]) if rows else None
        return self._old or self._new

    def _stamp_of(self, transaction: bytes) -> int:
        key = layout.token_key(transaction)
        value = self._rows[key] if key in self._rows else self._store.row(key)
        return 0 if value is None else decode_token(value).stamp


def _age(key: bytes, value: bytes) -> _Age:
    stamp, transaction = _AGE.unpack(layout.unchecked(value))
    return _Age(layout.position_of(key), stamp, transaction)
