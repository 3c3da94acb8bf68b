"""Beats between two nodes: one message for all partitions that one leads and the other follows.

A beat carries the (partition, epoch) pairs that its sender leads, as one block of bytes that stays the same while
nothing changes, and the commit positions that moved. The answer lists the partitions that its sender does not follow
at that epoch. What a beat renews, on either side, is therefore one time per pair of nodes; what differs for single
partitions is kept apart, in small tables of exceptions.

Invariants:
- at the leader, a pair is confirmed by an answer only if the answered beat held it, and at that beat's sending time;
- at the follower, `covered` holds exactly the pairs that the last beat held and that are still followed: a replica that
  leaves its leader is taken out at once, before any later beat is answered;
- what a follower answered for a partition is never forgotten: leaving `covered` keeps the time of the last answer.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from replication.lease import NEVER
from replication.timing import Timing

_PAIR = struct.Struct("<QQ")
_ID = struct.Struct("<Q")
_SENT_KEPT = 64


@dataclass(frozen=True, slots=True)
class Beat:
    """`enrolled`: packed (partition, epoch) pairs, `<QQ`, sorted; `commits`: packed (partition, position) pairs."""

    sequence: int
    enrolled: bytes
    commits: bytes


@dataclass(frozen=True, slots=True)
class BeatReply:
    """`unfollowed`: packed partitions, `<Q`, of the beat that the sender does not follow at the epoch named there."""

    sequence: int
    unfollowed: bytes


class Received(NamedTuple):
    """`commits`: (partition, epoch, position) for `Replica.commit_heard`.

    `withdrawn`: (partition, epoch) that the node no longer leads, for `Replica.leader_gone`.
    """

    reply: BeatReply
    commits: tuple[tuple[int, int, int], ...]
    withdrawn: tuple[tuple[int, int], ...]


class LeaderBeats:
    """At the node that leads, for one peer. `first_sequence` rises over restarts: incarnation << 32 will do."""

    def __init__(self, first_sequence: int = 0) -> None:
        self.last_answer_at = NEVER
        self.changed = False
        """Whether pairs were enrolled since the last beat: the next one should not wait, for a lease hangs on it."""
        self._sequence = first_sequence
        self._sent: dict[int, float] = {}
        self._answered = first_sequence
        self._answered_sent_at = NEVER
        self._enrolled: dict[int, tuple[int, int]] = {}
        self._packed: bytes | None = b""
        self._refused: dict[int, float] = {}
        self._moved: dict[int, tuple[int, int]] = {}

    def enrol(self, partition: int, epoch: int) -> None:
        """This node leads `partition` in `epoch`."""
        known = self._enrolled.get(partition)
        if known is None or known[0] != epoch:
            self._enrolled[partition] = (epoch, self._sequence + 1)
            self._refused.pop(partition, None)
            self._packed, self.changed = None, True

    def withdraw(self, partition: int) -> None:
        """This node no longer leads `partition`; what was confirmed for it no longer counts."""
        if self._enrolled.pop(partition, None) is not None:
            self._packed = None
        self._refused.pop(partition, None)
        self._moved.pop(partition, None)

    def commit_moved(self, partition: int, position: int) -> None:
        """To be told with each beat until one that carried it is answered."""
        self._moved[partition] = (position, self._sequence + 1)

    def beat(self, now: float) -> Beat:
        """The next beat, which must leave at once: a lease is counted from `now`."""
        self._sequence += 1
        self._sent[self._sequence] = now
        if len(self._sent) > _SENT_KEPT:
            del self._sent[next(iter(self._sent))]
        if self._packed is None:
            self._packed = b"".join(
                _PAIR.pack(partition, pair[0]) for partition, pair in sorted(self._enrolled.items())
            )
        self.changed = False
        commits = b"".join(_PAIR.pack(partition, moved[0]) for partition, moved in self._moved.items())
        return Beat(self._sequence, self._packed, commits)

    def answered(self, reply: BeatReply, now: float) -> tuple[int, ...]:
        """Takes an answer; an older one than was seen before says nothing new.

        Returns the partitions that are enrolled as they were in that beat and not followed, for `Replica.not_followed`.
        """
        sent_at = self._sent.get(reply.sequence)
        if sent_at is None or reply.sequence <= self._answered:
            return ()
        self.last_answer_at = now
        refused: dict[int, float] = {}
        for (partition,) in _ID.iter_unpack(reply.unfollowed):
            epoch, first = self._enrolled.get(partition, (0, reply.sequence + 1))
            if first <= reply.sequence:
                refused[partition] = self.confirmed_at(partition, epoch)
        self._refused = refused
        self._answered, self._answered_sent_at = reply.sequence, sent_at
        for sequence in [sequence for sequence in self._sent if sequence <= reply.sequence]:
            del self._sent[sequence]
        if self._moved:
            # Who does not follow yet takes no commit either, and hears it once it does.
            self._moved = {p: moved for p, moved in self._moved.items() if moved[1] > reply.sequence or p in refused}
        return tuple(refused)

    def confirmed_at(self, partition: int, epoch: int) -> float:
        """Sending time of the latest beat that held the pair and was answered without refusing it; `NEVER` if none."""
        enrolled = self._enrolled.get(partition)
        if enrolled is None or enrolled[0] != epoch or enrolled[1] > self._answered:
            return NEVER
        return self._refused.get(partition, self._answered_sent_at)


class FollowerBeats:
    """At the node that follows, for one peer that leads."""

    def __init__(self, timing: Timing, random: Random) -> None:
        self.heard_at = NEVER
        self._timing = timing
        self._random = random
        self._enrolled = b""
        self._unfollowed = b""
        self._stale = False
        self._pairs: dict[int, int] = {}
        self._covered: dict[int, int] = {}
        self._left: dict[int, float] = {}
        self._awaited: dict[int, float] = {}
        self._schedule: list[tuple[float, int]] | None = None

    def followed(self, partition: int, now: float) -> None:
        """A replica here has begun to follow a leader on that node, whose beat should soon say so too."""
        self._stale = True
        self._awaited[partition] = now + self._election_timeout()

    def left(self, partition: int) -> None:
        """The replica no longer follows a leader on that node. Its last answer still binds."""
        self._stale = True
        self._awaited.pop(partition, None)
        if self._covered.pop(partition, None) is not None:
            self._left[partition] = self.heard_at

    def receive(self, beat: Beat, now: float, follows: Callable[[int, int], bool]) -> Received:
        """Answers a beat. `follows(partition, epoch)` is asked only if the beat's pairs or a replica here changed.

        The answer must not be kept back until a replica here changes its mind: send it at once.
        """
        withdrawn: tuple[tuple[int, int], ...] = ()
        if self._stale or beat.enrolled != self._enrolled:
            withdrawn = self._look_again(beat.enrolled, follows)
        self.heard_at = now
        self._schedule = None
        covered = self._covered
        commits = tuple(
            (partition, covered[partition], position)
            for partition, position in (_PAIR.iter_unpack(beat.commits) if beat.commits else ())
            if partition in covered
        )
        return Received(BeatReply(beat.sequence, self._unfollowed), commits, withdrawn)

    def answered_at(self, partition: int) -> float:
        """When a beat was last answered that covered `partition`; `NEVER` if none was."""
        if partition in self._covered:
            return self.heard_at
        return self._left.get(partition, NEVER)

    def promised_until(self, partition: int) -> float:
        """When the lease that was last answered for `partition` ends, on this node's clock."""
        return self.answered_at(partition) + self._timing.lease

    def overdue(self, now: float) -> list[int]:
        """Partitions whose replica should stand now: the leader's node is silent, or never enrolled them.

        Each waits its own random election timeout, so that the replicas of one partition rarely stand together; each
        is named once per silence. From then on the replica looks after itself (`Replica.deadline`).
        """
        due = [partition for partition, at in self._awaited.items() if at <= now]
        for partition in due:
            del self._awaited[partition]
        if self._covered and now - self.heard_at >= self._timing.election_min:
            if self._schedule is None:
                self._schedule = sorted((self.heard_at + self._election_timeout(), p) for p in self._covered)
                self._schedule.reverse()
            while self._schedule and self._schedule[-1][0] <= now:
                partition = self._schedule.pop()[1]
                if partition in self._covered:
                    due.append(partition)
        return due

    def _look_again(self, enrolled: bytes, follows: Callable[[int, int], bool]) -> tuple[tuple[int, int], ...]:
        if enrolled != self._enrolled:
            self._enrolled = enrolled
            self._pairs = dict(_PAIR.iter_unpack(enrolled))
        covered = {partition: epoch for partition, epoch in self._pairs.items() if follows(partition, epoch)}
        gone = {p: epoch for p, epoch in self._covered.items() if p not in covered}
        self._left.update(dict.fromkeys(gone, self.heard_at))
        for partition in covered:
            self._left.pop(partition, None)
            self._awaited.pop(partition, None)
        self._covered = covered
        self._unfollowed = b"".join(_ID.pack(partition) for partition in self._pairs if partition not in covered)
        self._stale = False
        return tuple((p, epoch) for p, epoch in gone.items() if p not in self._pairs)

    def _election_timeout(self) -> float:
        return self._random.uniform(self._timing.election_min, self._timing.election_max)
