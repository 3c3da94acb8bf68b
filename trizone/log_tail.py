"""Follows the children's log files: shows warnings on the terminal and keeps the files bounded.

Children write to their files by themselves, so a launcher that is slow or stopped never holds them up.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

PAUSE_S = 0.5
LOG_BYTES_MAX = 20 << 20
READ_BYTES_MAX = 1 << 20
LOUD = {"warning", "error", "critical"}


def warning_in(line: str) -> str | None:
    """The message of a log line that is a warning or worse, else None. Reads JSON lines and console lines."""
    if line.startswith("{"):
        try:
            record = json.loads(line)
        except ValueError:
            return None
        if str(record.get("level", "")).lower() not in LOUD:
            return None
        return str(record.get("message") or line)
    time_and_level = line.split(maxsplit=2)[:2]
    return line.strip() if time_and_level[1:] and time_and_level[1].lower() in LOUD else None


class LogTail:
    """One log file, read from where it ends now."""

    def __init__(self, name: str, path: Path, say: Callable[[str], None]) -> None:
        self._name = name
        self._path = path
        self._say = say
        self._offset = path.stat().st_size if path.exists() else 0
        self._rest = b""

    def read(self) -> None:
        """Say the warnings that came since the last call."""
        try:
            with self._path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                self._offset = min(self._offset, size)
                file.seek(max(self._offset, size - READ_BYTES_MAX))
                content = self._rest + file.read(READ_BYTES_MAX)
        except FileNotFoundError:
            return
        self._offset = size
        *lines, self._rest = content.split(b"\n")
        for line in lines:
            warning = warning_in(line.decode("utf-8", "replace"))
            if warning is not None:
                self._say(f"{self._name}: {warning}")
        if size > LOG_BYTES_MAX:
            self._turn_over()

    def _turn_over(self) -> None:
        """Move what is written to NAME.log.1. The writer appends, so it goes on at the beginning."""
        with contextlib.suppress(OSError):  # on a full disk, room comes before old lines
            shutil.copyfile(self._path, self._path.with_suffix(".log.1"))
        os.truncate(self._path, 0)
        self._offset = 0


async def follow(tails: list[LogTail]) -> None:
    """Read all tails until cancelled."""
    while True:
        for tail in tails:
            tail.read()
        await asyncio.sleep(PAUSE_S)
