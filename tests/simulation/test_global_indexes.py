"""The storm over a table with a global index, which has to equal its table once all is healed."""

from __future__ import annotations

import pytest

from tests.simulation.scenarios.storm import Features, Plan, run_storm

SEEDS = range(201, 203)
PLAN = Plan(seconds=20, pause=(0.1, 1.0), features=Features(indexed=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_an_index_equals_its_table_after_a_storm(seed: int) -> None:
    outcome = run_storm(seed, PLAN)
    assert not outcome.violations, outcome.report()
    assert outcome.tally.faults.total() >= 10
    assert outcome.tally.answered >= 200


def test_the_same_seed_gives_the_same_trace() -> None:
    plan = Plan(seconds=5, pause=(0.1, 0.8), features=Features(indexed=True))
    assert run_storm(208, plan).trace.text() == run_storm(208, plan).trace.text()
