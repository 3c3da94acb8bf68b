"""Children are started again when they die, at once the first time, and stopped for good when asked to."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from trizone import supervisor
from trizone.supervisor import STEADY_S, Backoff, Child, Command, how_it_ended, last_line

SLEEPER = (
    "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); print('up', flush=True); signal.pause()"
)
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); signal.pause()"


def test_pauses_grow_from_nothing_to_a_bound() -> None:
    backoff = Backoff()
    pauses = [backoff.after(0.1) for _ in range(10)]
    assert pauses[0] == 0
    assert pauses == sorted(pauses)
    assert pauses[-1] == supervisor.PAUSE_MAX_S


def test_a_steady_life_makes_good_for_earlier_deaths() -> None:
    backoff = Backoff()
    for _ in range(supervisor.LOOP_AFTER):
        backoff.after(0.1)
    assert backoff.looping
    assert backoff.after(STEADY_S) == 0
    assert not backoff.looping


def test_ends_in_words() -> None:
    assert how_it_ended(1) == "ended with exit code 1"
    assert how_it_ended(-signal.SIGKILL) == "was ended by SIGKILL"


def test_the_last_line_that_says_something(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert last_line(log) == ""
    log.write_text("first\nlast words\n\n")
    assert last_line(log) == "last words"


def _exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


class Watched:
    """A child running a Python program, with what it said and its successive process ids."""

    def __init__(self, folder: Path, program: str, *, spare: bool = False) -> None:
        self.said: list[str] = []
        self.pids: list[int] = []
        self.log = folder / "child.log"
        self._news = asyncio.Event()
        command = Command("child", [sys.executable, "-c", program], self.log, spare=spare)
        self.child = Child(command, self.said.append, self._changed)
        self.task = asyncio.create_task(self.child.run())

    def _changed(self) -> None:
        if self.child.pid is not None:
            self.pids.append(self.child.pid)
        self._news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return when `condition` holds; looked at again at each change and as output may come."""
        async with asyncio.timeout(20):
            while not condition():  # noqa: ASYNC110 (a log file has no event to wait for)
                await asyncio.sleep(0.01)

    async def up(self, lives: int = 1) -> None:
        """Return when the program has said `up` in its `lives`-th life."""
        await self.until(lambda: self.log.exists() and self.log.read_text().count("up") >= lives)


async def test_a_killed_child_comes_back(tmp_path: Path) -> None:
    watched = Watched(tmp_path, SLEEPER)
    await watched.up()
    os.kill(watched.pids[0], signal.SIGKILL)
    await watched.up(lives=2)
    assert watched.said == ["child was ended by SIGKILL; starting it again now."]
    await watched.child.stop(10)
    await watched.task
    assert len(set(watched.pids)) == 2
    assert watched.child.pid is None


async def test_stopping_is_final_and_silent(tmp_path: Path) -> None:
    watched = Watched(tmp_path, SLEEPER)
    await watched.up()
    await watched.child.stop(10)
    await watched.task
    assert watched.said == []
    assert not _exists(watched.pids[0])


async def test_a_child_that_does_not_stop_is_ended(tmp_path: Path) -> None:
    watched = Watched(tmp_path, STUBBORN)
    await watched.up()
    await watched.child.stop(0.05)
    await watched.task
    assert watched.said == ["child did not stop within 0.05 s and is ended."]
    assert not _exists(watched.pids[0])


async def test_settings_that_cannot_be_used_end_the_run(tmp_path: Path) -> None:
    watched = Watched(tmp_path, "import sys; print('The setting x does not exist.'); sys.exit(2)")
    await watched.task
    assert watched.child.failure == "The setting x does not exist."
    assert len(watched.pids) == 1


async def test_a_spare_child_that_cannot_use_its_data_is_left_out_until_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "PAUSE_MAX_S", 0.01)
    mended = tmp_path / "mended"
    program = (
        f"import os, sys, time\nif not os.path.exists({str(mended)!r}):\n"
        "    print('The log is lost.')\n    sys.exit(2)\nprint('up', flush=True)\ntime.sleep(60)"
    )
    watched = Watched(tmp_path, program, spare=True)
    await watched.until(lambda: len(watched.pids) >= 3)
    assert watched.child.unfit == "The log is lost."
    assert watched.said == ["child: The log is lost. The others run without it; it is tried again every 0.01 s."]
    mended.touch()
    await watched.up()
    await watched.child.stop(10)
    await watched.task
    assert watched.child.failure is None
    assert len(watched.said) == 1


async def test_a_crash_loop_says_where_to_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "PAUSE_MAX_S", 0.0)
    watched = Watched(tmp_path, "print('out of coffee'); raise SystemExit(1)")
    await watched.until(lambda: any(str(watched.log) in line for line in watched.said))
    await watched.child.stop(10)
    await watched.task
    assert any("out of coffee" in line for line in watched.said)


async def test_a_child_that_cannot_be_started_yet_is_tried_again(tmp_path: Path) -> None:
    log_folder = tmp_path / "not-there-yet"
    watched = Watched(log_folder, SLEEPER)
    await watched.until(lambda: bool(watched.said))
    log_folder.mkdir()
    await watched.up()
    await watched.child.stop(10)
    await watched.task
    assert watched.said[0] == "child cannot be started: No such file or directory."


PARENT = """
import os, subprocess, sys
from trizone.parent import PARENT_VARIABLE
child = "from trizone.parent import *; import signal; die_with_parent(); print('up', flush=True); signal.pause()"
running = subprocess.Popen([sys.executable, "-c", child], env={**os.environ, PARENT_VARIABLE: str(os.getpid())})
print(running.pid, flush=True)
running.wait()
"""


def test_a_child_dies_with_its_launcher() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as launcher:
        assert launcher.stdout is not None
        said = {launcher.stdout.readline().strip(), launcher.stdout.readline().strip()}
        assert "up" in said
        launcher.kill()
        # The pipe ends when the last process that can write to it is gone.
        assert launcher.stdout.read() == ""


def test_a_child_that_comes_too_late_for_its_launcher_does_not_start() -> None:
    program = "from trizone.parent import die_with_parent; die_with_parent(); print('up')"
    environment = {**os.environ, "TRIZONE_PARENT": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (1, "")
