"""What replicas of one partition say to each other. To this package an entry's payload is bytes.

`sender` and `to` are replica ids, which are never reused. The node that carries a message adds cluster id, node ids and
incarnations; it never reaches a replica if those do not fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from replication.membership import UNKNOWN, Membership

NORMAL, FIRST_OF_EPOCH, MEMBERSHIP = 0, 1, 2
"""Kinds of entries: a command; the empty entry with which a leader opens its epoch; a change of membership."""


class Entry(NamedTuple):
    """One position of a partition's log. A tuple: one is made for every write on every replica, and a frozen dataclass
    takes five times as long."""

    epoch: int
    position: int
    payload: bytes
    kind: int = NORMAL


@dataclass(frozen=True, slots=True)
class VoteRequest:
    """Asks for a vote, or with `pre` whether one would be given. `ordered`: the leader asked the sender to stand."""

    sender: int
    to: int
    epoch: int
    last_position: int
    last_epoch: int
    pre: bool = False
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class VoteReply:
    """A granted vote carries what is left, in seconds, of the lease that the voter last answered."""

    sender: int
    to: int
    epoch: int
    granted: bool
    pre: bool = False
    lease_left: float = 0.0


@dataclass(frozen=True, slots=True)
class Append:
    """Entries that follow (`previous_position`, `previous_epoch`), and how far the log is committed.

    `lowest`: the leader's log holds nothing before; a peer that cannot take it needs a snapshot of at least
    `previous_position`, where `membership` was in force. `held`: up to there every full replica that is live has the
    log, so that a log replica need not keep it.
    """

    sender: int
    to: int
    epoch: int
    previous_position: int
    previous_epoch: int
    entries: tuple[Entry, ...]
    commit: int
    lowest: bool = False
    membership: Membership = UNKNOWN
    held: int = 0


@dataclass(frozen=True, slots=True)
class AppendReply:
    """`accepted`: the log is durable and equal up to `match`. Else the leader tries again from `match` (a hint)."""

    sender: int
    to: int
    epoch: int
    accepted: bool
    match: int
    hint_epoch: int = 0


@dataclass(frozen=True, slots=True)
class HandOver:
    """The leader, which has stopped reading and writing in this epoch, orders `to` to stand at once."""

    sender: int
    to: int
    epoch: int


Message: TypeAlias = VoteRequest | VoteReply | Append | AppendReply | HandOver
