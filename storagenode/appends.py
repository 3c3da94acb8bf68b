"""Appends on the wire. Their entries are framed as in the node's log, so that a follower logs the very bytes it
received."""

from __future__ import annotations

from cluster.wire import replication_pb2
from replication.membership import UNKNOWN, Membership
from replication.messages import Append
from storagenode.log.records import frame_entries, parse_entries


def append_to_wire(partition: int, append: Append) -> replication_pb2.Append:
    """Entries for a follower."""
    return replication_pb2.Append(
        partition=partition,
        from_replica=append.sender,
        to_replica=append.to,
        epoch=append.epoch,
        previous_position=append.previous_position,
        previous_epoch=append.previous_epoch,
        commit=append.commit,
        entries=frame_entries(partition, append.entries),
        lowest=append.lowest,
        membership=append.membership.encode() if append.lowest else b"",
        held=append.held,
    )


def append_from_wire(append: replication_pb2.Append) -> Append:
    """Entries from the leader. Raises ValueError when they are not whole entries of the partition."""
    return Append(
        append.from_replica,
        append.to_replica,
        append.epoch,
        append.previous_position,
        append.previous_epoch,
        parse_entries(append.entries, append.partition),
        append.commit,
        append.lowest,
        Membership.decode(append.membership) if append.membership else UNKNOWN,
        append.held,
    )
