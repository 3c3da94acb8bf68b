"""The dashboards in deploy/ are those that their code makes."""

from __future__ import annotations

from tools.dashboards.__main__ import BOARDS, FOLDER, render


def test_dashboards_are_current() -> None:
    made = {f"{board.uid}.json": render(board) for board in BOARDS}
    found = {path.name: path.read_text() for path in FOLDER.glob("*.json")}
    assert found == made, "run `python -m tools.dashboards`"
