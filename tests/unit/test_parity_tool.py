"""The comparison of the Parity Suite's results with the list of tests that wait for later work."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def tool() -> Any:
    """tools/parity.py, which is no module of a package."""
    specification = importlib.util.spec_from_file_location("parity_tool", ROOT / "tools" / "parity.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["parity_tool"] = module  # where dataclasses look for it
    specification.loader.exec_module(module)
    return module


PARITY = tool()
LIST = "# waits for streams\na > b > one\na > b > two\n\n# waits for nothing: decided otherwise\nc > d > three\n"


def report(**files: dict[str, str]) -> Any:
    """Vitest's report: the status of each test, by file."""
    return {
        "testResults": [
            {
                "name": f"/somewhere/tests/{name}.test.ts",
                "assertionResults": [
                    {"ancestorTitles": ["b"], "title": title, "status": status} for title, status in tests.items()
                ],
            }
            for name, tests in files.items()
        ]
    }


def test_the_list_names_what_each_test_waits_for() -> None:
    assert PARITY.read_expected(LIST) == {
        "a > b > one": "streams",
        "a > b > two": "streams",
        "c > d > three": "nothing: decided otherwise",
    }
    with pytest.raises(ValueError, match="listed twice"):
        PARITY.read_expected(LIST + "a > b > one\n")


def test_what_is_wrong() -> None:
    results = PARITY.read_results(
        report(a={"one": "failed", "two": "passed", "four": "failed", "five": "passed"}, e={})
    )
    expected = PARITY.read_expected(LIST)
    wrong = ["fails: a > b > four", "passes, take it off the list: a > b > two", "cannot be run: e"]
    assert PARITY.compare(results, expected, whole=False) == wrong
    gone = "listed, but no test of the suite: c > d > three"
    assert PARITY.compare(results, expected, whole=True) == [*wrong, gone]
    assert PARITY.summary(results, expected)[0] == "2 of 4 tests pass, 2 do not"


def test_a_test_that_is_skipped_does_not_pass() -> None:
    results = PARITY.read_results(report(a={"one": "skipped", "four": "skipped"}))
    assert PARITY.compare(results, PARITY.read_expected(LIST), whole=False) == ["fails: a > b > four"]


def test_trimming_takes_off_what_passes() -> None:
    assert PARITY.trimmed(LIST, {"a > b > one"}) == LIST.replace("a > b > one\n", "")
    assert (
        PARITY.trimmed(LIST, {"a > b > one", "a > b > two"})
        == "# waits for nothing: decided otherwise\nc > d > three\n"
    )


def test_the_committed_list_can_be_read() -> None:
    assert all(PARITY.read_expected(PARITY.EXPECTED_FILE.read_text()).values())
