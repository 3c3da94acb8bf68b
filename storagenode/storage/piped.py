"""What a function writes to a file descriptor, read in pieces by somebody who takes the time that is right for him."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Callable
from typing import Final

PIPE_BYTES: Final = 1 << 20


class Piped:
    """Runs `write(descriptor)` in a thread of its own, which stands still while nobody reads.

    `finished` is called in that thread when it is through, whatever happened. `read` and `close` may come from any
    thread.
    """

    def __init__(self, name: str, write: Callable[[int], object], finished: Callable[[], object]) -> None:
        self._write = write
        self._finished = finished
        self._error: Exception | None = None
        self._lock = threading.Lock()
        self._read_from, self._write_to = os.pipe2(os.O_CLOEXEC)
        with contextlib.suppress(OSError):  # a bound on all pipes of a user: the usual 64 KiB do as well
            fcntl.fcntl(self._write_to, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def read(self, size: int) -> bytes:
        """The next `size` bytes, fewer only at the end. Raises what the function raised, ValueError after `close`."""
        with self._lock:
            if self._read_from < 0:
                raise ValueError("the pipe is closed")
            parts = []
            while size > 0 and (data := os.read(self._read_from, size)):
                parts.append(data)
                size -= len(data)
            if size > 0:
                self._thread.join()
                if self._error is not None:
                    raise self._error
            return b"".join(parts)

    def close(self) -> None:
        """Let the function end, if it has not, and wait for it; a second call does nothing."""
        with self._lock:
            if self._read_from >= 0:
                # The writer finds a broken pipe.
                os.close(self._read_from)
                self._read_from = -1
        self._thread.join()

    def _run(self) -> None:
        try:
            self._write(self._write_to)
        except Exception as error:  # handed to whoever reads
            self._error = error
        finally:
            self._finished()
            os.close(self._write_to)
