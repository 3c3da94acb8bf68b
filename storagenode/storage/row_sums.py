"""The additive hash of a store's rows: the sum of a hash for each row, kept with every write.

What it covers follows from the log alone: all rows but operation ids and change rows, which are cut and forgotten as it
happens, and but the store's own (whose it is, how far it is). So it is equal on all replicas at equal positions, and
the sum over the rows that can be found is equal to what was kept, unless something was damaged, hidden or made up.

Of items and of entries in local indexes it covers key and header: the header's checksum covers the rest, and a large
item costs no more than a small one.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, TypeAlias

from dynamo import codec
from dynamo.change import decode_change
from storagenode.storage import layout
from storagenode.storage.store import StoreBroken

_PERSON: Final = b"trizone rows 1"
"""BLAKE2b's personalisation: these hashes are like no others. The number is the version of what is hashed."""
_MODULUS: Final = 1 << 128
_LENGTH: Final = struct.Struct("<H")
_begun: Final = blake2b(digest_size=16, person=_PERSON).copy  # half the time of making a new one
_number: Final = int.from_bytes
_WITH_HEADER: Final = (layout.ITEM[0], layout.TOMBSTONE[0], layout.LOCAL_INDEX[0])
_NOT_SUMMED: Final = (layout.CHANGE[0], layout.OPERATION_IDS[0])
_OWN: Final = layout.META + b"\x00"
_PLAIN: Final = (layout.META[0], layout.EXPIRY[0])
"""Rows without a checksum of their own: the sum alone tells."""
_ALL_LOW: Final = b"\x00"
_ALL_HIGH: Final = b"\xff" * 8

Moved: TypeAlias = list[tuple[bytes, int]]
"""(whole key, by how much the sum changes) of the rows that a write changed."""


def is_summed(key: bytes) -> bool:
    """Whether the row with this whole key is part of the sum."""
    return key[0] not in _NOT_SUMMED and not key.startswith(_OWN)


def row_hash(key: bytes, value: bytes | None) -> int:
    """A row's part of the sum; 0 for no row."""
    if value is None:
        return 0
    hashed = _begun()
    if key[0] in _WITH_HEADER:  # of a fixed length, so the two cannot be taken for others
        hashed.update(key + value[: codec.HEADER_SIZE])
    else:
        hashed.update(_LENGTH.pack(len(key)) + key + value)
    return _number(hashed.digest(), "little")


def verify_row(key: bytes, value: bytes) -> None:
    """Check a row by its own checksum, if its kind has one. Raises CorruptItem, StoreBroken."""
    kind = key[0]
    if kind in _WITH_HEADER:
        codec.verify(key[1:], value)
    elif kind == layout.CHANGE[0]:
        decode_change(value)
    elif kind not in _PLAIN:
        layout.unchecked(value)


@dataclass
class RowWalk:
    """A walk over all rows while they change: what it summed stays true for all rows up to where it has come.

    It goes in slices. `begin` and `end` belong where the store is written; between them `take` may run in a thread.
    """

    rows: int = 0
    size: int = 0
    """Bytes of the keys and values looked at."""
    damaged: list[str] = field(default_factory=list)
    """What is wrong with the rows that fail their own checksums, a few of them."""
    damaged_rows: int = 0
    whole: bool = False
    """It has come to the end."""
    void: bool = False
    """The store was replaced or closed: the walk is of no use."""
    _sum: int = 0
    _through: bytes = b""
    _during: Moved | None = None
    _slice: tuple[bytes, int, bool] = (b"", 0, False)

    @property
    def low(self) -> bytes:
        """Where the next slice begins."""
        return self._through + b"\x00" if self._through else _ALL_LOW

    @property
    def sum(self) -> int:
        """Of the rows up to where it has come."""
        return self._sum % _MODULUS

    def begin(self) -> None:
        """A view of the store as it is now is about to be walked."""
        self._during = []

    def take(self, rows: Iterable[tuple[bytes, bytes]], rows_max: int) -> None:
        """Look at the next rows of that view."""
        through, total, count = self._through, 0, 0
        for key, value in rows:
            try:
                verify_row(key, value)
            except (codec.CorruptItem, StoreBroken) as error:
                self.damaged_rows += 1
                if len(self.damaged) < DAMAGED_TOLD_MAX:
                    self.damaged.append(str(error))
            if is_summed(key):
                total += row_hash(key, value)
            self.size += len(key) + len(value)
            through = key
            count += 1
            if count >= rows_max:
                break
        self.rows += count
        self._slice = (through, total, count < rows_max)

    def end(self) -> None:
        """The slice counts, and so does what was written since it began."""
        self._through, total, self.whole = self._slice
        self._sum += total
        during, self._during = self._during or [], None
        for key, change in during:
            self._settle(key, change)

    def moved(self, changes: Moved) -> None:
        """Rows were written."""
        if self._during is not None:
            self._during += changes
            return
        for key, change in changes:
            self._settle(key, change)

    def _settle(self, key: bytes, change: int) -> None:
        if self.whole or key <= self._through:
            self._sum += change


DAMAGED_TOLD_MAX: Final = 3


class RowSum:
    """The kept sum of one store, and the walk that follows its writes."""

    def __init__(self, value: int = 0) -> None:
        self.value = value
        self._walk: RowWalk | None = None

    def begin_walk(self) -> RowWalk:
        """A new walk, in the place of any other."""
        self.void()
        self._walk = RowWalk()
        return self._walk

    def void(self) -> None:
        """The rows are others from now on."""
        if self._walk is not None:
            self._walk.void = True
            self._walk = None

    def after(self, changes: Moved) -> int:
        """The sum as it is after these changes."""
        return (self.value + sum([change for _, change in changes])) % _MODULUS

    def take(self, value: int, changes: Moved) -> None:
        """These changes are written; `value` is what `after` gave."""
        self.value = value
        if self._walk is not None:
            self._walk.moved(changes)


def sum_of(rows: Generator[tuple[bytes, bytes], None, None]) -> int:
    """The sum over rows, for a store that has none yet."""
    with closing(rows) as found:
        return sum(row_hash(key, value) for key, value in found if is_summed(key)) % _MODULUS


ALL: Final = (_ALL_LOW, _ALL_HIGH)
"""The range of all whole keys."""
