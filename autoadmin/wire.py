"""Between the replication core's messages and what auto-admin's members send (proto/members.proto), and between changes
of the catalog and the payload of an entry."""

from __future__ import annotations

from dataclasses import asdict

import msgspec

from autoadmin.catalog import Change, Counters
from cluster import convert
from cluster.wire import members_pb2, replication_pb2
from replication.heartbeats import Beat
from replication.membership import UNKNOWN, Membership
from replication.messages import Append, AppendReply, Entry, HandOver, Message, VoteReply, VoteRequest

PARTITION = 1
"""All that the members replicate is one log; the core's beats want a number for it."""


def change_to_wire(change: Change) -> members_pb2.Change:
    """One step of the catalog."""
    counters = msgspec.json.encode(asdict(change.counters))
    return members_pb2.Change(update=convert.update_to_wire(change.update), counters=counters)


def change_from_wire(message: members_pb2.Change) -> Change:
    """One step of the catalog."""
    return Change(convert.update_from_wire(message.update), msgspec.json.decode(message.counters, type=Counters))


def encode_change(change: Change) -> bytes:
    """The payload of an entry."""
    return change_to_wire(change).SerializeToString()


def decode_change(payload: bytes) -> Change:
    """The inverse of `encode_change`."""
    return change_from_wire(members_pb2.Change.FromString(payload))


def put_message(frame: members_pb2.Frame, message: Message) -> None:
    """What a member asks of another: entries, a vote, or to stand."""
    match message:
        case Append():
            frame.append.CopyFrom(_append_to_wire(message))
        case VoteRequest():
            frame.vote_request.CopyFrom(convert.vote_request_to_wire(PARTITION, message))
        case HandOver():
            frame.hand_over.CopyFrom(convert.hand_over_to_wire(PARTITION, message))
        case _:
            raise AssertionError(f"{type(message).__name__} answers a call")


def message_of(frame: members_pb2.Frame) -> Message | None:
    """What a frame asks, if it is for the core."""
    match frame.WhichOneof("content"):
        case "append":
            return _append_from_wire(frame)
        case "vote_request":
            return convert.vote_request_from_wire(frame.vote_request)
        case "hand_over":
            return convert.hand_over_from_wire(frame.hand_over)
    return None


def put_answer(reply: members_pb2.Reply, message: Message) -> None:
    """A voter's or a follower's answer."""
    if isinstance(message, VoteReply):
        reply.vote.CopyFrom(convert.vote_reply_to_wire(PARTITION, message))
    elif isinstance(message, AppendReply):
        reply.appended.CopyFrom(convert.append_reply_to_wire(PARTITION, message))


def answer_of(reply: members_pb2.Reply) -> Message | None:
    """What a reply answers, if it is for the core."""
    match reply.WhichOneof("content"):
        case "appended":
            return convert.append_reply_from_wire(reply.appended)
        case "vote":
            return convert.vote_reply_from_wire(reply.vote)
    return None


def beat_to_wire(beat: Beat) -> replication_pb2.Beat:
    """A heartbeat."""
    return replication_pb2.Beat(sequence=beat.sequence, enrolled=beat.enrolled, commits=beat.commits)


def beat_from_wire(message: replication_pb2.Beat) -> Beat:
    """A heartbeat."""
    return Beat(message.sequence, message.enrolled, message.commits)


def _append_to_wire(message: Append) -> members_pb2.Append:
    return members_pb2.Append(
        epoch=message.epoch,
        previous_position=message.previous_position,
        previous_epoch=message.previous_epoch,
        entries=[
            members_pb2.Entry(epoch=entry.epoch, position=entry.position, payload=entry.payload, kind=entry.kind)
            for entry in message.entries
        ],
        commit=message.commit,
        lowest=message.lowest,
        membership=message.membership.encode() if message.lowest else b"",
    )


def _append_from_wire(frame: members_pb2.Frame) -> Append:
    append = frame.append
    return Append(
        frame.from_replica,
        frame.to_replica,
        append.epoch,
        append.previous_position,
        append.previous_epoch,
        tuple(Entry(entry.epoch, entry.position, entry.payload, entry.kind) for entry in append.entries),
        append.commit,
        append.lowest,
        Membership.decode(append.membership) if append.membership else UNKNOWN,
    )
