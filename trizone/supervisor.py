"""One child process: started, watched, started again when it dies, stopped."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cluster.configuration import PREFIX
from trizone.parent import PARENT_VARIABLE

STEADY_S = 30.0
"""Who lived this long was well; the next death counts as the first."""
PAUSE_FIRST_S = 0.25
PAUSE_MAX_S = 5.0
LOOP_AFTER = 4
"""So many deaths without a steady life in between are called a crash loop."""
BAD_SETTINGS = 2
"""Exit code of a service that cannot use its settings, or its data. It ends the run if it is the first life's, unless
the others can do without it."""

CANNOT_BE_STARTED = 1


class Backoff:
    """How long to wait before a process is started again: not at all the first time, then longer and longer."""

    def __init__(self) -> None:
        self.deaths = 0

    def after(self, lived_s: float) -> float:
        """Seconds to wait after a life of `lived_s`."""
        self.deaths = 1 if lived_s >= STEADY_S else self.deaths + 1
        if self.deaths == 1:
            return 0.0
        return float(min(PAUSE_FIRST_S * 2 ** (self.deaths - 2), PAUSE_MAX_S))

    @property
    def looping(self) -> bool:
        """Whether it is time to say (again) that this does not get better by itself."""
        return self.deaths % LOOP_AFTER == 0


@dataclass(frozen=True)
class Command:
    """What to run, where its output goes, and which descriptors it inherits. `spare`: the others can do without it."""

    name: str
    arguments: Sequence[str]
    log: Path
    inherit: tuple[int, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    spare: bool = False


def how_it_ended(code: int) -> str:
    """An exit code of a child, in words."""
    if code >= 0:
        return f"ended with exit code {code}"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"


def last_line(log: Path) -> str:
    """The last line of a log that says something, or an empty text."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
            lines = file.read().decode("utf-8", "replace").split("\n")
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _inherited() -> dict[str, str]:
    """The environment without what would stand for settings: a child's are all in its file."""
    return {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}


class Child:
    """A process that is kept running.

    `say` gets one line per event for the terminal; `changed` is called when `pid` changes. Await `run` in a task; it
    returns after `stop`, or when the process cannot use its settings (`failure` then says why). One that is spare is
    tried again and again instead; `unfit` says why it does not run.
    """

    def __init__(self, command: Command, say: Callable[[str], None], changed: Callable[[], None]) -> None:
        self.command = command
        self.pid: int | None = None
        self.failure: str | None = None
        self.unfit = ""
        self._say = say
        self._changed = changed
        self._backoff = Backoff()
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Keep the process running until `stop`."""
        lives = 0
        while not self._stopping.is_set():
            started = time.monotonic()
            try:
                code = await self._live()
            except OSError as error:  # no room for the log, or for another process
                self._say(f"{self.command.name} cannot be started: {error.strerror}.")
                code = CANNOT_BE_STARTED
            lives += 1
            if self._stopping.is_set():
                return
            if code == BAD_SETTINGS and lives == 1 and not self.command.spare:
                self.failure = self._sentence()
                return
            if code == BAD_SETTINGS and self.command.spare:
                self._does_not_run(self._sentence())
                pause = PAUSE_MAX_S
            else:
                pause = self._backoff.after(time.monotonic() - started)
                self._report(code, pause)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)

    def _sentence(self) -> str:
        return last_line(self.command.log) or f"{self.command.name} cannot use its settings."

    def _does_not_run(self, why: str) -> None:
        """Said once: whoever reads it has to do something, and until then it stays as it is."""
        if why != self.unfit:
            self._say(
                f"{self.command.name}: {why} The others run without it; it is tried again every {PAUSE_MAX_S:g} s."
            )
        self.unfit = why
        self._changed()

    async def _live(self) -> int:
        """One life of the process; its exit code (negative: the signal that ended it)."""
        descriptor = os.open(self.command.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            # A session of its own: Ctrl-C reaches the launcher only, which stops everything in order.
            self._process = await asyncio.create_subprocess_exec(
                *self.command.arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=descriptor,
                stderr=descriptor,
                start_new_session=True,
                pass_fds=self.command.inherit,
                env={**_inherited(), **self.command.environment, PARENT_VARIABLE: str(os.getpid())},
            )
        finally:
            os.close(descriptor)
        if self._stopping.is_set():  # asked to while it was being started
            self._send(signal.SIGTERM)
        self._set_pid(self._process.pid)
        ended = asyncio.ensure_future(self._process.wait())
        await asyncio.wait([ended], timeout=STEADY_S)
        if not ended.done():
            self.unfit = ""
        code = await ended
        self._set_pid(None)
        return code

    def _set_pid(self, pid: int | None) -> None:
        self.pid = pid
        self._changed()

    def _report(self, code: int, pause: float) -> None:
        name, log = self.command.name, self.command.log
        when = f"in {pause:g} s" if pause else "now"
        if self._backoff.looping:
            self._say(f"{name} has died {self._backoff.deaths} times; look at {log}.")
        reason = f" ({last_line(log)})" if code > 0 else ""
        self._say(f"{name} {how_it_ended(code)}{reason}; starting it again {when}.")

    async def stop(self, grace_s: float) -> None:
        """Ask the process to end, and end it after `grace_s`. Returns when it is gone."""
        self._stopping.set()
        process = self._process
        if process is None or process.returncode is not None:
            return
        self._send(signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), grace_s)
        except TimeoutError:
            self._say(f"{self.command.name} did not stop within {grace_s:g} s and is ended.")
            self.kill()
            await process.wait()

    def kill(self) -> None:
        """End the process at once."""
        self._stopping.set()
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)
