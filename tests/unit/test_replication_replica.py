"""What transcripts do not show: single voters, entries read back from the log, memory, misuse."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from replication.effects import NOTHING, Fetch, HardState
from replication.lease import NEVER, Contact
from replication.log import ENTRY_OVERHEAD, LogSummary
from replication.membership import Membership
from replication.messages import Append, AppendReply, Entry, HandOver, VoteReply, VoteRequest
from replication.replica import Replica
from replication.timing import Timing
from tests.unit.replication_member import Disk, Member

TIMING = Timing()
THREE = Membership((1, 2, 3))


class FakeContact:
    """Answers as the test says, and remembers what it was told."""

    def __init__(self) -> None:
        self.answered = NEVER
        self.confirmed: dict[int, float] = {}
        self.told: list[tuple[int, int, bool]] = []

    def answered_at(self) -> float:
        """As set."""
        return self.answered

    def confirmed_at(self, peer: int, epoch: int) -> float:
        """As set."""
        assert epoch > 0
        return self.confirmed.get(peer, NEVER)

    def changed(self, epoch: int, leader: int, leads: bool, now: float) -> None:
        """Remembers."""
        assert now >= 0
        self.told.append((epoch, leader, leads))

    def members_changed(self, membership: Membership, epoch: int) -> None:
        """Nothing to do."""


def entries(first: int, last: int, epoch: int = 1) -> tuple[Entry, ...]:
    """Entries first..last of one epoch."""
    return tuple(Entry(epoch, position, b"p%d" % position) for position in range(first, last + 1))


def member(disk: Disk | None = None, contact: Contact | None = None, memory_bytes: int = 1 << 20) -> Member:
    """Replica 1 of three."""
    return Member(1, THREE, TIMING, disk=disk, contact=contact, memory_bytes=memory_bytes)


def leading(disk: Disk | None = None, contact: Contact | None = None, memory_bytes: int = 1 << 20) -> Member:
    """Replica 1 as a serving leader with the help of 2; all flushed and applied."""
    it = member(disk, contact, memory_bytes)
    epoch = it.replica.epoch + 1
    it.perform(it.replica.stand(0.0))
    it.perform(it.replica.step(VoteReply(2, 1, epoch, True, pre=True), 0.0))
    it.flush()
    it.perform(it.replica.step(VoteReply(2, 1, epoch, True), 0.0))
    it.flush()
    acknowledge(it, 2)
    it.settle()
    it.perform(it.replica.tick(1.0))
    assert it.replica.may_write()
    it.sent()
    return it


def acknowledge(it: Member, peer: int) -> None:
    """The peer has all that the leader has."""
    it.perform(it.replica.step(AppendReply(peer, 1, it.replica.epoch, True, it.replica.last_position), 0.0))


def test_a_single_voter_leads_at_once() -> None:
    """It asks nobody, commits on its own flush, and its lease never ends."""
    it = Member(1, Membership((1,)), TIMING)
    it.perform(it.replica.stand(0.0))
    assert (it.replica.role, it.replica.epoch, it.outbox) == ("leader", 1, [])
    assert it.replica.commit == 0
    it.settle()
    it.perform(it.replica.tick(1.0))
    assert it.replica.may_write()
    assert it.replica.may_read(1e6)
    assert it.replica.check_quorum(1e6) is NOTHING
    it.perform(it.replica.propose([b"a", b"b"], 2.0))
    assert it.replica.commit == 1
    it.settle()
    assert it.replica.commit == 3
    assert [entry.payload for entry in it.disk.entries] == [b"", b"a", b"b"]


def test_a_peer_far_behind_is_fed_from_the_log() -> None:
    """A leader that restarted has nothing in memory: it asks for a read, and sends nothing else meanwhile."""
    disk = Disk(HardState(1, 2), list(entries(1, 9)), applied=9)
    it = leading(disk)
    it.perform(it.replica.step(AppendReply(3, 1, 2, False, 4, 1), 1.0))
    assert it.woken.count(3) == 1
    fetch = it.replica.append_for(3, 500)
    assert fetch == Fetch(3, 5, 500)
    assert not it.replica.has_for(3)
    assert it.replica.append_for(3, 500) is None
    made = it.replica.fetched(3, entries(5, 7))
    assert isinstance(made, Append)
    assert (made.previous_position, made.previous_epoch, made.entries) == (4, 1, entries(5, 7))


@pytest.mark.parametrize(
    "read", [(), entries(6, 7), entries(5, 7, epoch=9)], ids=["nothing", "another place", "another epoch"]
)
def test_a_read_that_does_not_fit_is_dropped(read: tuple[Entry, ...]) -> None:
    """Nothing is sent, and the peer can be served anew."""
    it = leading(Disk(HardState(1, 2), list(entries(1, 9)), applied=9))
    it.perform(it.replica.step(AppendReply(3, 1, 2, False, 4, 1), 1.0))
    it.replica.append_for(3, 500)
    assert it.replica.fetched(3, read) is None
    assert it.replica.append_for(3, 500) == Fetch(3, 5, 500)


def test_a_leader_tells_what_its_peers_have_and_nothing_of_itself() -> None:
    """Whoever trims the log asks for every member of the partition."""
    it = leading()
    assert [it.replica.match_of(replica) for replica in (1, 2, 3)] == [None, it.replica.last_position, 0]
    it.perform(it.replica.step_down(1.0))
    assert it.replica.match_of(2) is None


def test_a_read_that_nobody_waits_for_is_dropped() -> None:
    """The lane broke, or leadership ended, before the read came back."""
    it = leading(Disk(HardState(1, 2), list(entries(1, 9)), applied=9))
    it.perform(it.replica.step(AppendReply(3, 1, 2, False, 4, 1), 1.0))
    it.replica.append_for(3, 500)
    it.replica.lane_broken(3)
    assert it.replica.fetched(3, entries(5, 7)) is None
    it.perform(it.replica.step_down(1.0))
    assert it.replica.fetched(3, entries(5, 7)) is None


def test_a_peer_that_needs_trimmed_entries_is_asked_whether_it_takes_the_lowest() -> None:
    """The log begins later: a snapshot has to bring the peer that far. Meanwhile it gets nothing, until asked again."""
    replica = Replica(
        replica=1,
        membership=THREE,
        timing=TIMING,
        random=Random(1),
        hard_state=HardState(4, 0),
        log=LogSummary(last_position=20, spans=((3, 9), (4, 15)), first_position=10),
        applied=20,
        now=0.0,
    )
    replica.stand(0.0)
    replica.step(VoteReply(2, 1, 5, True, pre=True), 0.0)
    replica.step(VoteReply(2, 1, 5, True), 0.0)
    replica.append_for(3, 500)
    replica.step(AppendReply(3, 1, 5, False, 3, 1), 0.0)
    lowest = Append(1, 3, 5, 9, 3, (), 20, lowest=True, membership=THREE)
    assert replica.append_for(3, 500) == lowest
    assert not replica.has_for(3)
    replica.step(AppendReply(3, 1, 5, False, 3, 1), 0.0)
    assert replica.installing_peers == (3,)
    assert not replica.has_for(3)
    assert replica.append_for(3, 500) is None
    assert replica.ask_installing().wake_peers == (3,)
    assert replica.append_for(3, 500) == lowest
    replica.step(AppendReply(3, 1, 5, True, 12), 0.0)
    assert not replica.installing_peers
    assert replica.append_for(3, 500) == Fetch(3, 13, 500)
    replica.append_for(2, 500)
    replica.step(AppendReply(2, 1, 5, False, 9, 3), 0.0)
    assert replica.append_for(2, 500) == Fetch(2, 10, 500)


def test_a_restarted_follower_reads_what_it_has_to_apply() -> None:
    """One stretch at a time, as far as the shell likes, then from memory."""
    it = member(Disk(HardState(1, 2), list(entries(1, 6)), applied=2))
    it.perform(it.replica.step(Append(2, 1, 1, 6, 1, entries(7, 8), 8), 0.0))
    assert it.loading == (3, 6)
    it.load(3)
    assert it.loading is None
    assert [entry.position for entry in it.apply()] == [3, 4, 5]
    assert it.loading == (6, 6)
    it.load(0)
    assert it.loading == (6, 6), "a failed read is asked for again"
    it.load(9)
    assert [entry.position for entry in it.to_apply] == [6]
    it.flush()
    assert [entry.position for entry in it.apply()] == [6, 7, 8]


def test_the_end_of_the_log_may_come_with_it() -> None:
    """What recovery has in memory is applied from there."""
    it = Replica(
        replica=1,
        membership=THREE,
        timing=TIMING,
        random=Random(1),
        hard_state=HardState(1, 2),
        log=LogSummary(6, ((1, 1),), 1, entries(3, 6)),
        applied=2,
        now=0.0,
    )
    effects = it.step(Append(2, 1, 1, 6, 1, (), 5), 0.0)
    assert effects.load is None
    assert effects.apply == entries(3, 5)


def test_memory_is_bounded_for_a_dead_peer() -> None:
    """What the others have and is applied may go, although the dead one lacks it; the rest waits for nobody."""
    size = 100 + ENTRY_OVERHEAD
    it = leading(memory_bytes=10 * size)
    for _ in range(40):
        it.perform(it.replica.propose([bytes(100)], 1.0))
        it.settle()
        acknowledge(it, 2)
        it.settle()
    assert it.replica.applied == 41
    made = it.replica.append_for(3, 1 << 20)
    assert isinstance(made, Fetch)
    last = it.replica.last_position
    it.replica.fetched(3, ())
    it.perform(it.replica.step(AppendReply(3, 1, 1, True, last - 10), 1.0))
    made = it.replica.append_for(3, 1 << 20)
    assert isinstance(made, Append)
    assert len(made.entries) == 10


def test_lease_counts_the_leader_itself() -> None:
    """One of two peers is enough; the lease ends `lease` after the sending of its beat."""
    contact = FakeContact()
    it = leading(contact=contact)
    assert not it.replica.may_read(1.0)
    contact.confirmed[3] = 1.0
    assert it.replica.may_read(1.0 + TIMING.lease - 0.001)
    assert not it.replica.may_read(1.0 + TIMING.lease)
    contact.confirmed[2] = 1.5
    assert it.replica.may_read(1.0 + TIMING.lease)


def test_steps_down_when_no_majority_answers() -> None:
    """An election timeout after the last confirmed beat, and not before one has passed since it was elected."""
    contact = FakeContact()
    it = leading(contact=contact)
    contact.confirmed[3] = 2.0
    assert it.replica.check_quorum(2.0 + TIMING.election_min - 0.001) is NOTHING
    assert it.replica.check_quorum(2.0 + TIMING.election_min + 0.001).role_changed
    assert (it.replica.role, it.replica.leader, it.replica.epoch) == ("follower", 0, 1)
    assert contact.told[-1] == (1, 0, False)


def test_a_vote_tells_what_is_left_of_the_lease() -> None:
    """Of the lease last answered; or a whole one since a restart."""
    contact = FakeContact()
    contact.answered = 4.8
    it = member(contact=contact)
    effects = it.replica.step(VoteRequest(2, 1, 1, 0, 0), 5.0)
    (reply,) = effects.send_after_flush
    assert isinstance(reply, VoteReply)
    assert reply.lease_left == pytest.approx(4.8 + TIMING.lease - 5.0)
    assert effects.save == HardState(1, 2)
    again = it.replica.step(VoteRequest(2, 1, 1, 0, 0), 5.0)
    assert again.send_after_flush == (reply,)
    restarted = Member(1, THREE, TIMING, now=5.0, restarted_at=4.9)
    (reply,) = restarted.replica.step(VoteRequest(2, 1, 1, 0, 0), 5.0).send_after_flush
    assert isinstance(reply, VoteReply)
    assert reply.lease_left == pytest.approx(0.5)


def test_the_longest_lease_is_waited_for() -> None:
    """The candidate's own promise counts as well as the votes'."""
    contact = FakeContact()
    it = member(contact=contact)
    it.perform(it.replica.stand(5.0))
    contact.answered = 4.9
    it.perform(it.replica.step(VoteReply(2, 1, 1, True, pre=True), 5.0))
    it.perform(it.replica.step(VoteReply(2, 1, 1, True, lease_left=0.1), 5.1))
    assert it.replica.role == "leader"
    assert it.replica.deadline() == pytest.approx(4.9 + TIMING.lease + TIMING.drift_margin)


def test_an_order_holds_for_one_epoch() -> None:
    """A candidate that fails after an order asks around, and waits for leases, like any other."""
    it = member()
    it.perform(it.replica.step(Append(2, 1, 3, 0, 0, (), 0), 0.0))
    assert it.replica.step(HandOver(2, 1, 2), 0.0) is NOTHING, "an order of another epoch"
    assert it.replica.step(HandOver(3, 1, 3), 0.0) is NOTHING, "an order of somebody else"
    requests = it.replica.step(HandOver(2, 1, 3), 0.0).send_after_flush
    assert [(r.epoch, r.ordered, r.pre) for r in requests if isinstance(r, VoteRequest)] == [(4, True, False)] * 2
    deadline = it.replica.deadline()
    assert deadline is not None
    retry = it.replica.tick(deadline).send_at_once
    assert [(r.epoch, r.ordered, r.pre) for r in retry if isinstance(r, VoteRequest)] == [(5, False, True)] * 2


def test_a_leader_that_waits_gives_no_order() -> None:
    """Its target would skip leases that it has not outwaited itself."""
    it = member()
    it.perform(it.replica.stand(0.0))
    it.perform(it.replica.step(VoteReply(2, 1, 1, True, pre=True), 0.0))
    it.perform(it.replica.step(VoteReply(2, 1, 1, True, lease_left=0.5), 0.0))
    acknowledge(it, 2)
    it.sent()
    it.perform(it.replica.hand_over(2, 0.1))
    assert not any(isinstance(message, HandOver) for message in it.sent())
    it.perform(it.replica.tick(0.6))
    assert [type(message) for message in it.sent()] == [HandOver]
    assert not it.replica.may_write()


def test_what_means_another_replica_is_ignored() -> None:
    """Replica ids are never reused."""
    it = member()
    assert it.replica.step(VoteRequest(2, 3, 5, 0, 0), 0.0) is NOTHING
    assert it.replica.epoch == 0


def test_who_was_removed_disturbs_no_leader() -> None:
    """It stands without knowing better: neither the leader nor who hears it listens, unless the leader itself says so.

    Without a leader it is listened to: it may be a voter of a membership that is not known here yet.
    """
    it = leading()
    epoch = it.replica.epoch
    assert it.replica.step(VoteRequest(9, 1, epoch + 1, 99, epoch), 1.0) is NOTHING
    follower = member()
    follower.perform(follower.replica.step(Append(2, 1, 1, 0, 0, (), 0), 1.0))
    assert follower.replica.step(VoteRequest(9, 1, 2, 99, 1), 1.1) is NOTHING
    assert follower.replica.step(VoteRequest(9, 1, 2, 99, 1, ordered=True), 1.1).send_after_flush
    alone = member()
    assert alone.replica.step(VoteRequest(9, 1, 5, 0, 0), 0.0).send_after_flush == (VoteReply(1, 9, 5, True),)


def test_idle_replicas_want_no_tick() -> None:
    """A serving leader and a follower with a leader have no deadline; one without a leader has."""
    assert leading().replica.deadline() is None
    it = member()
    assert it.replica.deadline() is not None
    it.perform(it.replica.step(Append(2, 1, 1, 0, 0, (), 0), 0.0))
    assert it.replica.deadline() is None


MISUSES: list[tuple[Callable[[], Member], Callable[[Replica], object]]] = [
    (member, lambda replica: replica.propose([b"x"], 0.0)),
    (member, lambda replica: replica.hand_over(2, 0.0)),
    (leading, lambda replica: replica.hand_over(1, 0.0)),
    (member, lambda replica: replica.applied_to(5)),
    (leading, lambda replica: replica.step(Append(2, 1, 1, 0, 0, (), 0), 0.0)),
]


@pytest.mark.parametrize(("make", "misuse"), MISUSES)
def test_misuse_is_asserted(make: Callable[[], Member], misuse: Callable[[Replica], object]) -> None:
    """What only a broken shell, or a broken peer, does stops the node."""
    it = make()
    with pytest.raises(AssertionError):
        misuse(it.replica)


def test_who_was_about_to_stand_and_hears_its_leader_once_more_waits_for_beats_anew() -> None:
    """An Append was late, and the leader is gone: beats told of the silence before it, and tell of each only once."""
    contact = FakeContact()
    one = member(contact=contact)
    one.perform(one.replica.step(Append(2, 1, 1, 0, 0, entries(1, 1), 0), 0.0))
    contact.told.clear()
    one.perform(one.replica.stand(10.0))
    assert one.replica.deadline() is not None
    one.perform(one.replica.step(Append(2, 1, 1, 1, 1, (), 0), 10.1))
    assert one.replica.deadline() is None
    assert contact.told == [(1, 2, False)]
