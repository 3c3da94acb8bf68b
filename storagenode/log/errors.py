"""What can go wrong with a node's log, and what the node does about it."""

from __future__ import annotations


class LogError(Exception):
    """Any failure of the node's log."""


class LogFull(LogError):  # noqa: N818
    """The file system is full. Nothing of the batch counts; the log stays usable; the batch may be written again."""


class LogBroken(LogError):  # noqa: N818
    """A write or fsync failed: what is on the disk is not known. The node stops and never acknowledges after this."""


class LogTrimmed(LogError):  # noqa: N818
    """The position asked for lies before the first one kept: only a snapshot helps."""


class LogCorrupt(LogError):  # noqa: N818
    """What had been durable cannot be read back. The replicas that it held must be rebuilt from their peers."""

    REMEDY = (
        "move the node's data folder away and start it with an empty one: it joins as a new node, and its replicas are "
        "made again from the other ones"
    )

    def __init__(self, segment: int, offset: int, reason: str) -> None:
        super().__init__(f"log segment {segment:016x} is corrupt at byte {offset} ({reason}): {self.REMEDY}")
        self.segment = segment
        self.offset = offset
        self.reason = reason


class LogUnreadable(LogCorrupt):
    """The disk does not give back what had been durable: as good as damaged."""
