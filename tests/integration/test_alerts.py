"""Alerts fire when they should and are silent when they should be, and each says where to read on."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "prometheus" / "trizone.rules.yml"
TESTS = RULES.parent / "tests" / "trizone.yml"
PROMTOOL = shutil.which("promtool")
ALERTS = re.findall(r"- alert: (\w+)", RULES.read_text())

needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian: prometheus)")


def run(tests: Path) -> subprocess.CompletedProcess[str]:
    assert PROMTOOL is not None
    return subprocess.run(
        [PROMTOOL, "test", "rules", tests.name], cwd=tests.parent, capture_output=True, text=True, check=False
    )


@needs_promtool
def test_alerts_fire_and_are_silent_as_they_should() -> None:
    done = run(TESTS)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
@pytest.mark.slow
@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_that_never_or_always_fires_is_found(alert: str, tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "trizone.yml").write_text(_only(alert))
    for expression in ("vector(1) > 2", "vector(1)"):
        (tmp_path / RULES.name).write_text(_with(alert, expression))
        assert run(tmp_path / "tests" / "trizone.yml").returncode != 0, expression


def _only(alert: str) -> str:
    """The rule tests of one alert."""
    head, *tests = re.split(r"(?=^  - name: )", TESTS.read_text(), flags=re.MULTILINE)
    return head + "".join(test for test in tests if test.startswith(f"  - name: {alert} "))


def _with(alert: str, expression: str) -> str:
    """The rules, with another expression for one alert."""
    return re.sub(
        rf"(- alert: {alert}\n        expr: ).*?(\n        (?:for|labels): )",
        lambda found: found[1] + expression + found[2],
        RULES.read_text(),
        flags=re.DOTALL,
    )


def test_every_alert_has_both_tests_and_a_section_of_the_troubleshooting_guide() -> None:
    tested = re.findall(r"- name: (\w+) (fires|stays silent)", TESTS.read_text())
    assert tested == [(alert, outcome) for alert in ALERTS for outcome in ("fires", "stays silent")]
    guide = (ROOT / "docs" / "troubleshooting.md").read_text()
    sections = re.findall(r"^### (\w+)$", guide, re.MULTILINE)
    assert sections == ALERTS
    for alert in ALERTS:
        assert f"runbook_url: docs/troubleshooting.md#{alert.lower()}\n" in RULES.read_text()
