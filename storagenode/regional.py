"""What a partition's leader decides on changes from other regions, and what the partition has taken of them.

A change is applied iff its `(stamp, region)` is greater than what is held, a tombstone included. The changes of one
partition elsewhere come in order of its positions, the next ones only when it is known that those before were taken: so
whatever is at or below the last position taken has been taken before, however often and late it comes.

Rows that are told without a position come from a comparison of two regions. They were read elsewhere a moment ago; if
they come late they are refused, since the tombstones that would overrule them may be gone by then.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from cluster.wire import storage_pb2
from dynamo import codec
from dynamo.codec import stamp_milliseconds
from dynamo.errors import ApiError, internal
from dynamo.regions import AHEAD_MS_MAX, Version, number_of, region_of
from dynamo.table import Table
from storagenode.decisions import Answer, Propose, failure
from storagenode.regional_commands import RegionalRow, Source, encode_regional
from storagenode.storage import layout
from storagenode.storage.store import Store, WriteBatch
from storagenode.writes import Changed, Old

AHEAD: Final = "RegionalChangeAhead"
"""The type of the failure that a change gets which is too far ahead of this node's clock."""
LATE_MS_MAX: Final = 60_000
"""How old rows of a comparison may be. Tombstones stay for longer after every region has them."""

_POSITION = struct.Struct("<Q")
_TAKEN: Final = b"taken region "


class RegionalGround(Protocol):
    """The partition that changes come to."""

    schema: Table | None

    def current(self, key: bytes) -> tuple[Old, int]:
        """The item after all writes in flight, and the position that this rests on (0: it is applied)."""
        ...

    def growth(self, key: bytes, old: Old, changed: Changed) -> int:
        """By how many bytes a change makes the item collection grow; 0 where there is none."""
        ...

    def put_in_flight(
        self,
        key: bytes,
        changed: Changed,
        growth: int,
        stamp: int,
        position: int,
        flags: int = 0,
        origin: int = 0,
    ) -> bytes:
        """The entry proposed at `position` changes the item. The bytes to be stored, a tombstone for a delete."""
        ...

    def is_marked(self, key: bytes) -> bool:
        """Whether a transaction is under way on the item."""
        ...

    def saw(self, stamp: int) -> None:
        """Stamp above this from now on."""
        ...

    def next_stamp(self, wall_ms: int) -> int:
        """A stamp above all others of the partition."""
        ...


@dataclass(slots=True)
class _Outcome:
    """What becomes of some rows: those that win, how many lose, and whether the next one has to wait."""

    rows: list[RegionalRow]
    lost: int = 0
    waits_at: int = 0


