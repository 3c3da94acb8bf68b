"""Temporary folders go with their makers, also with killed ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from trizone import temporary

MAKER = """
import signal, sys
from pathlib import Path
from trizone import temporary
temporary.MEMORY, temporary.FREE_BYTES_MIN = Path(sys.argv[1]), 0
with temporary.temporary_folder() as folder:
    print(folder, flush=True)
    signal.pause()
"""


@pytest.fixture(autouse=True)
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in the place of the one in memory."""
    monkeypatch.setattr(temporary, "MEMORY", tmp_path)
    monkeypatch.setattr(temporary, "FREE_BYTES_MIN", 0)
    return tmp_path


def test_a_folder_lives_as_long_as_the_block(memory: Path) -> None:
    with temporary.temporary_folder() as folder:
        assert folder.parent == memory
        (folder / "file").write_text("content")
    assert list(memory.iterdir()) == []


def test_what_a_killed_maker_left_is_removed_by_the_next(memory: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", MAKER, memory], stdout=subprocess.PIPE, text=True) as maker:
        assert maker.stdout is not None
        left = Path(maker.stdout.readline().strip())
        temporary.remove_abandoned(memory)
        assert left.exists(), "its maker is alive"
        maker.kill()
    assert left.exists()
    with temporary.temporary_folder():
        assert not left.exists()


def test_a_full_memory_is_passed_over(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporary, "FREE_BYTES_MIN", 1 << 62)
    with temporary.temporary_folder() as folder:
        assert folder.parent != memory


def test_folders_of_others_are_left_alone(memory: Path) -> None:
    (memory / "trizone-notes").mkdir()
    temporary.remove_abandoned(memory)
    assert (memory / "trizone-notes").exists()
