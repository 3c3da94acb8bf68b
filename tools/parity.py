#!/usr/bin/env python3
"""Runs the Parity Suite, which is fetched and installed outside of this repository, against a fresh cluster.

    tools/parity.py DIRECTORY [--trim] [files or folders of the suite's tests]

Compares what fails with tests/conformance/parity_expected.txt and leaves with status 1 if a test fails that is not
listed there, or one passes that is; --trim takes those that pass off the list first. With files or folders named, only
what ran is compared.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EXPECTED_FILE = Path(__file__).resolve().parents[1] / "tests" / "conformance" / "parity_expected.txt"
SUITE_SECONDS_MAX = 1_800


@dataclass(frozen=True)
class Results:
    """What became of each test, by "file > name": "passed", "failed" or another of vitest's words."""

    status: dict[str, str]
    broken: tuple[str, ...]  # files that could not be run

    def of(self, status: str) -> list[str]:
        """The tests that ended so."""
        return sorted(test for test, ended in self.status.items() if ended == status)


def read_expected(text: str) -> dict[str, str]:
    """The list: what each test waits for, by test. A line "# waits for X" stands above those that wait for X."""
    expected: dict[str, str] = {}
    reason = ""
    for line in text.splitlines():
        if line.startswith("#"):
            reason = line.lstrip("# ").removeprefix("waits for ")
        elif line.strip():
            if line in expected:
                raise ValueError(f"listed twice: {line}")
            expected[line] = reason
    return expected


def read_results(report: dict[str, Any]) -> Results:
    """The results in vitest's JSON report."""
    status: dict[str, str] = {}
    broken = []
    for file in report["testResults"]:
        name = file["name"].partition("/tests/")[2].removesuffix(".test.ts")
        if not file["assertionResults"]:
            broken.append(name)
        for test in file["assertionResults"]:
            full = " > ".join([name, *test["ancestorTitles"], test["title"]])
            status[full] = test["status"]
    return Results(status, tuple(broken))


def compare(results: Results, expected: dict[str, str], *, whole: bool) -> list[str]:
    """What is wrong, a line each. `whole`: every test of the suite was to run."""
    failed = [test for test, ended in results.status.items() if ended != "passed"]
    wrong = [f"fails: {test}" for test in sorted(failed) if test not in expected]
    wrong += [f"passes, take it off the list: {test}" for test in results.of("passed") if test in expected]
    wrong += [f"cannot be run: {file}" for file in results.broken]
    if whole:
        wrong += [f"listed, but no test of the suite: {test}" for test in sorted(set(expected) - set(results.status))]
    return wrong


def trimmed(text: str, passed: set[str]) -> str:
    """The list without tests that pass, and without reasons that nothing waits for any more."""
    groups = [group.splitlines() for group in text.split("\n\n")]
    left = [[line for line in group if line not in passed] for group in groups]
    return "\n\n".join("\n".join(group) for group in left if any(not line.startswith("#") for line in group)) + "\n"


def summary(results: Results, expected: dict[str, str]) -> list[str]:
    """The counts."""
    total, passed = len(results.status), len(results.of("passed"))
    lines = [f"{passed} of {total} tests pass, {total - passed} do not"]
    waiting = Counter(
        expected[test] for test, ended in results.status.items() if test in expected and ended != "passed"
    )
    return lines + [f"  {count} wait for {reason}" for reason, count in waiting.most_common()]


def run_suite(directory: Path, paths: list[str]) -> dict[str, Any]:
    """Vitest's report of a run against a cluster of its own."""
    from trizone import Cluster

    with Cluster() as cluster, tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        subprocess.run(
            ["npx", "vitest", "run", *paths, "--reporter=json", f"--outputFile={report}"],
            cwd=directory,
            env={**os.environ, "DYNAMODB_ENDPOINT": cluster.endpoint},
            stdout=subprocess.DEVNULL,
            timeout=SUITE_SECONDS_MAX,
            check=False,  # it fails when any test does
        )
        result: dict[str, Any] = json.loads(report.read_text())
        return result


def main(arguments: list[str]) -> int:
    """Run and compare."""
    if not arguments or not (Path(arguments[0]) / "vitest.config.ts").is_file():
        print("Name the directory of the Parity Suite, with its packages installed: make parity PARITY_DIR=…")
        return 2
    directory, paths = Path(arguments[0]), [path for path in arguments[1:] if path != "--trim"]
    results = read_results(run_suite(directory, paths))
    if "--trim" in arguments:
        EXPECTED_FILE.write_text(trimmed(EXPECTED_FILE.read_text(), set(results.of("passed"))))
    expected = read_expected(EXPECTED_FILE.read_text())
    wrong = compare(results, expected, whole=not paths)
    print("\n".join([*summary(results, expected), *wrong]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