class Regional:
    """What was taken from each source, in the applied state and in flight, and the tombstones in flight."""

    def __init__(self, store: Store, ground: RegionalGround) -> None:
        self._store = store
        self._ground = ground
        self._taken: dict[Source, int] = {}
        self._in_flight: dict[Source, tuple[int, int]] = {}  # source → its position, and that of the entry in the log
        self._deleted: dict[bytes, tuple[int, bytes]] = {}  # row key → position of the entry, tombstone

    def taken(self, source: Source) -> int:
        """The applied position of a source."""
        position = self._taken.get(source)
        if position is None:
            position = self._taken[source] = load_taken(self._store, source)
        return position

    def written(self, key: bytes, stored: bytes, position: int, *, gone: bool) -> None:
        """The entry proposed at `position` writes or deletes an item."""
        if gone:
            self._deleted[key] = (position, stored)
        else:
            self._deleted.pop(key, None)

    def held(self, key: bytes, table: Table) -> Version | None:
        """What the last write of an item is known by, also if it was a delete; None: nothing is known. Raises
        CorruptItem."""
        old, _ = self._ground.current(key)
        stored = old.stored
        if stored is None:
            deleted = self._deleted.get(key)
            stored = self._store.row(layout.tombstone_key(key)) if deleted is None else deleted[1]
            if stored is None:
                return None
            codec.verify(key, stored)
        header = codec.header_of(stored)
        return Version(header.stamp, region_of(table, header.origin))

    def decide(self, write: storage_pb2.RegionalWrite, wall_ms: int, position: int) -> Propose | Answer:
        """What becomes of another region's changes. The answer's `taken` is the position up to which all were taken:
        what is above waits for a transaction. Raises CorruptItem."""
        table = self._ground.schema
        if table is None or not table.region:
            return Answer(failure(internal("The table is not part of a global table here"), 0), 0)
        source = Source(write.life, write.source)
        seen, after = (0, 0)
        if write.position:
            seen, after = self._in_flight.get(source, (self.taken(source), 0))
            if write.position <= seen:
                return Answer(storage_pb2.WriteReply(taken=write.position), after)
        if (error := _refusal(write, table, wall_ms)) is not None:
            return Answer(failure(error, 0), 0)
        outcome = self._take([row for row in write.rows if not write.position or row.position > seen], table, position)
        taken = write.position
        if outcome.waits_at:
            taken = max(seen, outcome.waits_at - 1)
        reply = storage_pb2.WriteReply(taken=taken, lost=outcome.lost, won=len(outcome.rows))
        if not outcome.rows and taken <= seen:
            return Answer(reply, after)
        if write.position:
            self._in_flight[source] = (taken, position)
        clock = self._ground.next_stamp(wall_ms)
        return Propose(encode_regional(source, taken, clock, outcome.rows), reply)

    def _take(self, rows: list[storage_pb2.RegionalRow], table: Table, position: int) -> _Outcome:
        """Put those rows in flight that win, in order, up to the first one that has to wait."""
        outcome = _Outcome([])
        for row in rows:
            if self._ground.is_marked(row.key):
                outcome.waits_at = row.position
                if row.position:
                    break
                continue  # the next comparison finds it again
            version = Version(row.stamp, row.region)
            held = self.held(row.key, table)
            if held is not None and version <= held:
                outcome.lost += version != held
                continue
            outcome.rows.append(self._write(row, table, position))
        return outcome

    def _write(self, row: storage_pb2.RegionalRow, table: Table, position: int) -> RegionalRow:
        number = number_of(table, row.region)
        assert number is not None, "rows of unknown regions are refused"
        old, _ = self._ground.current(row.key)
        gone = row.deleted
        changed = Changed(None if gone else row.body, 0 if gone else row.size, b"")
        growth = self._ground.growth(row.key, old, changed)
        stored = self._ground.put_in_flight(row.key, changed, growth, row.stamp, position, 0, number)
        self._ground.saw(row.stamp)
        return RegionalRow(row.key, stored, old.size)

    def applied_to(self, taken: Mapping[Source, int], position: int) -> None:
        """Entries up to `position` are applied; `taken` is what those with changes say of their sources."""
        self._taken.update(taken)
        if self._in_flight:
            self._in_flight = {source: each for source, each in self._in_flight.items() if each[1] > position}
        if self._deleted:
            self._deleted = {key: each for key, each in self._deleted.items() if each[0] > position}

    def abandon(self) -> None:
        """Leadership is lost."""
        self._in_flight.clear()
        self._deleted.clear()


def _refusal(write: storage_pb2.RegionalWrite, table: Table, wall_ms: int) -> ApiError | None:
    """Why nothing of a request is looked at."""
    if not write.position and wall_ms - write.read_ms > LATE_MS_MAX:
        return internal("The rows were read too long ago")
    for row in write.rows:
        if number_of(table, row.region) is None:
            return internal(f"Region {row.region} is not known here yet")
        if stamp_milliseconds(row.stamp) > wall_ms + AHEAD_MS_MAX:
            ahead = (stamp_milliseconds(row.stamp) - wall_ms) / 1000
            return ApiError(AHEAD, f"A change of region {row.region} is {ahead:.0f} s ahead of the clock here")
    return None


def load_taken(store: Store, source: Source) -> int:
    """The last position that the applied state has taken from a source; 0: nothing."""
    value = store.meta(_name(source))
    return 0 if value is None else int(_POSITION.unpack(value)[0])


def save_taken(batch: WriteBatch, source: Source, position: int) -> None:
    """Keep the last position taken from a source."""
    batch.meta[_name(source)] = _POSITION.pack(position)


def _name(source: Source) -> bytes:
    return _TAKEN + b"%d %d" % source
