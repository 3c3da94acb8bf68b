"""What the shell owes the core after each call. The order of the fields is the order of the duties."""

from __future__ import annotations

from dataclasses import dataclass

from replication.membership import Membership
from replication.messages import Entry, Message


@dataclass(frozen=True, slots=True)
class HardState:
    """What must survive a restart besides the log: the epoch and whom this replica voted for in it (0: nobody)."""

    epoch: int
    vote: int


@dataclass(frozen=True, slots=True)
class Fetch:
    """Entries for `peer` from `first_position` on, no longer in memory: up to `max_bytes` of them, at least one."""

    peer: int
    first_position: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class Install:
    """This replica lacks what its leader's log no longer holds, or its own state: fetch a snapshot from `source`.

    It must cover `position` at least. The same duty may come again while it is being done.
    """

    source: int
    position: int


@dataclass(frozen=True, slots=True)
class Covered:
    """A record for the log: a snapshot covers it up to `position`, where `membership` is in force.

    `restarts`: it holds nothing else; the membership is to be written with it.
    """

    epoch: int
    position: int
    restarts: bool
    membership: Membership


@dataclass(frozen=True, slots=True)
class Effects:
    """Duties, to be done in this order.

    1. `save`, `covered` and `append` go to the node's log, in this order, to be flushed together. Entries at positions
       that the log already holds replace those and all after them. When the flush is done the shell calls
       `Replica.flushed`.
    2. `send_at_once` may leave before the flush.
    3. `wake_peers`: replicas for which `Replica.append_for` now has something; the shell asks when the peer's lane is
       free.
    4. `send_after_flush` holds votes and acknowledgements: none may leave before the flush of `save`, `covered` and
       `append` (and of everything handed over before them).
    5. `apply`: committed entries, in order; the shell applies them and then calls `Replica.applied_to`.
    6. `role_changed`: leadership was gained or lost, the leader began or ceased to serve, or the known leader changed;
       mailboxes look again.
    7. `load`: committed positions (first, last) that are to be applied are not in memory, after a restart. The shell
       reads entries from `first` on, as many as it likes, from its own log and calls `Replica.loaded`.
    8. `install`: see there. Once such a snapshot is durable on this node, the shell calls `Replica.install`.
    9. `membership_changed`: others are members, or voters, than before. The `Contact` knows.
    """

    save: HardState | None = None
    append: tuple[Entry, ...] = ()
    send_at_once: tuple[Message, ...] = ()
    wake_peers: tuple[int, ...] = ()
    send_after_flush: tuple[Message, ...] = ()
    apply: tuple[Entry, ...] = ()
    role_changed: bool = False
    load: tuple[int, int] | None = None
    covered: Covered | None = None
    install: Install | None = None
    membership_changed: bool = False


NOTHING = Effects()
