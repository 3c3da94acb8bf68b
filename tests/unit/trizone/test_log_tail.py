"""Warnings reach the terminal, the rest stays in the file, and files stay bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

from trizone import log_tail
from trizone.log_tail import LogTail, warning_in


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"level": "warning", "message": "disk nearly full"}', "disk nearly full"),
        ('{"level": "info", "message": "an ERROR of the past was mended"}', None),
        ("12:00:00 WARNING disk nearly full", "12:00:00 WARNING disk nearly full"),
        ("12:00:00 INFO started", None),
        ("12:00:00 info an error of the past was mended", None),
        ("Traceback (most recent call last):", None),
        ("", None),
        ("{not JSON", None),
    ],
)
def test_what_is_a_warning(line: str, message: str | None) -> None:
    assert warning_in(line) == message


@pytest.fixture
def said() -> list[str]:
    """What the tail said."""
    return []


def test_only_what_is_new_and_whole_is_said(tmp_path: Path, said: list[str]) -> None:
    log = tmp_path / "node.log"
    log.write_text("1:00 WARNING of an earlier run\n")
    tail = LogTail("node", log, said.append)
    with log.open("a") as file:
        file.write("1:00 INFO hello\n1:00 WARNING first\n1:00 WARNING sec")
        file.flush()
        tail.read()
        assert said == ["node: 1:00 WARNING first"]
        file.write("ond\n")
        file.flush()
        tail.read()
    assert said == ["node: 1:00 WARNING first", "node: 1:00 WARNING second"]


def test_a_log_that_is_not_there_yet(tmp_path: Path, said: list[str]) -> None:
    log = tmp_path / "node.log"
    tail = LogTail("node", log, said.append)
    tail.read()
    log.write_text("1:00 ERROR no\n")
    tail.read()
    assert said == ["node: 1:00 ERROR no"]


def test_a_long_log_is_turned_over(tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_tail, "LOG_BYTES_MAX", 100)
    log = tmp_path / "node.log"
    tail = LogTail("node", log, said.append)
    with log.open("a") as writer:
        writer.write("x" * 200 + "\n")
        writer.flush()
        tail.read()
        assert log.stat().st_size == 0
        assert (tmp_path / "node.log.1").stat().st_size == 201
        writer.write("1:00 WARNING goes on\n")
        writer.flush()
        tail.read()
    assert said == ["node: 1:00 WARNING goes on"]
