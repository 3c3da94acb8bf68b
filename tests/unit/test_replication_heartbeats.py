"""Beats between two nodes: what is confirmed, what is promised, who should stand, and what an idle beat costs."""

from __future__ import annotations

import struct
from random import Random

import pytest

from replication.heartbeats import Beat, BeatReply, FollowerBeats, LeaderBeats
from replication.lease import NEVER
from replication.timing import Timing

TIMING = Timing()


class Pair:
    """A leader's node, a follower's node, and which pairs the latter follows."""

    def __init__(self) -> None:
        self.leader = LeaderBeats()
        self.follower = FollowerBeats(TIMING, Random(1))
        self.followed: set[tuple[int, int]] = set()
        self.asked = 0

    def lead(self, partition: int, epoch: int = 1) -> None:
        """Enrols, and follows."""
        self.leader.enrol(partition, epoch)
        self.follow(partition, epoch)

    def follow(self, partition: int, epoch: int = 1) -> None:
        """The follower's replica accepted the leader."""
        self.followed.add((partition, epoch))
        self.follower.followed(partition, 0.0)

    def leave(self, partition: int, epoch: int = 1) -> None:
        """The follower's replica left the leader."""
        self.followed.discard((partition, epoch))
        self.follower.left(partition)

    def follows(self, partition: int, epoch: int) -> bool:
        """What a node asks its replicas."""
        self.asked += 1
        return (partition, epoch) in self.followed

    def exchange(self, sent: float, answered: float | None = None) -> tuple[int, ...]:
        """One beat and its answer; the partitions refused."""
        received = self.follower.receive(self.leader.beat(sent), sent, self.follows)
        return self.leader.answered(received.reply, sent if answered is None else answered)


def test_confirmed_from_sending() -> None:
    """An answer counts from when its beat left."""
    pair = Pair()
    pair.lead(7)
    assert pair.leader.confirmed_at(7, 1) == NEVER
    pair.exchange(1.0, answered=1.4)
    assert pair.leader.confirmed_at(7, 1) == 1.0
    assert pair.leader.last_answer_at == 1.4


@pytest.mark.parametrize(("partition", "epoch"), [(7, 2), (8, 1)])
def test_confirms_only_the_pair(partition: int, epoch: int) -> None:
    """Another epoch or partition is not confirmed."""
    pair = Pair()
    pair.lead(7)
    pair.exchange(1.0)
    assert pair.leader.confirmed_at(partition, epoch) == NEVER


def test_a_beat_sent_before_enrolling_confirms_nothing() -> None:
    """The answered beat must have held the pair."""
    pair = Pair()
    early = pair.leader.beat(1.0)
    pair.lead(7)
    reply = pair.follower.receive(early, 1.0, pair.follows).reply
    pair.leader.answered(reply, 1.1)
    assert pair.leader.confirmed_at(7, 1) == NEVER


def test_withdrawing_and_enrolling_anew_begins_anew() -> None:
    """What was confirmed before does not count for the pair's next enrolment."""
    pair = Pair()
    pair.lead(7)
    pair.exchange(1.0)
    pair.leader.withdraw(7)
    assert pair.leader.confirmed_at(7, 1) == NEVER
    pair.leader.enrol(7, 1)
    assert pair.leader.confirmed_at(7, 1) == NEVER


def test_a_refusal_keeps_the_last_confirmation() -> None:
    """A partition that left is listed; it keeps its last confirmation, and others go on."""
    pair = Pair()
    pair.lead(7)
    pair.lead(8)
    pair.exchange(1.0)
    pair.leave(7)
    assert pair.exchange(2.0) == (7,)
    assert pair.exchange(3.0) == (7,)
    assert (pair.leader.confirmed_at(7, 1), pair.leader.confirmed_at(8, 1)) == (1.0, 3.0)
    pair.follow(7)
    assert pair.exchange(4.0) == ()
    assert pair.leader.confirmed_at(7, 1) == 4.0


def test_an_old_refusal_does_not_hit_a_new_epoch() -> None:
    """An answer speaks of the pairs of its own beat."""
    pair = Pair()
    pair.leader.enrol(7, 1)
    reply = pair.follower.receive(pair.leader.beat(1.0), 1.0, pair.follows).reply
    pair.leader.enrol(7, 2)
    assert pair.leader.answered(reply, 1.1) == ()
    pair.follow(7, 2)
    pair.exchange(2.0)
    assert pair.leader.confirmed_at(7, 2) == 2.0


def test_answers_out_of_order() -> None:
    """A late answer to an older beat takes nothing back; one to a beat that was never sent is ignored."""
    pair = Pair()
    pair.lead(7)
    beats = [pair.leader.beat(1.0), pair.leader.beat(2.0)]
    first, second = (pair.follower.receive(beat, 2.0, pair.follows).reply for beat in beats)
    pair.leader.answered(second, 2.1)
    pair.leader.answered(first, 2.2)
    pair.leader.answered(BeatReply(99, b""), 2.3)
    assert pair.leader.confirmed_at(7, 1) == 2.0
    assert pair.leader.last_answer_at == 2.1


