"""Errors that services log with a traceback: somebody caught what nobody foresaw, and that is a finding."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


class _Noticing(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.found.append(f"{record.name}: {logging.Formatter().format(record)}")


@contextmanager
def noticed_errors() -> Iterator[list[str]]:
    """Collect them; nothing else is logged meanwhile."""
    handler, root = _Noticing(), logging.getLogger()
    before, root.handlers = root.handlers, [handler]
    level = root.level
    root.setLevel(logging.ERROR)
    try:
        yield handler.found
    finally:
        root.handlers = before
        root.setLevel(level)
