"""Each mutant breaks one rule of replication; the checks of `replication_world` must notice within a few histories.

A check that no mutant can fail proves nothing: whoever adds a rule adds its mutant here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from replication.duties import Duties
from replication.effects import Effects
from replication.heartbeats import BeatReply, FollowerBeats, LeaderBeats
from replication.leadership import Leadership
from replication.membership import Membership
from replication.messages import VoteRequest
from replication.missing import Missing
from replication.replica import Replica
from replication.timing import Timing
from tests.property.replication_world import ViolationError, World
from tests.property.test_replication import storm

SEEDS = 40
Mutant = Callable[[pytest.MonkeyPatch, World], None]


def skips_the_lease_wait(patch: pytest.MonkeyPatch, world: World) -> None:
    """A new leader serves at once, whatever the votes say."""
    world.faults = ("rumour",)
    patch.setattr("replication.elections.serve_from", lambda _timing, _left, now: now)


def keeps_reading_after_an_order(patch: pytest.MonkeyPatch, world: World) -> None:
    """A leader reads on after it has ordered another to stand."""
    world.faults = ("hand over",)
    patch.setattr(Leadership, "serves", lambda self, applied: self.waited and applied >= self.first_of_epoch)


def counts_the_lease_from_the_answer(patch: pytest.MonkeyPatch, world: World) -> None:
    """A leader counts from when the answer came, not from when the beat left."""
    world.faults = ("freeze",)
    original = LeaderBeats.answered

    def answered(self: LeaderBeats, reply: BeatReply, now: float) -> tuple[int, ...]:
        refused = original(self, reply, now)
        if self._answered == reply.sequence:
            self._answered_sent_at = now
        return refused

    patch.setattr(LeaderBeats, "answered", answered)


def answers_for_a_leader_it_left(patch: pytest.MonkeyPatch, world: World) -> None:
    """A voter goes on answering the beats of the old leader."""
    world.faults = ("rumour",)
    patch.setattr(FollowerBeats, "left", lambda _self, _partition: None)


def forgets_its_promise_over_a_restart(_: pytest.MonkeyPatch, world: World) -> None:
    """A voter that restarted reports no lease."""
    world.faults = ("rumour",)
    world.restart_error = -1000.0


def acknowledges_before_the_flush(_: pytest.MonkeyPatch, world: World) -> None:
    """Votes and acknowledgements leave at once."""
    world.acknowledge_early = True


def votes_for_any_log(patch: pytest.MonkeyPatch, _: World) -> None:
    """A voter does not compare logs."""

    def up_to_date(_self: Replica, _request: VoteRequest) -> bool:
        return True

    patch.setattr(Replica, "_up_to_date", up_to_date)


def counts_its_own_unflushed_log(patch: pytest.MonkeyPatch, _: World) -> None:
    """A leader counts itself before its flush."""
    original = Leadership.replicated
    patch.setattr(Leadership, "replicated", lambda self, _durable: original(self, self._log.last_position))


def applies_before_the_flush(patch: pytest.MonkeyPatch, _: World) -> None:
    """What is committed is applied although the own log may lose it."""

    def done(self: Replica, duties: Duties) -> Effects:
        durable, self.durable = self.durable, self.commit
        effects: Effects = original(self, duties)
        self.durable = durable
        return effects

    original: Any = Replica._done
    patch.setattr(Replica, "_done", done)


def believes_a_commit_beyond_what_matches(patch: pytest.MonkeyPatch, _: World) -> None:
    """A follower takes the leader's commit for entries that it has not compared."""

    def hear(self: Replica, position: int) -> None:
        self._commit_to(min(position, self._log.last_position))

    patch.setattr(Replica, "_hear_commit", hear)


def ignores_drift(patch: pytest.MonkeyPatch, world: World) -> None:
    """Clocks run apart by a fifth each and nobody allows for it."""
    world.faults = ("rumour",)
    patch.setattr(Timing, "drift_margin", property(lambda _: 0.0))
    for node in world.nodes.values():
        node.rate = world.random.choice((0.8, 1.2))


def stands_without_its_state(patch: pytest.MonkeyPatch, world: World) -> None:
    """A replica that lost its state forgets that."""
    world.trims, world.faults = True, ("machine",)

    def ask_around(self: Replica, now: float, duties: Duties) -> None:
        missing, self._missing = self._missing, Missing(False, None)
        original(self, now, duties)
        self._missing = missing

    original: Any = Replica._ask_around
    patch.setattr(Replica, "_ask_around", ask_around)


def keeps_a_log_that_parted_from_the_snapshot(patch: pytest.MonkeyPatch, world: World) -> None:
    """What a follower has beyond an installed snapshot stays, though the snapshot is of another log."""
    world.trims, world.faults = True, ("isolate", "crash")

    def install(self: Replica, position: int, epoch: int, membership: Membership) -> Effects:
        if position <= self.last_position:
            epoch = self._log.epoch_at(position) or epoch
        effects: Effects = original(self, position, epoch, membership)
        return effects

    original: Any = Replica.install
    patch.setattr(Replica, "install", install)


MUTANTS: list[Mutant] = [
    skips_the_lease_wait,
    keeps_reading_after_an_order,
    counts_the_lease_from_the_answer,
    answers_for_a_leader_it_left,
    forgets_its_promise_over_a_restart,
    acknowledges_before_the_flush,
    votes_for_any_log,
    counts_its_own_unflushed_log,
    applies_before_the_flush,
    believes_a_commit_beyond_what_matches,
    ignores_drift,
    stands_without_its_state,
    keeps_a_log_that_parted_from_the_snapshot,
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_broken_rule_is_noticed(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some history among the first few shows it, by a check or by an assertion of the core itself."""
    for seed in range(SEEDS):
        try:
            storm(seed, 3, lambda world: mutant(monkeypatch, world))
        except (ViolationError, AssertionError) as error:
            print(seed, error)
            return
    pytest.fail(f"{mutant.__name__} went unnoticed in {SEEDS} histories")
