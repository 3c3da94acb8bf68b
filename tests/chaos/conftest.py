"""`--report DIR`, and a summary of what was measured at the end of the output."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

_LINES = pytest.StashKey[list[str]]()


@dataclass
class Report:
    """Where a test says what it measured."""

    folder: Path
    lines: list[str] = field(default_factory=list)

    def write(self, name: str, content: dict[str, Any]) -> None:
        """One JSON file."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(content, indent=1) + "\n")
        self.say(f"{path}")

    def draw(self, name: str, svg: str) -> None:
        """One picture."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{name}.svg"
        path.write_text(svg)
        self.say(f"{path}")

    def say(self, line: str) -> None:
        """One line of the summary."""
        self.lines.append(line)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--report", metavar="DIR", default=None, help="where the chaos tests write what they measured")
    parser.addoption("--kills", metavar="N", default=200, type=int, help="how often the longest chaos test kills (200)")


@pytest.fixture
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report of this test."""
    wanted = request.config.getoption("--report", default=None)
    folder = Path(wanted) if wanted else tmp_path_factory.getbasetemp() / "report"
    return Report(folder, request.config.stash.setdefault(_LINES, []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if lines := config.stash.get(_LINES, []):
        terminalreporter.section("chaos")
        for line in lines:
            terminalreporter.write_line(line)
