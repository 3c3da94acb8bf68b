"""A replica whose applied state turns out to be damaged: it steps aside, and goes on from the state made anew."""

from __future__ import annotations

from replication.membership import Membership
from replication.messages import Append, VoteReply
from replication.timing import Timing
from tests.unit.replication_member import Member
from tests.unit.test_replication_replica import acknowledge, entries, leading

PAYLOADS = [b"%d" % number for number in range(9)]


def written(it: Member) -> Member:
    it.perform(it.replica.propose(PAYLOADS, 2.0))
    it.flush()
    acknowledge(it, 2)
    it.settle()
    assert it.disk.applied == it.replica.last_position == 10
    return it


def following() -> Member:
    """Replica 1 that has applied ten entries of replica 2, which leads."""
    it = Member(1, Membership((1, 2, 3)), Timing())
    it.perform(it.replica.step(Append(2, 1, 1, 0, 0, entries(1, 10), 10), 0.0))
    it.settle()
    assert it.disk.applied == 10
    return it


def test_a_leader_steps_down_and_neither_stands_nor_applies_until_it_is_restored() -> None:
    it = written(leading())
    it.perform(it.replica.lose_state(3.0))
    assert it.replica.role == "follower"
    assert it.replica.lacks_state
    it.sent()
    it.perform(it.replica.tick(100.0))
    assert not list(it.sent()), "it asks nobody for votes"
    it.disk.applied = 4
    it.perform(it.replica.restored(4))
    assert not it.replica.lacks_state
    assert [entry.position for entry in it.apply()] == [5, 6, 7, 8, 9, 10]
    it.perform(it.replica.tick(200.0))
    assert list(it.sent()), "now it stands again"


def test_a_candidate_that_loses_its_state_does_not_win() -> None:
    it = following()
    it.perform(it.replica.leader_gone(1, 5.0))
    it.perform(it.replica.tick(50.0))
    it.perform(it.replica.lose_state(51.0))
    for pre in (True, False):
        it.perform(it.replica.step(VoteReply(3, 1, 2, True, pre=pre), 51.0))
    assert it.replica.role == "follower"


def test_entries_that_were_read_for_the_old_state_are_passed_over() -> None:
    it = following()
    it.disk.applied = 0
    it.perform(it.replica.lose_state(1.0))
    it.perform(it.replica.restored(0))
    assert it.loading == (1, 10)
    late, it.loading = it.loading, None
    it.perform(it.replica.lose_state(2.0))
    it.perform(it.replica.loaded(it.log[late[0] - 1 : late[1]]))
    assert not it.apply()
    it.perform(it.replica.restored(0))
    it.settle()
    assert it.disk.applied == 10


def test_a_wanted_state_stays_wanted_while_the_log_goes_on() -> None:
    it = following()
    it.replica.want_state(7)
    it.perform(it.replica.step(Append(2, 1, 1, 10, 1, entries(11, 12), 12), 1.0))
    it.settle()
    assert (it.replica.wanted_snapshot, it.disk.applied) == (7, 12)
    it.replica.want_no_state()
    assert it.replica.wanted_snapshot is None


def test_the_state_of_another_replica_may_be_older_than_the_damaged_one() -> None:
    it = following()
    it.replica.want_state(7)
    it.install = None
    it.perform(it.replica.install(8, 1, it.replica.membership), list(entries(1, 8)))
    it.flush()
    it.disk.applied = 8
    it.perform(it.replica.installed())
    it.settle()
    assert (it.disk.applied, it.replica.wanted_snapshot, it.replica.last_position) == (10, None, 10)