def test_commits_are_told_until_answered() -> None:
    """A commit position rides on each beat until one that carried it is answered by a node that follows.

    An Append that is already on its way may make the other node follow, and knows less.
    """
    pair = Pair()
    pair.lead(7)
    pair.leader.enrol(8, 1)
    pair.leader.commit_moved(7, 5)
    pair.leader.commit_moved(8, 6)
    lost = pair.leader.beat(1.0)
    assert lost.commits == struct.pack("<QQQQ", 7, 5, 8, 6)
    beat = pair.leader.beat(1.1)
    received = pair.follower.receive(beat, 1.1, pair.follows)
    assert received.commits == ((7, 1, 5),)
    pair.leader.commit_moved(7, 9)
    pair.leader.answered(received.reply, 1.2)
    pair.follow(8)
    beat = pair.leader.beat(1.3)
    assert sorted(struct.iter_unpack("<QQ", beat.commits)) == [(7, 9), (8, 6)]
    received = pair.follower.receive(beat, 1.3, pair.follows)
    assert sorted(received.commits) == [(7, 1, 9), (8, 1, 6)]
    pair.leader.answered(received.reply, 1.4)
    assert pair.leader.beat(1.5).commits == b""


def test_enrolled_is_sorted_and_cached() -> None:
    """The block of pairs is the same object until something changes."""
    pair = Pair()
    pair.leader.enrol(9, 1)
    pair.leader.enrol(7, 3)
    first, second = pair.leader.beat(1.0), pair.leader.beat(2.0)
    assert first.enrolled == struct.pack("<QQQQ", 7, 3, 9, 1)
    assert second.enrolled is first.enrolled


def test_an_idle_beat_asks_nobody() -> None:
    """While nothing changes, no replica is looked at, however many there are; a change is noticed at once."""
    pair = Pair()
    for partition in range(1000):
        pair.lead(partition)
    pair.exchange(1.0)
    pair.asked = 0
    for beat in range(50):
        pair.exchange(2.0 + beat)
    assert pair.asked == 0
    assert pair.leader.confirmed_at(999, 1) == 51.0
    pair.leave(999)
    assert pair.exchange(60.0) == (999,)


def test_a_new_pair_wants_a_beat() -> None:
    """A lease hangs on the first beat of an epoch."""
    leader = LeaderBeats()
    leader.enrol(7, 1)
    assert leader.changed
    leader.beat(1.0)
    assert not leader.changed
    leader.enrol(7, 1)
    assert not leader.changed
    leader.enrol(7, 2)
    assert leader.changed


def test_a_promise_outlives_leaving() -> None:
    """What was answered binds for a lease, although the replica left and other beats are answered after that."""
    pair = Pair()
    pair.lead(7)
    pair.lead(8)
    pair.exchange(1.0)
    pair.leave(7)
    pair.exchange(2.0)
    assert pair.follower.promised_until(7) == 1.0 + TIMING.lease
    assert pair.follower.promised_until(8) == 2.0 + TIMING.lease
    assert pair.follower.promised_until(9) == NEVER


def test_withdrawn_pairs_are_named_once() -> None:
    """A leader that resigned or restarted no longer enrols what it led."""
    pair = Pair()
    pair.lead(7)
    pair.lead(8)
    pair.exchange(1.0)
    pair.leader.withdraw(7)
    received = pair.follower.receive(pair.leader.beat(2.0), 2.0, pair.follows)
    assert received.withdrawn == ((7, 1),)
    assert pair.follower.answered_at(7) == 1.0
    assert pair.follower.receive(pair.leader.beat(3.0), 3.0, pair.follows).withdrawn == ()
    restarted = FollowerBeats(TIMING, Random(1))
    assert restarted.receive(Beat(1, b"", b""), 3.0, pair.follows).withdrawn == ()


def test_silence_makes_each_partition_stand_once_in_its_own_time() -> None:
    """Between the shortest and the longest election timeout after the last beat, and at different moments."""
    pair = Pair()
    for partition in range(200):
        pair.lead(partition)
    pair.exchange(1.0)
    assert pair.follower.overdue(1.0 + TIMING.election_min - 0.001) == []
    moments: dict[int, float] = {}
    for step in range(101):
        now = 1.0 + TIMING.election_min + step * (TIMING.election_max - TIMING.election_min) / 100
        for partition in pair.follower.overdue(now):
            assert partition not in moments
            moments[partition] = now
    assert set(moments) == set(range(200))
    assert len(set(moments.values())) > 50


def test_a_beat_ends_the_silence() -> None:
    """What was about to stand does not; a later silence counts from the new beat."""
    pair = Pair()
    pair.lead(7)
    pair.exchange(1.0)
    assert pair.follower.overdue(1.7) == []
    pair.exchange(1.71)
    assert pair.follower.overdue(2.4) == []
    assert pair.follower.overdue(1.71 + TIMING.election_max) == [7]


def test_a_leader_that_never_enrols_is_overdue() -> None:
    """It was followed, and died or resigned before its first beat, while its node goes on."""
    pair = Pair()
    pair.follow(7)
    pair.exchange(0.5)
    assert pair.follower.overdue(TIMING.election_min - 0.01) == []
    pair.exchange(1.0)
    assert pair.follower.overdue(TIMING.election_max) == [7]


def test_who_left_is_not_overdue() -> None:
    """A replica that follows another node is not that node's business."""
    pair = Pair()
    pair.lead(7)
    pair.exchange(1.0)
    pair.follower.overdue(1.0 + TIMING.election_min)
    pair.leave(7)
    assert pair.follower.overdue(5.0) == []
