"""Runs `trizone up` as a user would, for tests of it."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
READY = "Trizone is ready at "
START_S = 30.0


def trizone_command(*arguments: str) -> list[str]:
    """The command line of `trizone`."""
    return [sys.executable, "-m", "trizone", *arguments]


def finished(*arguments: str, timeout: float = 30) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself."""
    return subprocess.run(trizone_command(*arguments), capture_output=True, text=True, timeout=timeout, check=False)


def eventually(what: Callable[[], T], timeout: float = 20.0) -> T:
    """The first true answer of `what`, asked again and again. Fails the test after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not (answer := what()):
        assert time.monotonic() < deadline, f"{what} stayed {answer!r}"
        time.sleep(0.02)
    return answer


class Up:
    """A running `trizone up`, with the lines that it prints. `command`: run this in its place."""

    def __init__(self, *arguments: str, command: Sequence[str] | None = None) -> None:
        self.started = time.monotonic()
        whole = trizone_command("up", *arguments) if command is None else [*command, *arguments]
        self.process = subprocess.Popen(whole, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines: list[str] = []
        self._news: queue.Queue[str | None] = queue.Queue()
        self._passed_over: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            self._news.put(line.rstrip("\n"))
        self._news.put(None)

    def line_with(self, text: str, timeout: float = START_S) -> str:
        """The first line that holds `text` and was not asked for before: processes print in any order. Fails the test
        when the output ends or `timeout` seconds pass before."""
        if (line := next((line for line in self._passed_over if text in line), None)) is not None:
            self._passed_over.remove(line)
            return line
        deadline = time.monotonic() + timeout
        while True:
            try:
                line = self._news.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                line = None
            assert line is not None, f"no line with {text!r} in {self.lines}"
            if text in line:
                return line
            self._passed_over.append(line)

    def endpoint(self) -> str:
        """The endpoint, once the cluster is ready."""
        return self.line_with(READY).removeprefix(READY).split()[0]

    def stop(self, number: signal.Signals = signal.SIGINT, timeout: float = 30) -> int:
        """Ask it to stop; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout)


@contextmanager
def running(*arguments: str) -> Iterator[Up]:
    """`trizone up` for as long as the block runs; its children never outlive it."""
    up = Up(*arguments)
    try:
        yield up
    finally:
        if up.process.poll() is None:
            try:
                up.stop(signal.SIGTERM)
            except subprocess.TimeoutExpired:
                up.process.kill()
                up.process.wait()


def status_of(data: Path) -> dict[str, Any]:
    """What `trizone status --json` prints."""
    shown = finished("status", "--json", "--data", str(data))
    assert shown.returncode == 0, shown.stderr
    content: dict[str, Any] = json.loads(shown.stdout)
    return content


def pids_of(data: Path) -> dict[str, int]:
    """Process ids by name, as status tells them; without processes that are down."""
    return {process["name"]: process["pid"] for process in status_of(data)["processes"] if process["pid"]}


def is_alive(pid: int) -> bool:
    """Whether there is a process of this id that still runs."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"
