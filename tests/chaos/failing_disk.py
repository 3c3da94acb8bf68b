"""Disks of real processes that fail on request: `failing_disk.c`, compiled and loaded into a cluster's processes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_suffix(".c")


class FailingDisk:
    """What the calls of a cluster's processes meet, from now on and until it is changed."""

    def __init__(self, folder: Path) -> None:
        self._control = folder / "faults"
        self._library = folder / "failing_disk.so"
        self._control.write_text("")

    def compile(self) -> None:
        """Make the library. Skips the test where there is no compiler."""
        if shutil.which("gcc") is None:
            pytest.skip("gcc is missing: without it no disk of a real process fails on request")
        command = ["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(self._library), str(SOURCE), "-ldl"]
        subprocess.run(command, check=True)

    def environment(self) -> dict[str, str]:
        """What a process needs to be started with."""
        return {"LD_PRELOAD": str(self._library), "FAILING_DISK": str(self._control)}

    def set(self, *faults: str) -> None:
        """These faults and no others: "call action seconds text", as the source says."""
        written = self._control.with_suffix(".new")
        written.write_text("".join(f"{fault}\n" for fault in faults))
        written.rename(self._control)  # a reader sees all of it or nothing
