"""Which of a partition's change rows belong to which stream of its table. Part of the applied state.

A stream begins after the entry that brought it and ends at the entry that took it away. Its rows are kept until they
are trimmed, also after its end; then the partition forgets the stream.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from contextlib import closing
from typing import Final, NamedTuple

from dynamo.table import Table
from storagenode.storage import layout
from storagenode.storage.store import Store, WriteBatch

STREAM: Final = b"stream "
"""A stream's name in READ entries and of its row: this and its label."""

_RANGE = struct.Struct("<QQQ")


class StreamRange(NamedTuple):
    """Positions of the partition's log."""

    first: int
    """Of the entry that began the stream: its records stand above."""
    end: int
    """Of the entry that ended it: its records stand below. 0: it goes on."""
    trimmed: int
    """Records up to here are gone."""

    @property
    def is_gone(self) -> bool:
        """Whether it has ended and nothing is left of it."""
        return 0 < self.end <= self.trimmed


StreamRanges = Mapping[str, StreamRange]
"""By the stream's label."""


def stream_reader(label: str) -> bytes:
    """The name by which entries tell how far a stream is trimmed."""
    return STREAM + label.encode()


def with_schema(ranges: StreamRanges, table: Table, position: int, batch: WriteBatch) -> StreamRanges:
    """After the entry at `position` that made `table` the schema."""
    current = table.stream.label if table.stream is not None else ""
    changed = dict(ranges)
    for label, known in ranges.items():
        if label != current and not known.end:
            changed[label] = known._replace(end=position)
    if current and current not in ranges:
        changed[current] = StreamRange(position, 0, position)
    return _written(ranges, changed, batch)


def trimmed(ranges: StreamRanges, positions: Mapping[bytes, int], batch: WriteBatch) -> StreamRanges:
    """After streams were trimmed; `positions` by name."""
    changed = dict(ranges)
    for label, known in ranges.items():
        position = positions.get(stream_reader(label), 0)
        if position > known.trimmed:
            changed[label] = known._replace(trimmed=position)
        if changed[label].is_gone:
            del changed[label]
    return _written(ranges, changed, batch)


def load_ranges(store: Store) -> StreamRanges:
    """The applied state's."""
    low, high = layout.meta_key(STREAM), layout.meta_key(STREAM[:-1] + bytes((STREAM[-1] + 1,)))
    with closing(store.rows(low, high)) as rows:
        return {key[len(low) :].decode(): StreamRange(*_RANGE.unpack(value)) for key, value in rows}


def _written(before: StreamRanges, after: dict[str, StreamRange], batch: WriteBatch) -> StreamRanges:
    if after == before:
        return before
    for label in before.keys() | after.keys():
        if before.get(label) != (known := after.get(label)):
            batch.meta[stream_reader(label)] = None if known is None else _RANGE.pack(*known)
    return after
