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

from dynamo.regions import readers_of
from dynamo.table import Table
from storagenode import stream_ranges
from storagenode.index_commands import ReadCommand, TouchCommand
from storagenode.storage.store import Store, WriteBatch
from storagenode.stream_ranges import StreamRanges, load_ranges

_POSITION = struct.Struct("<Q")
_FILL = struct.Struct("<BQ")
_READER: Final = b"reader "
_CUT: Final = b"cut off "
_REGION_FILL: Final = 1 << 63
_FILL_NAME: Final = b"fill "


def index_reader(table: int) -> bytes:
    """The name of the reader that feeds a global index, by the id of the index's table."""
    return b"index %d" % table


def region_reader(number: int) -> bytes:
    """The name of the reader for a region, by the number that stands for it."""
    return b"region %d" % number


def region_fill(number: int) -> int:
    """What stands for a region where a fill is told by the id of an index's table. No table has such an id."""
    return _REGION_FILL | number


def reader_names(table: Table | None) -> tuple[bytes, ...]:
    """Who follows the changes of a table, besides its streams."""
    if table is None:
        return ()
    indexes = tuple(index_reader(index.table) for index in table.global_indexes)
    return indexes + tuple(region_reader(replica.number) for replica in readers_of(table))


def fill_ids(table: Table) -> tuple[int, ...]:
    """Who is to be brought what was there before."""
    indexes = tuple(index.table for index in table.global_indexes)
    return indexes + tuple(region_fill(replica.number) for replica in readers_of(table))


class Fill(NamedTuple):
    """How far the items that were there before a global index, or a region, have been touched for it."""

    done: bool
    position: int
    """Of the last touch; of a fill that is done: what the index has read up to here makes it whole."""
    through: bytes = b""
    """The last row key looked at; for a region the whole key of the last row, an item's or a tombstone's."""


@dataclass(frozen=True)
class ChangeReaders:
    """`positions` by reader: it needs no change row up to there. `fills` by the id of a global index's table, or a
    region's `region_fill`. `streams` by label, those that have ended and are still to be read included. `cut_off` are
    the numbers of regions that were too far behind: nothing is kept for them."""

    positions: Mapping[bytes, int] = field(default_factory=dict)
    fills: Mapping[int, Fill] = field(default_factory=dict)
    streams: StreamRanges = field(default_factory=dict)
    cut_off: frozenset[int] = frozenset()
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
        cut_off = self.cut_off & {replica.number for replica in readers_of(table)}
        gone = {region_reader(number) for number in cut_off}
        names = [name for name in reader_names(table) if name not in gone]
        positions = {name: self.positions.get(name, position) for name in names}
        gone_fills = {region_fill(number) for number in cut_off}
        wanted = [fill for fill in fill_ids(table) if fill not in gone_fills]
        # A table that begins with an index has no items that would have to be brought to it.
        fills = {fill: self.fills.get(fill, Fill(first, position)) for fill in wanted}
        for name in positions.keys() ^ self.positions.keys():
            batch.meta[_READER + name] = _POSITION.pack(positions[name]) if name in positions else None
        for fill in fills.keys() ^ self.fills.keys():
            batch.meta[_fill_name(fill)] = _encode_fill(fills[fill]) if fill in fills else None
        for number in self.cut_off - cut_off:
            batch.meta[_CUT + b"%d" % number] = None
        streams = stream_ranges.with_schema(self.streams, table, position, batch)
        return ChangeReaders(positions, fills, streams, cut_off)

    def without_region(self, number: int, batch: WriteBatch) -> ChangeReaders:
        """After a region was cut off."""
        name, fill = region_reader(number), region_fill(number)
        if name not in self.positions:
            return self
        batch.meta[_READER + name] = None
        batch.meta[_fill_name(fill)] = None
        batch.meta[_CUT + b"%d" % number] = b""
        return ChangeReaders(
            {reader: position for reader, position in self.positions.items() if reader != name},
            {other: state for other, state in self.fills.items() if other != fill},
            self.streams,
            self.cut_off | {number},
        )

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
    numbers = [replica.number for replica in readers_of(table)]
    cut_off = frozenset(number for number in numbers if store.meta(_CUT + b"%d" % number) is not None)
    gone = {region_reader(number) for number in cut_off}
    gone_fills = {region_fill(number) for number in cut_off}
    positions = {
        name: _POSITION.unpack(_present(store.meta(_READER + name)))[0]
        for name in reader_names(table)
        if name not in gone
    }
    fills = {
        fill: _decode_fill(_present(store.meta(_fill_name(fill)))) for fill in fill_ids(table) if fill not in gone_fills
    }
    return ChangeReaders(positions, fills, streams, cut_off)


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
