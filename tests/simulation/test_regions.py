"""Two and three regions under faults of all kinds. A failure prints its seed and how to play it again."""

from __future__ import annotations

import pytest

from tests.simulation.region_mutants import REGION_MUTANTS, REGION_PLANS, seeds_until_found
from tests.simulation.scenarios.regions import RegionsPlan, run_regions
from tests.simulation.seeds import REGIONS_FAILED, fresh_seeds

SHORT = RegionsPlan(seconds=10)
MANY = range(20, 40)
SEEDS_MAX = 20
QUICK = "equal stamps are not told apart"
"""Found with the first seed."""


@pytest.mark.parametrize("seed", fresh_seeds(2))
def test_regions_end_with_the_last_writers_items(seed: int) -> None:
    outcome = run_regions(seed, SHORT)
    assert not outcome.violations, outcome.report()
    assert outcome.tally.faults.total() >= 10
    assert outcome.tally.answered >= 50


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", sorted({*REGIONS_FAILED, *MANY}))
def test_regions_end_with_the_last_writers_items_over_more_seeds(seed: int) -> None:
    outcome = run_regions(seed)
    assert not outcome.violations, outcome.report()


def test_the_same_seed_gives_the_same_trace() -> None:
    plan = RegionsPlan(seconds=4, regions=2)
    first, second = run_regions(2, plan), run_regions(2, plan)
    assert len(first.trace) > 1000
    assert first.trace.text() == second.trace.text()


def test_a_change_that_wins_over_its_equal_is_found() -> None:
    assert seeds_until_found(QUICK, range(1, SEEDS_MAX + 1)), f"{QUICK}: not found"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [name for name in REGION_MUTANTS if name != QUICK])
def test_every_broken_rule_of_regions_is_found(name: str) -> None:
    assert seeds_until_found(name, range(1, SEEDS_MAX + 1)), f"{name}: not found with {SEEDS_MAX} seeds"


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", REGION_MUTANTS)
def test_without_its_mutant_a_plan_of_regions_finds_nothing(name: str) -> None:
    outcome = run_regions(1, REGION_PLANS[name])
    assert not outcome.violations, outcome.report()
