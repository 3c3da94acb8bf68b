"""Everything that happens in a simulation, one line each, in order. Two runs of one seed must give the same bytes."""

from __future__ import annotations

import asyncio
from zlib import crc32


class Trace:
    """Lines of "virtual time, what happened"."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def note(self, text: str) -> None:
        """Something happened now."""
        self._lines.append(f"{asyncio.get_running_loop().time():.6f} {text}")

    def message(self, source: str, target: str, method: str, content: bytes, fate: str = "") -> None:
        """A message left. Its checksum stands for its content."""
        self.note(f"{source} > {target} {method} {len(content)} {crc32(content):08x}{fate}")

    def __len__(self) -> int:
        return len(self._lines)

    def text(self) -> str:
        """The whole trace."""
        return "\n".join(self._lines) + "\n"

    def tail(self, lines: int) -> str:
        """Its last lines."""
        return "\n".join(self._lines[-lines:])

    def forget(self) -> None:
        """Keep nothing."""
        self._lines.clear()
