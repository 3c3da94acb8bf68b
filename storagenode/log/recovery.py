"""Reading the log back at the start of a node.

Three rules decide what a frame that is not whole means.

1. A frame is begun only when the one before it is durable. So if anything valid comes after it, it had been durable,
   and that it is not whole is corruption. The next segment's first batch number tells how far a segment reached.
2. A header without its body cannot come from a killed process, which writes bodies first (`frames.py`), only from a
   power cut in mid-flush. It is a torn tail if it is the last one and the machine crashed, else corruption.
3. No header at all is the end of the log: nothing was begun there, or it was never finished and so never acknowledged.

After a crash of the machine everything is read and checked. Else full segments are taken in by their summaries
(`summary.py`), and damage in them is found when they are read.
"""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass, field

from storagenode.log.errors import LogCorrupt
from storagenode.log.frames import (
    BLOCK,
    FRAME_HEADER_BYTES,
    MAGIC,
    FrameHeader,
    align,
    body_is_whole,
    parse_frame_header,
)
from storagenode.log.index import Index, UnexpectedRecord
from storagenode.log.segments import Segments
from storagenode.log.summary import take_in_summary


@dataclass(frozen=True, slots=True)
class Torn:
    """An unfinished flush that a power cut left, and that was cut off."""

    segment: int
    offset: int


@dataclass(slots=True)
class Scan:
    """What reading all segments found."""

    index: Index = field(default_factory=Index)
    frames: dict[int, array[int]] = field(default_factory=dict)
    """Per segment the block numbers at which its frames begin."""
    segment: int = 0
    """The segment to go on in; 0: the log is empty."""
    end: int = 0
    """The offset in it at which the next frame goes."""
    next_batch: int = 1
    last: FrameHeader | None = None
    last_offset: int = 0
    torn: Torn | None = None
    bytes_read: int = 0


def scan(segments: Segments, *, machine_crashed: bool) -> Scan:
    """Read every segment. Raises LogCorrupt.

    A newest segment without a whole frame is made a spare again: its life had not begun. A torn frame is erased.
    """
    found = Scan()
    numbers = list(segments.numbers)
    for number in numbers:
        if found.segment and number != found.segment + 1:
            raise LogCorrupt(found.segment + 1, 0, "the file is missing")
        if number != numbers[-1] and not machine_crashed and _scan_summary(segments, number, found):
            continue
        data = _read(segments, number)
        found.bytes_read += len(data)
        offset = _scan_segment(data, number, found)
        if offset == 0 and number != numbers[-1]:
            raise LogCorrupt(number, 0, f"batch {found.next_batch} is not whole")
        if _is_torn(data, number, offset, found, may_be_torn=machine_crashed and number == numbers[-1]):
            found.torn = Torn(number, offset)
            segments.erase(number, offset, BLOCK)
        if offset == 0:
            segments.recycle(number)
        else:
            found.segment, found.end = number, offset
    return found


def _scan_summary(segments: Segments, number: int, found: Scan) -> bool:
    """Take in a full segment by its summary. Its frames are checked when they are read."""
    header = parse_frame_header(segments.file(number).read_at(0, FRAME_HEADER_BYTES), 0, number)
    if header is None or (found.segment and header.batch != found.next_batch):
        return False
    summary = take_in_summary(segments.summary(number) or b"", number, found.index)
    if summary is None:
        return False
    found.frames[number], found.next_batch = summary
    found.segment, found.end, found.last = number, segments.file(number).size(), None
    return True


def _read(segments: Segments, number: int) -> bytes:
    file = segments.file(number)
    return file.read_at(0, file.size())


def _scan_segment(data: bytes, number: int, found: Scan) -> int:
    """Take in the whole frames from the start of a segment; returns the offset after the last one."""
    offset = 0
    blocks = array("I")
    while (header := parse_frame_header(data, offset, number)) is not None:
        if not found.segment and not blocks:
            found.next_batch = header.batch
        if header.batch != found.next_batch or not body_is_whole(data, offset + FRAME_HEADER_BYTES, header):
            break
        start = offset + FRAME_HEADER_BYTES
        try:
            found.index.replay(data, start, start + header.length, number)
        except (UnexpectedRecord, struct.error) as error:
            raise LogCorrupt(number, offset, str(error)) from error
        blocks.append(offset // BLOCK)
        found.last, found.last_offset = header, offset
        found.next_batch += 1
        offset = align(start + header.length)
    if blocks:
        found.frames[number] = blocks
    return offset


def _is_torn(data: bytes, number: int, offset: int, found: Scan, *, may_be_torn: bool) -> bool:
    """Whether an unfinished frame follows a segment's last whole one. Raises LogCorrupt if it once was finished."""
    if _later_frame(data, number, offset, found.next_batch):
        raise LogCorrupt(number, offset, f"batch {found.next_batch} is not whole, but later ones are there")
    header = parse_frame_header(data, offset, number)
    if header is None:
        return False
    if header.batch != found.next_batch:
        raise LogCorrupt(number, offset, f"batch {header.batch} stands where {found.next_batch} belongs")
    if not may_be_torn:
        raise LogCorrupt(number, offset, f"batch {header.batch} is not whole, and no power cut explains it")
    return True


def _later_frame(data: bytes, number: int, offset: int, batch: int) -> bool:
    """Whether a frame of this segment with at least this batch number begins after `offset`."""
    at = data.find(MAGIC, offset + 1)
    while at >= 0:
        if at % BLOCK == 0:
            header = parse_frame_header(data, at, number)
            if header is not None and header.batch >= batch:
                return True
        at = data.find(MAGIC, at + 1)
    return False
