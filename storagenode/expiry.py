"""The expiry index of a partition: its items in order of the time at which they expire. Part of the applied state.

Each setting of a table's time to live has a generation of rows, named by the position of the entry that brought it. The
rows of items that are written follow from the writes; those of items that were there before, and the end of the rows of
earlier generations, come with EXPIRY entries of the leader.

Layout of an EXPIRY entry, little endian, after one byte of format version and one byte of command (`commands`):
generation (8), whether all items have their rows (1), whether all earlier rows are gone (1), length of the last row key
looked at (2), that key, number of items (4), then length (2) and bytes of the row key of each, then of each row that
goes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from dynamo import codec
from dynamo.expiry import PAST_SECONDS_MAX, expires_at, needle_of
from dynamo.keys import next_key
from dynamo.table import Table
from storagenode.storage import layout
from storagenode.storage.store import Store, WriteBatch

EXPIRY: Final = 30
STEP_ROWS: Final = 128
"""Items looked at, or rows that go, by one entry."""

_FORMAT_VERSION = 1
_NAME: Final = b"expiry"
_STATE = struct.Struct("<QBB")
_COMMAND = struct.Struct("<BBQBBH")
_COUNT = struct.Struct("<I")
_KEY = struct.Struct("<H")


@dataclass(frozen=True, slots=True)
class ExpiryCommand:
    """The next step of making the index of a generation whole. All items up to `through` have been looked at."""

    generation: int
    filled: bool
    purged: bool
    through: bytes
    keys: tuple[bytes, ...]
    """Row keys of items that are to have their rows."""
    gone: tuple[bytes, ...]
    """Whole keys of rows of earlier generations."""


@dataclass(frozen=True)
class Expiry:
    """`attribute` is empty while the rows of a time to live that was taken away are still there."""

    attribute: str
    generation: int
    filled: bool = False
    purged: bool = False
    through: bytes = b""
    needle: bytes = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "needle", needle_of(self.attribute))

    @property
    def is_whole(self) -> bool:
        """Whether the rows are those of the items, and no others are left."""
        return self.filled and self.purged

    def moved(self, batch: WriteBatch, key: bytes, before: bytes, after: bytes) -> None:
        """An item changes from stored bytes to others, empty or a tombstone where there is none."""
        old, new = self._time(before), self._time(after)
        if old == new:
            return
        if old is not None:
            batch.rows[layout.expiry_key(self.generation, old, key)] = None
        if new is not None:
            batch.rows[layout.expiry_key(self.generation, new, key)] = b""

    def take(self, command: ExpiryCommand, batch: WriteBatch, stored: Callable[[bytes], bytes]) -> Expiry | None:
        """After an EXPIRY entry; `stored` gives an item's stored bytes, empty if there is none."""
        if command.generation != self.generation:
            return self
        for key in command.keys:
            self.moved(batch, key, b"", stored(key))
        for row in command.gone:
            batch.rows[row] = None
        return _saved(replace(self, filled=command.filled, purged=command.purged, through=command.through), batch)

    def due(self, store: Store, now: int, after: bytes, count: int) -> list[bytes]:
        """Whole keys of the next rows, beyond `after` if it is not empty, of items that have expired at `now`."""
        low = after + b"\0" if after else layout.expiry_key(self.generation, max(0, now - PAST_SECONDS_MAX), b"")
        with closing(store.rows(low, layout.expiry_key(self.generation, now, b""))) as rows:
            return [key for key, _ in islice(rows, count)]

    def next_step(self, store: Store) -> bytes:
        """The entry that brings an index closer to being whole."""
        gone: list[bytes] = []
        if not self.purged:
            with closing(store.rows(layout.EXPIRY, layout.expiry_key(self.generation, 0, b""))) as rows:
                gone = [key for key, _ in islice(rows, STEP_ROWS)]
        keys: list[bytes] = []
        if not self.filled:
            with closing(store.scan(next_key(self.through) if self.through else b"", b"")) as items:
                keys = [key for key, _ in islice(items, STEP_ROWS)]
        filled, purged = len(keys) < STEP_ROWS, len(gone) < STEP_ROWS
        through = keys[-1] if keys else self.through
        return encode_expiry(ExpiryCommand(self.generation, filled, purged, through, tuple(keys), tuple(gone)))

    def _time(self, stored: bytes) -> int | None:
        return expires_at(codec.body_of(stored), self.attribute, self.needle) if stored else None


def with_schema(expiry: Expiry | None, table: Table, position: int, batch: WriteBatch, *, first: bool) -> Expiry | None:
    """After the entry at `position` that made `table` the schema, the `first` one or not."""
    if table.ttl_attribute == ("" if expiry is None else expiry.attribute):
        return expiry
    return _saved(
        Expiry(table.ttl_attribute, position, filled=first or not table.ttl_attribute, purged=expiry is None), batch
    )


def load_expiry(store: Store, table: Table | None) -> Expiry | None:
    """The applied state's; `table` is the schema."""
    if table is None or (row := store.meta(_NAME)) is None:
        return None
    generation, filled, purged = _STATE.unpack_from(row)
    return Expiry(table.ttl_attribute, generation, bool(filled), bool(purged), row[_STATE.size :])


def encode_expiry(command: ExpiryCommand) -> bytes:
    """The payload of an EXPIRY entry."""
    head = _COMMAND.pack(
        _FORMAT_VERSION, EXPIRY, command.generation, command.filled, command.purged, len(command.through)
    )
    parts = [head, command.through, _COUNT.pack(len(command.keys))]
    for key in (*command.keys, *command.gone):
        parts += (_KEY.pack(len(key)), key)
    return b"".join(parts)


def decode_expiry(payload: bytes) -> ExpiryCommand:
    """The inverse."""
    _, _, generation, filled, purged, length = _COMMAND.unpack_from(payload)
    at = _COMMAND.size + length
    through = payload[_COMMAND.size : at]
    (count,) = _COUNT.unpack_from(payload, at)
    at += _COUNT.size
    found: list[bytes] = []
    while at < len(payload):
        (length,) = _KEY.unpack_from(payload, at)
        at += _KEY.size + length
        found.append(payload[at - length : at])
    return ExpiryCommand(generation, bool(filled), bool(purged), through, tuple(found[:count]), tuple(found[count:]))


def row_keys(rows: Sequence[bytes]) -> list[bytes]:
    """The row keys of the items in these rows of the index."""
    return [layout.expired_row_key(row) for row in rows]


def _saved(expiry: Expiry, batch: WriteBatch) -> Expiry | None:
    if not expiry.attribute and expiry.is_whole:
        batch.meta[_NAME] = None
        return None
    batch.meta[_NAME] = _STATE.pack(expiry.generation, expiry.filled, expiry.purged) + expiry.through
    return expiry
