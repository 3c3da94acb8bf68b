"""Wrong use of the command line gets one sentence and exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from trizone.__main__ import main


@pytest.mark.parametrize(
    ("arguments", "about"),
    [
        (["up", "--port", "99999"], "99999"),
        (["up", "--port", "http"], "http"),
        (["up", "--routers", "0"], "routers"),
        (["up", "--region", "a b"], "region"),
        (["up", "--leaders", "none"], "none"),
        (["up", "--bogus"], "--bogus"),
        ([], "COMMAND"),
    ],
)
def test_wrong_arguments(arguments: list[str], about: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert about in said
    assert said.count("\n") == 1


def test_ephemeral_and_data_exclude_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up", "--ephemeral", "--data", str(tmp_path)]) == 2
    assert "--ephemeral" in capsys.readouterr().err


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    assert main(["up", "--data", str(tmp_path)]) == 2
    assert "not empty" in capsys.readouterr().err
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


def test_status_without_a_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--data", str(tmp_path)]) == 2
    assert "no cluster" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("trizone ")
