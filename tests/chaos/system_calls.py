"""What processes asked of the kernel, and when: strace's output, taken apart.

A line of `strace -f -ttt -T` is `PID SECONDS name(arguments) = result <SECONDS>`. A call during which another thread's
line is printed comes in two: `name(arguments <unfinished ...>`, then `<... name resumed>rest) = result <SECONDS>`.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

WRITES = ("write", "writev", "pwrite64", "sendto", "sendmsg", "fdatasync")
_LINE = re.compile(r"(?P<thread>\d+) +(?P<at>\d+\.\d+) (?P<text>.*)")
_CALL = re.compile(r"(?P<name>\w+)\((?P<descriptor>\d+)(?P<arguments>.*)", re.DOTALL)
_RESUMED = re.compile(r"<\.\.\. \w+ resumed>")
_TOOK = re.compile(r"<(\d+\.\d+)>$")
_UNFINISHED = " <unfinished ...>"


@dataclass(frozen=True)
class SystemCall:
    """One call on a file descriptor. Times are wall-clock seconds; `arguments` are as strace shows them."""

    name: str
    descriptor: int
    arguments: str
    began: float
    ended: float


def system_calls(lines: Iterable[str]) -> Iterator[SystemCall]:
    """The calls that came to an end, in the order of their ends."""
    begun: dict[str, tuple[float, str]] = {}
    for line in lines:
        if (match := _LINE.match(line.rstrip("\n"))) is None:
            continue
        thread, at, text = match["thread"], float(match["at"]), match["text"]
        if text.endswith(_UNFINISHED):
            begun[thread] = at, text.removesuffix(_UNFINISHED)
            continue
        if (resumed := _RESUMED.match(text)) is not None:
            if thread not in begun:
                continue  # it began before strace came
            at, head = begun.pop(thread)
            text = head + text[resumed.end() :]
        call, took = _CALL.match(text), _TOOK.search(text)
        if call is not None and took is not None:
            yield SystemCall(call["name"], int(call["descriptor"]), call["arguments"], at, at + float(took[1]))


def flushed_at(calls: Iterable[SystemCall], marker: str) -> float | None:
    """When a file that `marker` was written to was first synced after that; None: never."""
    written: dict[int, float] = {}
    for call in sorted(calls, key=lambda call: call.ended):
        if call.name == "pwrite64" and marker in call.arguments:
            written.setdefault(call.descriptor, call.ended)
        elif call.name == "fdatasync" and written.get(call.descriptor, call.began + 1) <= call.began:
            return call.ended
    return None


def sent_at(calls: Iterable[SystemCall], text: str, since: float) -> float | None:
    """When something that holds `text` was first sent after `since`; None: never."""
    sends = ("write", "writev", "sendto", "sendmsg")
    times = [call.began for call in calls if call.name in sends and text in call.arguments and call.began >= since]
    return min(times, default=None)


class Tracer:
    """strace on one running process, with all its threads."""

    def __init__(self, pid: int, output: Path) -> None:
        self._pid = pid
        self._output = output
        self._process: asyncio.subprocess.Process | None = None

    async def attach(self) -> str:
        """Begin to trace; an empty text, or why it cannot be done."""
        if (strace := shutil.which("strace")) is None:
            return "there is no strace"
        traced = ",".join(WRITES)
        options = ["-f", "-ttt", "-T", "-s", "65536", "-e", f"trace={traced}", "-o", str(self._output)]
        self._process = await asyncio.create_subprocess_exec(
            strace, *options, "-p", str(self._pid), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        assert self._process.stdout is not None
        said = (await self._process.stdout.readline()).decode().strip()
        return "" if "attached" in said else said or "strace ended at once"

    async def detach(self) -> list[SystemCall]:
        """End the trace; what was seen."""
        if self._process is not None:
            if self._process.returncode is None:
                self._process.terminate()
            await self._process.wait()
        if not self._output.exists():
            return []
        with self._output.open(encoding="utf-8", errors="replace") as lines:
            return list(system_calls(lines))
