"""The cluster under load, and what it costs: CPU time of all its processes, from /proc."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

READY = "Trizone is ready at "


@contextmanager
def running_cluster(data: Path, arguments: Sequence[str] = ()) -> Iterator[tuple[str, list[int]]]:
    """A cluster over this data directory, stopped cleanly at the end: its endpoint and the ids of its processes."""
    command = [sys.executable, "-m", "trizone", "up", "--port", "0", "--data", str(data), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as up:
        try:
            assert up.stdout is not None
            line = next((line for line in up.stdout if line.startswith(READY)), None)
            if line is None:
                sys.exit("The cluster did not start.")
            run = json.loads((data / "run.json").read_text())
            yield line.removeprefix(READY).split()[0], [process["pid"] for process in run["processes"]]
        finally:
            up.send_signal(signal.SIGINT)


@contextmanager
def started_cluster(arguments: Sequence[str]) -> Iterator[tuple[str, list[int], Path]]:
    """A cluster of its own on the disk of the temporary folder: its endpoint, the ids of its processes and its data."""
    with tempfile.TemporaryDirectory(prefix="trizone-bench-") as folder:
        data = Path(folder, "data")
        with running_cluster(data, arguments) as (endpoint, pids):
            yield endpoint, pids, data


def cpu_seconds(pids: Iterable[int]) -> float:
    """User and system time that these processes have used so far."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])  # utime, stime: proc(5)
    return ticks / os.sysconf("SC_CLK_TCK")


def megabytes(pids: Iterable[int]) -> float:
    """Memory of these processes: proportional set sizes, so that what they share counts once."""
    return sum(_proportional_kilobytes(pid) for pid in pids) / 1024


def _proportional_kilobytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()  # proc(5)
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
