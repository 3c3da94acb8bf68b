"""Each mutant breaks one rule; the simulation has to find it. A few of them belong to `make test`, all to
`make sim-mutants`."""

from __future__ import annotations

import pytest

from tests.simulation import storage_mutants  # noqa: F401  it adds to MUTANTS
from tests.simulation.mutants import MUTANTS, PLANS, seeds_until_found
from tests.simulation.scenarios.storm import run_storm

SEEDS = range(1, 31)
QUICK = ("acknowledge when proposed", "vote for any log", "clean mark before the sync", "skip the lease wait")
"""Found with the first seeds."""


@pytest.mark.parametrize("name", QUICK)
def test_a_broken_rule_is_found(name: str) -> None:
    assert seeds_until_found(name, SEEDS), f"{name}: not found with {len(SEEDS)} seeds"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [name for name in MUTANTS if name not in QUICK])
def test_every_broken_rule_is_found(name: str) -> None:
    assert seeds_until_found(name, SEEDS), f"{name}: not found with {len(SEEDS)} seeds"


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_without_its_mutant_a_plan_finds_nothing(name: str) -> None:
    outcome = run_storm(1, PLANS[name])
    assert not outcome.violations, outcome.report()
