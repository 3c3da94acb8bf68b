"""Runs seeds of a scenario: `python -m tests.simulation --first 1 --count 100`. Exit code 1: a violation."""

from __future__ import annotations

import argparse
import sys
import time
from multiprocessing import Pool
from pathlib import Path

from tests.simulation.scenarios.regions import RegionsPlan, run_regions
from tests.simulation.scenarios.scenario import Outcome, Tally
from tests.simulation.scenarios.storm import Plan, run_storm


def main() -> int:
    """Run the seeds asked for and print what came of them."""
    parser = argparse.ArgumentParser(prog="make sim", description=__doc__)
    parser.add_argument("--scenario", choices=("storm", "regions"), default="storm", help="one cluster, or several")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--count", type=int, default=20, help="how many seeds")
    parser.add_argument("--seconds", type=float, default=Plan().seconds, help="virtual seconds of faults")
    parser.add_argument("--limit", type=float, default=1e9, help="begin no more seeds after so many real seconds")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--in-memory", action="store_true", help="stores in memory instead of LMDB")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="write the first seed's trace here")
    options = parser.parse_args()
    plan: Plan | RegionsPlan = Plan(seconds=options.seconds, in_memory=options.in_memory)
    if options.scenario == "regions":
        plan = RegionsPlan(seconds=options.seconds, in_memory=options.in_memory)
    run = _Runner(plan)
    seeds = range(options.first, options.first + options.count)
    if options.trace is not None:
        outcome = run(options.first, keep_trace=True)
        options.trace.write_text(outcome.trace.text())
        return _summary([outcome], time.process_time())
    began, outcomes = time.monotonic(), []
    with Pool(min(options.workers, len(seeds))) as pool:
        for outcome in pool.imap_unordered(run, seeds):
            outcomes.append(outcome)
            print(outcome.report() if outcome.violations else outcome, flush=True)
            if time.monotonic() - began > options.limit:
                break
    return _summary(outcomes, time.monotonic() - began)


class _Runner:
    """Runs of one plan, for a pool."""

    def __init__(self, plan: Plan | RegionsPlan) -> None:
        self._plan = plan

    def __call__(self, seed: int, *, keep_trace: bool = False) -> Outcome:
        plan = self._plan
        outcome = run_regions(seed, plan) if isinstance(plan, RegionsPlan) else run_storm(seed, plan)
        if not keep_trace:
            outcome.trace.forget()
        return outcome


def _summary(outcomes: list[Outcome], seconds: float) -> int:
    total = Tally()
    for outcome in outcomes:
        total.add(outcome.tally)
    failed = sorted(outcome.seed for outcome in outcomes if outcome.violations)
    print(
        f"{len(outcomes)} seeds, {total.operations} operations ({total.answered} answered), {total.messages} messages, "
        f"{total.virtual_seconds / 3600:.1f} virtual hours in {seconds:.0f} s"
    )
    for what, counts in (("faults", total.faults), ("events", total.events)):
        print(f"{counts.total()} {what}: " + ", ".join(f"{kind} {count}" for kind, count in counts.most_common()))
    if failed:
        print(f"Violations with seeds {', '.join(map(str, failed))}.", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
