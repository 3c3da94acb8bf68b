"""The log of a node: everything that its replicas must not forget, in one sequence, one fdatasync per batch.

Who may call what: `append_*`, `pending`, `take` and `written` belong to the event loop and never block. `write`,
`read`, `fill_reserve`, `recycle` and `open` block and belong in threads; of `write`, `fill_reserve` and `recycle` one
runs at a time, and `written` follows a `write` before the next one begins. `forget_before` belongs to the event loop,
between `written` and the next `write`.
"""

from __future__ import annotations

import errno
import threading
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cluster.disk import Disk
from replication.effects import HardState
from replication.messages import Entry
from storagenode.log import records
from storagenode.log.batch import Batch, Waiting
from storagenode.log.errors import LogBroken, LogCorrupt, LogFull, LogTrimmed, LogUnreadable
from storagenode.log.frames import (
    BLOCK,
    FRAME_HEADER_BYTES,
    align,
    body_is_whole,
    frame_header,
    parse_frame_header,
)
from storagenode.log.index import LocalReplica, is_consecutive, location, segment_and_offset
from storagenode.log.records import HEADER, HEADER_BYTES, frame_entries
from storagenode.log.recovery import Scan, Torn, scan
from storagenode.log.segments import Segments
from storagenode.log.summary import encode_summary

SEGMENT_BYTES: Final = 64 << 20
RESERVE_SEGMENTS: Final = 1
BATCH_BYTES_MAX: Final = 4 << 20
"""A larger single append goes alone. Bounds what a reader of one entry must check."""

FULL_ERRORS: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


@dataclass(frozen=True, slots=True)
class RecoveredReplica:
    """One partition replica as the log knew it."""

    partition: int
    replica: int
    memberships: tuple[tuple[int, bytes], ...]
    """(position after which it is in force, membership), rising; the first one is what the log stands on."""
    hard_state: HardState
    snapshot_epoch: int
    snapshot_position: int
    first_position: int
    """The oldest position that can be read; above `last_position` if there is none."""
    last_position: int
    epochs: tuple[tuple[int, int], ...]
    """(epoch, its first position in the log), both rising; the entries of an epoch go on to the next one's first."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """What the log held when it was opened."""

    replicas: dict[int, RecoveredReplica]
    """By partition."""
    incarnation: int
    """This start's number, already durable: one more than at the last start."""
    torn: Torn | None
    """The unfinished flush that a power cut left, which was cut off."""
    bytes_read: int


@dataclass(slots=True)
class _Opened:
    """What the records handed over so far, durable or not, say of a local replica."""

    replica: int
    last: int
    snapshot: int = 0


