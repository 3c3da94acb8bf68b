"""Each mutant breaks one rule of changing members; the checks of the world must notice within a few histories."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from replication import quorum
from replication.duties import Duties
from replication.effects import Effects
from replication.elections import Elections
from replication.history import History
from replication.leadership import Leadership
from replication.membership import Membership
from replication.messages import Append, AppendReply, Message
from replication.replica import Replica
from tests.property.membership_world import MembershipWorld
from tests.property.replication_world import ViolationError
from tests.property.test_membership import storm

SEEDS = 40
Mutant = Callable[[pytest.MonkeyPatch, MembershipWorld], None]


def _counts(patch: pytest.MonkeyPatch, seen: Callable[[Membership], Membership]) -> None:
    """Majorities are those of another membership than the one in force."""
    reached, majority = quorum.reached_by_majority, quorum.is_majority
    patch.setattr("replication.leadership.reached_by_majority", lambda membership, of: reached(seen(membership), of))
    patch.setattr("replication.election.is_majority", lambda membership, granted: majority(seen(membership), granted))


def counts_one_majority_of_a_joint_change(patch: pytest.MonkeyPatch, _: MembershipWorld) -> None:
    """The new voters alone decide before the change is committed."""
    _counts(patch, lambda membership: replace(membership, old_voters=()))


def counts_learners(patch: pytest.MonkeyPatch, _: MembershipWorld) -> None:
    """Whoever has the log counts."""
    _counts(patch, lambda membership: replace(membership, voters=(*membership.voters, *membership.learners)))


def takes_an_old_replicas_acknowledgement_for_its_successors(patch: pytest.MonkeyPatch, world: MembershipWorld) -> None:
    """Appends and their acknowledgements go by node: whichever replica is there takes them, and answers."""
    world.faults = ("isolate",)
    original = Replica.step

    def step(self: Replica, message: Message, now: float) -> Effects:
        if not isinstance(message, Append):
            return original(self, message, now)
        effects = original(self, replace(message, to=self.replica), now)
        answers = tuple(
            replace(answer, sender=message.to) if isinstance(answer, AppendReply) else answer
            for answer in effects.send_after_flush
        )
        return replace(effects, send_after_flush=answers)

    patch.setattr(Replica, "step", step)


def stands_without_being_a_voter(patch: pytest.MonkeyPatch, world: MembershipWorld) -> None:
    """Learners and removed replicas seek leadership as voters do."""
    world.faults = ("isolate", "freeze", "rumour")
    patch.setattr(Elections, "_may_stand", lambda self: not self._missing.state)


def keeps_a_membership_that_was_replaced(patch: pytest.MonkeyPatch, _: MembershipWorld) -> None:
    """An entry that is replaced leaves its membership in force."""
    patch.setattr(History, "cut", lambda _self, _position: False)


def leaves_a_joint_membership_before_it_is_committed(patch: pytest.MonkeyPatch, world: MembershipWorld) -> None:
    """The leader goes on to the new voters at once."""
    world.faults = ("isolate", "crash")
    original: Any = Replica._append_membership

    def append(self: Replica, membership: Membership, duties: Duties) -> None:
        original(self, replace(membership, old_voters=()), duties)

    patch.setattr(Replica, "_append_membership", append)


def serves_without_a_state(patch: pytest.MonkeyPatch, _: MembershipWorld) -> None:
    """A log replica that was elected goes on to lead."""
    patch.setattr(Leadership, "serves", lambda self, _applied: self.waited)
    patch.setattr(Leadership, "complete", lambda _self: 0)


MUTANTS: list[Mutant] = [
    counts_one_majority_of_a_joint_change,
    counts_learners,
    takes_an_old_replicas_acknowledgement_for_its_successors,
    stands_without_being_a_voter,
    keeps_a_membership_that_was_replaced,
    leaves_a_joint_membership_before_it_is_committed,
    serves_without_a_state,
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_broken_rule_is_noticed(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some history among the first few shows it, by a check or by an assertion of the core itself."""
    for seed in range(SEEDS):
        with monkeypatch.context() as patch:
            try:
                storm(seed, 3, partial(mutant, patch))
            except (ViolationError, AssertionError) as error:
                print(seed, error)
                return
    pytest.fail(f"{mutant.__name__} went unnoticed in {SEEDS} histories")
