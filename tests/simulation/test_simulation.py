"""The main scenario over seeds that failed before, and over fresh ones. A failure prints its seed; `make sim SEED=…
SEEDS=1` plays it again, and one that was not known yet is to join tests/simulation/seeds.py."""

from __future__ import annotations

import pytest

from tests.simulation.scenarios.storm import Plan, run_storm
from tests.simulation.seeds import STORM_FAILED, fresh_seeds

FRESH = 12
SHORT = Plan(seconds=10, pause=(0.1, 0.8))


@pytest.mark.parametrize("seed", [*STORM_FAILED, *fresh_seeds(FRESH)])
def test_nothing_promised_is_broken(seed: int) -> None:
    outcome = run_storm(seed)
    assert not outcome.violations, outcome.report()
    assert outcome.tally.faults.total() >= 20
    assert outcome.tally.answered >= 50


@pytest.mark.parametrize("seed", [101, 102])
def test_the_same_seed_gives_the_same_trace(seed: int) -> None:
    first, second = run_storm(seed, SHORT), run_storm(seed, SHORT)
    assert len(first.trace) > 1000
    assert first.trace.text() == second.trace.text()


def test_another_seed_gives_another_trace() -> None:
    assert run_storm(101, SHORT).trace.text() != run_storm(102, SHORT).trace.text()


def test_stores_in_memory_do_as_well() -> None:
    outcome = run_storm(103, Plan(seconds=10, pause=(0.1, 0.8), in_memory=True))
    assert not outcome.violations, outcome.report()