class NodeLog:
    """One node's log. Made by `open`."""

    def __init__(self, segments: Segments, segment_bytes: int, found: Scan) -> None:
        self._segments = segments
        self._segment_bytes = segment_bytes
        self._index = found.index
        self._frames = found.frames
        self._segment, self._end = found.segment, found.end
        self._capacity = segments.file(found.segment).size() if found.segment else 0
        self._next_batch = found.next_batch
        self._waiting = Waiting()
        self._batch_bytes_max = min(BATCH_BYTES_MAX, segment_bytes // 4)
        self._opened = {
            partition: _Opened(replica.replica, replica.positions.last, replica.snapshot_position)
            for partition, replica in found.index.replicas.items()
        }
        self._broken: OSError | None = None
        self._forgetting = threading.Lock()
        self._oldest = min(found.frames, default=1)
        self._appended: dict[int, int] = {}

    @classmethod
    def open(
        cls,
        disk: Disk,
        directory: str,
        *,
        machine_crashed: bool,
        segment_bytes: int = SEGMENT_BYTES,
        reserve_segments: int = RESERVE_SEGMENTS,
    ) -> tuple[NodeLog, Recovered]:
        """Read the log back, make its tail durable and count this start.

        `machine_crashed`: the machine went down without a clean stop (`storagenode.storage.marks`). Raises LogCorrupt,
        LogFull, LogBroken, and OSError if files cannot be read.
        """
        if segment_bytes % BLOCK:
            raise ValueError(f"a segment is a multiple of {BLOCK} bytes")
        segments = Segments(disk, directory, segment_bytes, reserve_segments)
        try:
            found = scan(segments, machine_crashed=machine_crashed)
            log = cls(segments, segment_bytes, found)
            log._rewrite_tail(found)
            log._count_start()
            if segments.low:
                log.fill_reserve()
        except BaseException:
            segments.close()
            raise
        replicas = {partition: _recovered(partition, replica) for partition, replica in found.index.replicas.items()}
        return log, Recovered(replicas, log._index.incarnation, found.torn, found.bytes_read)

    # Appending: cheap, on the event loop.

    def open_partition(self, partition: int, replica: int) -> None:
        """This node now holds `replica` of `partition`; whatever the log held of another replica of it is void."""
        if partition not in self._opened or self._opened[partition].replica != replica:
            self._opened[partition] = _Opened(replica, 0)
        self._waiting.add_record(records.PARTITION_OPENED, partition, replica, 0)

    def drop_partition(self, partition: int, replica: int) -> None:
        """This node no longer holds `replica` of `partition`. Raises KeyError if it holds another one or none."""
        if self._opened[partition].replica != replica:
            raise KeyError(partition)
        del self._opened[partition]
        self._waiting.add_record(records.PARTITION_DROPPED, partition, replica, 0)

    def append_entries(self, partition: int, entries: Sequence[Entry], framed: bytes | None = None) -> None:
        """Entries with consecutive positions; positions already in the log are replaced, with all after them.

        `framed`: `frame_entries(partition, entries)`, if the caller has it (a follower received it). Raises KeyError
        for a partition that was not opened, ValueError for positions that leave a hole or that a snapshot covers.
        """
        opened = self._opened[partition]
        if not entries:
            return
        if entries[0].position <= opened.snapshot:
            raise ValueError(f"a snapshot covers partition {partition} up to {opened.snapshot}: that never changes")
        if entries[0].position > opened.last + 1 or (len(entries) > 1 and not is_consecutive(entries)):
            raise ValueError(f"entries of partition {partition} leave a hole after position {opened.last}")
        data = frame_entries(partition, entries) if framed is None else framed
        if len(data) > self._batch_bytes_max and len(entries) > 1:
            half = len(entries) // 2
            self.append_entries(partition, entries[:half])
            self.append_entries(partition, entries[half:])
            return
        opened.last = entries[-1].position
        self._waiting.add(data, (partition, entries))

    def append_hard_state(self, partition: int, state: HardState) -> None:
        """The latest epoch and vote. Raises KeyError for a partition that was not opened."""
        self._opened[partition]
        self._waiting.add_record(records.HARD_STATE, partition, state.epoch, state.vote)

    def append_membership(self, partition: int, position: int, membership: bytes) -> None:
        """A membership that no entry holds, opaque here, in force after `position`.

        Raises KeyError for a partition that was not opened.
        """
        replica = self._opened[partition].replica
        self._waiting.add_record(records.MEMBERSHIP_AT, partition, replica, position, membership)

    def append_snapshot(self, partition: int, epoch: int, position: int) -> None:
        """A durable snapshot covers the log up to `position`; if that is beyond the last entry, it restarts there."""
        opened = self._opened[partition]
        opened.last = max(opened.last, position)
        opened.snapshot = max(opened.snapshot, position)
        self._waiting.add_record(records.SNAPSHOT, partition, epoch, position)

    def restart_partition(self, partition: int, epoch: int, position: int) -> None:
        """A durable snapshot from another node replaces the whole log up to and after `position`."""
        opened = self._opened[partition]
        opened.last = opened.snapshot = position
        self._waiting.add_record(records.RESTARTED, partition, epoch, position)

    def pending(self) -> bool:
        """Whether anything waits for a flush."""
        return bool(self._waiting)

    @property
    def pending_bytes(self) -> int:
        """How much waits for a flush."""
        return self._waiting.size

    # Flushing.

    def take(self) -> Batch:
        """What the next flush writes: all that waits, up to 4 MiB. Call only while something is pending."""
        return self._waiting.take(self._batch_bytes_max)

    def write(self, batch: Batch) -> None:
        """Write a batch and make it durable; blocks.

        Raises LogFull when there is no room: the same batch may be written again later, and must be before any other.
        Raises LogBroken when a write or sync failed, and ever after.
        """
        if self._broken is not None:
            raise LogBroken("the log failed before") from self._broken
        body = b"".join(batch.chunks)
        try:
            if self._end + FRAME_HEADER_BYTES + len(body) > self._capacity:
                self._roll(len(body))
            batch.place = self._put_frame(body)
        except OSError as error:
            if self._broken is None and error.errno in FULL_ERRORS:
                raise LogFull(f"no room for {len(body)} bytes") from error
            self._broken = error
            raise LogBroken(f"the log cannot be written: {error}") from error

    def written(self, batch: Batch) -> None:
        """Take note, on the event loop, that a batch is durable: its entries can be read from now on."""
        segment, offset = batch.place
        self._frames.setdefault(segment, array("I")).append(offset // BLOCK)
        place = location(segment, offset + FRAME_HEADER_BYTES)
        for chunk, put in zip(batch.chunks, batch.puts, strict=True):
            if len(put) == 2:
                partition, entries = put
                self._index.put_entries(partition, entries, place)
                self._appended[partition] = self._appended.get(partition, 0) + len(chunk)
            else:
                self._index.put_record(*put)
            place += len(chunk)

    # Reading.

    def first_position(self, partition: int) -> int:
        """The oldest position that can be read. Raises KeyError for a partition that is not here."""
        return self._index.replicas[partition].positions.first

    def last_position(self, partition: int) -> int:
        """The last durable position; below the first one if there is none. Raises KeyError likewise."""
        return self._index.replicas[partition].positions.last

    def read(self, partition: int, first_position: int, bytes_max: int) -> tuple[Entry, ...]:
        """Durable entries from a position on, at least one if it is there, else up to `bytes_max` bytes; blocks.

        Raises LogTrimmed below the first position kept, LogCorrupt when a checksum is wrong, LogUnreadable when the
        disk fails, KeyError for a partition that is not here.
        """
        positions = self._index.replicas[partition].positions
        with self._forgetting:
            first, locations = positions.first, positions.locations
        if first_position < first:
            raise LogTrimmed(f"partition {partition} begins at {first}, not {first_position}")
        entries: list[Entry] = []
        room, at = bytes_max, first_position - first
        while at < len(locations):
            segment, offset = segment_and_offset(locations[at])
            start, body = self._read_frame(segment, offset)
            while True:
                entry = _entry_at(body, offset - start, partition, first_position + len(entries))
                if entry is None or (entries and len(entry.payload) + HEADER_BYTES > room):
                    return tuple(entries)
                entries.append(entry)
                room -= len(entry.payload) + HEADER_BYTES
                at += 1
                if at >= len(locations) or room <= 0:
                    return tuple(entries)
                next_segment, offset = segment_and_offset(locations[at])
                if next_segment != segment or not start <= offset < start + len(body):
                    break
        return tuple(entries)

    def check(self, segment: int, number: int, bytes_max: int) -> tuple[int, int]:
        """Look at the batches of a full segment from the given one on, at about so many bytes; blocks.

        The number of the next batch, 0 after the last one, and the bytes looked at. Raises as `read`.
        """
        blocks = self._frames.get(segment, array("I"))
        size = 0
        while number < len(blocks) and size < bytes_max:
            _, body = self._read_frame(segment, blocks[number] * BLOCK)
            size += len(body)
            number += 1
        return (number if number < len(blocks) else 0), size

    # Trimming.

    @property
    def oldest_segment(self) -> int:
        """The first segment that is kept."""
        return self._oldest

    @property
    def current_segment(self) -> int:
        """The segment that is written to. It is never trimmed."""
        return self._segment

    def appended_bytes(self, partition: int) -> int:
        """What the partition's entries added to the log since it was opened, as written."""
        return self._appended.get(partition, 0)

    def snapshot_position(self, partition: int) -> int:
        """What the latest durable snapshot of a partition covers. Raises KeyError for a partition that is not here."""
        return self._index.replicas[partition].snapshot_position

    def segment_needed(self, partition: int, position: int) -> int | None:
        """The oldest segment with an entry at or after `position`; None if there is none. Raises KeyError likewise."""
        positions = self._index.replicas[partition].positions
        at = max(position - positions.first, 0)
        return segment_and_offset(positions.locations[at])[0] if at < len(positions.locations) else None

    def partitions(self) -> list[int]:
        """Every partition that the log knows here."""
        return list(self._index.replicas)

    def forget_before(self, segment: int) -> dict[int, int]:
        """Forget what lies in older segments; the first position kept of each partition that lost some.

        All that must survive is in the segments kept, since each begins with the state of every partition. The caller
        answers for the entries: snapshots cover them. The files go with `recycle`.
        """
        segment = min(segment, self._segment)
        trimmed: dict[int, int] = {}
        with self._forgetting:
            self._oldest = max(self._oldest, segment)
            for partition, replica in self._index.replicas.items():
                if replica.positions.forget_before(location(segment, 0)):
                    trimmed[partition] = replica.positions.first
            for number in [number for number in self._frames if number < segment]:
                del self._frames[number]
        return trimmed

    def recycle(self) -> None:
        """Make the files of forgotten segments those of coming ones, the oldest first; blocks. Raises LogBroken."""
        try:
            for number in [number for number in self._segments.numbers if number < self._oldest]:
                self._segments.recycle(number)
        except OSError as error:
            self._broken = error
            raise LogBroken(f"the log's folder cannot be written: {error}") from error

    # Room and life.

    @property
    def low_on_space(self) -> bool:
        """Whether the reserve is not whole: growing writes should be refused until `fill_reserve` succeeded."""
        return self._segments.low

    @property
    def size(self) -> int:
        """Bytes that the log takes on the disk, spares included."""
        return self._segments.size

    def fill_reserve(self) -> None:
        """Try to allocate what the reserve lacks; blocks. Look at `low_on_space` for the outcome."""
        try:
            self._segments.fill_reserve()
        except OSError as error:
            if error.errno not in FULL_ERRORS:
                self._broken = error
                raise LogBroken(f"the log's folder cannot be written: {error}") from error

    def close(self) -> None:
        """Close the files. What was not written is lost."""
        self._segments.close()

    # Inside.

    def _put_frame(self, body: bytes) -> tuple[int, int]:
        """Body, header, sync; then the frame counts. An error before the sync leaves nothing that counts."""
        file = self._segments.file(self._segment)
        offset = self._end
        file.write_at(offset + FRAME_HEADER_BYTES, body)
        file.write_at(offset, frame_header(self._segment, self._next_batch, body))
        try:
            file.sync()
        except OSError as error:
            self._broken = error
            raise
        self._end = align(offset + FRAME_HEADER_BYTES + len(body))
        self._next_batch += 1
        return self._segment, offset

    def _roll(self, length: int) -> None:
        """Go on in a new segment, which begins with the state of every partition, for at least `length` bytes more."""
        checkpoint = self._index.checkpoint()
        number = self._segment + 1
        file = self._segments.create(
            number, align(align(FRAME_HEADER_BYTES + len(checkpoint)) + FRAME_HEADER_BYTES + length)
        )
        before = (self._segment, self._end, self._capacity)
        self._segment, self._end, self._capacity = number, 0, file.size()
        try:
            segment, offset = self._put_frame(checkpoint)
        except OSError:
            self._segment, self._end, self._capacity = before
            raise
        self._frames[segment] = array("I", [offset // BLOCK])
        if number - 1 in self._frames:
            summary = encode_summary(self._index, number - 1, self._frames[number - 1], self._next_batch - 1)
            self._segments.put_summary(number - 1, summary)
        self.fill_reserve()

    def _rewrite_tail(self, found: Scan) -> None:
        """Write the last frame again and sync it: after a killed process nobody knows whether it reached the disk.

        Syncing alone would not do: after a failed fsync the kernel holds the pages for clean.
        """
        if found.last is None:
            return
        file = self._segments.file(found.segment)
        data = file.read_at(found.last_offset, found.last.size)
        try:
            file.write_at(found.last_offset, data)
            file.sync()
            self._segments.sync_names()
        except OSError as error:
            raise LogBroken(f"the log's tail cannot be made durable: {error}") from error

    def _count_start(self) -> None:
        self._waiting.add_record(records.INCARNATION, 0, self._index.incarnation + 1, 0)
        batch = self.take()
        self.write(batch)
        self.written(batch)

    def _read_frame(self, segment: int, offset: int) -> tuple[int, bytes]:
        """Where the body begins of the frame that holds a record at `offset`, and the body, checked."""
        try:
            return self._read_body(segment, offset)
        except (LogCorrupt, OSError, KeyError) as error:
            if segment < self._oldest:  # it was trimmed while it was being read
                raise LogTrimmed(f"segment {segment:016x} is gone") from None
            if isinstance(error, OSError):
                raise LogUnreadable(segment, offset, f"the disk fails: {error}") from error
            raise

    def _read_body(self, segment: int, offset: int) -> tuple[int, bytes]:
        blocks = self._frames[segment]
        frame_offset = blocks[bisect_right(blocks, offset // BLOCK) - 1] * BLOCK
        file = self._segments.file(segment)
        header = parse_frame_header(file.read_at(frame_offset, FRAME_HEADER_BYTES), 0, segment)
        if header is None:
            raise LogCorrupt(segment, frame_offset, "the header of a batch is damaged")
        body = file.read_at(frame_offset + FRAME_HEADER_BYTES, header.length)
        if not body_is_whole(body, 0, header):
            raise LogCorrupt(segment, frame_offset, f"batch {header.batch} is damaged")
        return frame_offset + FRAME_HEADER_BYTES, body


def _entry_at(body: bytes, offset: int, partition: int, position: int) -> Entry | None:
    """The entry at an offset of a checked body, or None if another one took its place while it was being looked for."""
    length, record_type, kind, _, owner, epoch, found = HEADER.unpack_from(body, offset)
    if record_type != records.ENTRY or owner != partition or found != position:
        return None
    start = offset + HEADER_BYTES
    return Entry(epoch, position, body[start : start + length], kind)


def _recovered(partition: int, replica: LocalReplica) -> RecoveredReplica:
    positions = replica.positions
    return RecoveredReplica(
        partition=partition,
        replica=replica.replica,
        memberships=tuple(positions.memberships),
        hard_state=replica.hard_state,
        snapshot_epoch=replica.snapshot_epoch,
        snapshot_position=replica.snapshot_position,
        first_position=positions.first,
        last_position=positions.last,
        epochs=tuple(positions.epochs),
    )
