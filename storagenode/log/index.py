"""What the log holds, in memory: per local partition its latest state and where each of its entries lies.

Recovery and normal writing feed the same `Index` with the same records, so that a restart ends where the writing stood.
A location is one 64-bit number: segment << 32 | byte offset of the record in the segment.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from replication.effects import HardState
from replication.messages import MEMBERSHIP, Entry
from storagenode.log import records
from storagenode.log.records import HEADER_BYTES, frame_record

_OFFSET_BITS: Final = 32
_OFFSET_MASK: Final = (1 << _OFFSET_BITS) - 1


def location(segment: int, offset: int) -> int:
    """Where a record begins, as one number."""
    return segment << _OFFSET_BITS | offset


def segment_and_offset(place: int) -> tuple[int, int]:
    """The two halves of a location."""
    return place >> _OFFSET_BITS, place & _OFFSET_MASK


class UnexpectedRecord(ValueError):  # noqa: N818
    """A record that cannot follow what the log holds: a hole in positions, or an unknown partition."""


class Positions:
    """The entries of one partition: consecutive positions, eight bytes each, and the spans of their epochs."""

    __slots__ = ("_epoch", "epochs", "first", "locations", "memberships", "next")

    def __init__(self) -> None:
        self.memberships: list[tuple[int, bytes]] = []
        """(position after which it is in force, membership), rising; the first may lie before `first`."""
        self.restart(1)

    def restart(self, first: int) -> None:
        """Forget all entries; the next one will be `first`."""
        self.first = first
        self.next = first
        self.locations = array("Q")
        self.epochs: list[tuple[int, int]] = []
        """(epoch, its first position here), both rising."""
        self._epoch = -1
        self._void_memberships(first)

    @property
    def last(self) -> int:
        """The last position, or the one before `first` if there is none."""
        return self.next - 1

    def put(self, position: int, epoch: int, place: int) -> None:
        """Add an entry; one at a position already held replaces that and all after it."""
        if position != self.next or epoch != self._epoch:
            self._turn(position, epoch)
        self.locations.append(place)
        self.next = position + 1

    def put_membership(self, position: int, membership: bytes) -> None:
        """A membership is in force after a position; what was at that position or after is void."""
        self._void_memberships(position)
        self.memberships.append((position, membership))

    def _void_memberships(self, position: int) -> None:
        while self.memberships and self.memberships[-1][0] >= position:
            self.memberships.pop()

    def forget_before(self, place: int) -> bool:
        """Drop the entries that lie before a location; whether there were any. Locations rise with positions.

        The array is a new one: whoever reads by the old one goes on.
        """
        count = bisect_left(self.locations, place)
        if count == 0:
            return False
        self.first += count
        self.epochs = self.epochs_from(self.first)
        self.locations = self.locations[count:]
        if not self.locations:
            self._epoch = -1
        while len(self.memberships) > 1 and self.memberships[1][0] < self.first:
            del self.memberships[0]
        return True

    def epochs_from(self, position: int) -> list[tuple[int, int]]:
        """The spans of the epochs of `position` and all after it, the first one cut to begin there."""
        if position >= self.next:
            return []
        at = bisect_right(self.epochs, position, key=lambda span: span[1]) - 1
        return [(self.epochs[at][0], position), *self.epochs[at + 1 :]]

    def replace(self, position: int, locations: array[int], epochs: list[tuple[int, int]]) -> None:
        """Put entries from `position` on, which is at most the next one, in place of all that are there."""
        if position < self.next:
            self._cut(position)
        for span in epochs:
            if not self.epochs or self.epochs[-1][0] != span[0]:
                self.epochs.append(span)
        self.locations.extend(locations)
        self.next = position + len(locations)
        self._epoch = self.epochs[-1][0] if self.epochs else -1

    def _turn(self, position: int, epoch: int) -> None:
        """Make room at `position` for an entry of `epoch`."""
        if position != self.next:
            self._cut(position)
        else:  # what it replaces may have been trimmed, but not the membership that came with it
            self._void_memberships(position)
        if not self.epochs or self.epochs[-1][0] != epoch:
            self.epochs.append((epoch, position))
        self._epoch = epoch

    def _cut(self, position: int) -> None:
        """Make `position` the next one."""
        if not self.locations or position < self.first:
            # The first record of a partition whose older segments were trimmed, or a tail that replaces all we have.
            self.restart(position)
        elif position > self.next:
            raise UnexpectedRecord(f"position {position} follows {self.last}")
        else:
            self._void_memberships(position)
            del self.locations[position - self.first :]
            while self.epochs and self.epochs[-1][1] >= position:
                self.epochs.pop()


@dataclass(slots=True)
class LocalReplica:
    """The latest state of one partition replica that this log holds."""

    replica: int
    hard_state: HardState = field(default_factory=lambda: HardState(0, 0))
    snapshot_epoch: int = 0
    snapshot_position: int = 0
    positions: Positions = field(default_factory=Positions)

    def checkpoint(self, partition: int) -> bytes:
        """The records that a new segment begins with, so that older segments can go."""
        return b"".join(
            (
                frame_record(records.PARTITION_OPENED, partition, self.replica, 0),
                frame_record(records.HARD_STATE, partition, self.hard_state.epoch, self.hard_state.vote),
                frame_record(records.SNAPSHOT, partition, self.snapshot_epoch, self.snapshot_position),
                *(
                    frame_record(records.MEMBERSHIP_AT, partition, self.replica, position, membership)
                    for position, membership in self.positions.memberships
                ),
            )
        )


class Index:
    """Everything that the log says, without the entries' bytes."""

    def __init__(self) -> None:
        self.replicas: dict[int, LocalReplica] = {}
        self.incarnation = 0

    def checkpoint(self) -> bytes:
        """The state of the node and of every local partition as records."""
        parts = [frame_record(records.INCARNATION, 0, self.incarnation, 0)]
        parts += [replica.checkpoint(partition) for partition, replica in sorted(self.replicas.items())]
        return b"".join(parts)

    def put_entries(self, partition: int, entries: Sequence[Entry], place: int) -> None:
        """Entries whose records lie one after another from location `place` on."""
        positions = self._replica(partition).positions
        put = positions.put
        for entry in entries:
            put(entry.position, entry.epoch, place)
            place += HEADER_BYTES + len(entry.payload)
            if entry.kind == MEMBERSHIP:
                positions.put_membership(entry.position, entry.payload)

    def put_record(self, record_type: int, partition: int, a: int, b: int, payload: bytes) -> None:
        """A record of any type but ENTRY. Raises UnexpectedRecord if it cannot follow what was put before."""
        if record_type == records.INCARNATION:
            self.incarnation = a
        elif record_type == records.PARTITION_OPENED:
            if partition not in self.replicas or self.replicas[partition].replica != a:
                self.replicas[partition] = LocalReplica(a)
        elif record_type == records.PARTITION_DROPPED:
            if self._replica(partition).replica == a:
                del self.replicas[partition]
        else:
            self._put_state(record_type, self._replica(partition), a, b, payload)

    def _put_state(self, record_type: int, replica: LocalReplica, a: int, b: int, payload: bytes) -> None:
        if record_type == records.HARD_STATE:
            replica.hard_state = HardState(a, b)
        elif record_type in (records.MEMBERSHIP, records.MEMBERSHIP_AT):
            if a != replica.replica:
                raise UnexpectedRecord(f"membership of replica {a} in the log of replica {replica.replica}")
            replica.positions.put_membership(b if record_type == records.MEMBERSHIP_AT else 0, payload)
        elif record_type == records.SNAPSHOT:
            replica.snapshot_epoch, replica.snapshot_position = a, b
            if b > replica.positions.last:
                replica.positions.restart(b + 1)
        elif record_type == records.RESTARTED:
            replica.snapshot_epoch, replica.snapshot_position = a, b
            replica.positions.restart(b + 1)
        else:
            raise UnexpectedRecord(f"record type {record_type} is not known to this version")

    def replay(self, body: bytes, start: int, end: int, segment: int) -> None:
        """Take in the records between two offsets of a segment's bytes.

        Raises UnexpectedRecord, or struct.error if a record is cut short; nothing after that record is taken in.
        """
        unpack_from, entry, header_bytes = records.HEADER.unpack_from, records.ENTRY, HEADER_BYTES
        base = location(segment, 0)
        partition, put = -1, None
        while start < end:
            length, record_type, kind, _, owner, a, b = unpack_from(body, start)
            following = start + header_bytes + length
            if following > end:
                raise UnexpectedRecord("a record reaches beyond its batch")
            if record_type == entry:
                if owner != partition or put is None:
                    partition, put = owner, self._replica(owner).positions.put
                put(b, a, base + start)
                if kind == MEMBERSHIP:
                    payload = body[start + header_bytes : following]
                    self._replica(owner).positions.put_membership(b, payload)
            else:
                self.put_record(record_type, owner, a, b, body[start + header_bytes : following])
                put = None
            start = following

    def _replica(self, partition: int) -> LocalReplica:
        replica = self.replicas.get(partition)
        if replica is None:
            raise UnexpectedRecord(f"partition {partition} was never opened here")
        return replica


def is_consecutive(entries: Sequence[Entry]) -> bool:
    """Whether each entry's position follows the one before."""
    return all(after.position == before.position + 1 for before, after in pairwise(entries))
