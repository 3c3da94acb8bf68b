"""Who follows a partition's change rows, and how far each has come. Part of the applied state, moved by entries alone.

A table whose description names no reader has no change rows. A reader begins after the entry that brought it in. The
streams of a table are readers, too, that come further as time goes by.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, NamedTuple

from dynamo.table import Table
from storagenode import stream_ranges
from storagenode.index_commands import ReadCommand, TouchCommand
from storagenode.storage.store import Store, WriteBatch
from storagenode.stream_ranges import StreamRanges, load_ranges

_POSITION = struct.Struct("<Q")
_FILL = struct.Struct("<BQ")
_READER: Final = b"reader "
_FILL_NAME: Final = b"fill "


def index_reader(table: int) -> bytes:
    """The name of the reader that feeds a global index, by the id of the index's table."""
    return b"index %d" % table


def reader_names(table: Table | None) -> tuple[bytes, ...]:
    """Who follows the changes of a table, besides its streams."""
    return () if table is None else tuple(index_reader(index.table) for index in table.global_indexes)


class Fill(NamedTuple):
    """How far the items that were there before a global index have been touched for it."""

    done: bool
    position: int
    """Of the last touch; of a fill that is done: what the index has read up to here makes it whole."""
    through: bytes = b""
    """The last row key looked at."""


@dataclass(frozen=True)
class ChangeReaders:
    """`positions` by reader: it needs no change row up to there. `fills` by the id of a global index's table. `streams`
    by label, those that have ended and are still to be read included."""

    positions: Mapping[bytes, int] = field(default_factory=dict)
    fills: Mapping[int, Fill] = field(default_factory=dict)
    streams: StreamRanges = field(default_factory=dict)
    follows: bool = field(init=False, compare=False)
    """Whether what is written from here on is wanted."""

    def __post_init__(self) -> None:
        streamed = any(not stream.end for stream in self.streams.values())
        object.__setattr__(self, "follows", bool(self.positions) or streamed)

    def __bool__(self) -> bool:
        return bool(self.positions or self.streams)

    @property
    def passed(self) -> int:
        """Change rows up to here have been read by all."""
        kept = (stream.trimmed for stream in self.streams.values())
        return min((*self.positions.values(), *kept), default=0)

    def with_schema(self, table: Table, position: int, batch: WriteBatch, *, first: bool) -> ChangeReaders:
        """After the entry at `position` that made `table` the schema, the `first` one or not: new readers begin there,
        and those that it does not name are gone."""
        names = set(reader_names(table))
        positions = {name: self.positions.get(name, position) for name in names}
        indexes = {index.table for index in table.global_indexes}
        # A table that begins with an index has no items that would have to be brought to it.
        fills = {index: self.fills.get(index, Fill(first, position)) for index in indexes}
        for name in names ^ set(self.positions):
            batch.meta[_READER + name] = _POSITION.pack(positions[name]) if name in names else None
        for index in indexes ^ set(self.fills):
            batch.meta[_fill_name(index)] = _encode_fill(fills[index]) if index in indexes else None
        return ChangeReaders(positions, fills, stream_ranges.with_schema(self.streams, table, position, batch))

    def read(self, command: ReadCommand, batch: WriteBatch) -> ChangeReaders:
        """After readers have come further. Those that are gone meanwhile are not brought back."""
        positions = dict(self.positions)
        for name, position in command.positions.items():
            if name in positions and position > positions[name]:
                positions[name] = position
                batch.meta[_READER + name] = _POSITION.pack(position)
        streams = stream_ranges.trimmed(self.streams, command.positions, batch)
        return replace(self, positions=positions, streams=streams)

    def touched(self, command: TouchCommand, position: int, batch: WriteBatch) -> ChangeReaders:
        """After items were touched for an index by the entry at `position`."""
        if command.index not in self.fills:
            return self
        fill = Fill(command.done, position, command.through)
        batch.meta[_fill_name(command.index)] = _encode_fill(fill)
        return replace(self, fills={**self.fills, command.index: fill})


def load_readers(store: Store, table: Table | None) -> ChangeReaders:
    """The applied state's readers; `table` is the schema."""
    streams = load_ranges(store)
    if table is None or not (reader_names(table) or streams):
        return NO_READERS
    positions = {name: _POSITION.unpack(_present(store.meta(_READER + name)))[0] for name in reader_names(table)}
    fills = {index.table: _decode_fill(_present(store.meta(_fill_name(index.table)))) for index in table.global_indexes}
    return ChangeReaders(positions, fills, streams)


NO_READERS: Final = ChangeReaders(MappingProxyType({}), MappingProxyType({}), MappingProxyType({}))


def _fill_name(index: int) -> bytes:
    return _FILL_NAME + b"%d" % index


def _encode_fill(fill: Fill) -> bytes:
    return _FILL.pack(fill.done, fill.position) + fill.through


def _decode_fill(value: bytes) -> Fill:
    done, position = _FILL.unpack_from(value)
    return Fill(bool(done), position, value[_FILL.size :])


def _present(value: bytes | None) -> bytes:
    assert value is not None, "a reader's row is written with the schema that names it"
    return value
