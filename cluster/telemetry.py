"""Logs and metrics of a process: structured lines that carry the request's id, and one Prometheus registry."""

from __future__ import annotations

import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime

import msgspec
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from cluster.loop_delay import LoopDelay

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""x-amzn-requestid of the request that is being worked on; empty outside of one."""

# What a LogRecord has of its own; anything else on it came through `extra` and belongs in the line.
_OWN_MEMBERS = frozenset(vars(logging.LogRecord("", 0, "", 0, "", (), None))) | {"message", "asctime", "taskName"}


def _members(record: logging.LogRecord) -> dict[str, object]:
    """What the caller gave in `extra`, and the request's id."""
    members = {name: value for name, value in vars(record).items() if name not in _OWN_MEMBERS}
    if current := request_id.get():
        members.setdefault("request_id", current)
    return members


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, service, logger, message, and what `extra` holds."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "service": self._service,
            "logger": record.name,
            "message": record.getMessage(),
            **_members(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


class ConsoleFormatter(logging.Formatter):
    """A line for people: time, level, service, message, then name=value."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        members = "".join(f" {name}={value}" for name, value in _members(record).items())
        line = f"{_time(record)} {record.levelname.lower():7} {self._service} {record.getMessage()}{members}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def configure_logging(format: str, level: str, service: str) -> None:  # noqa: A002
    """Send all logs to stderr. `format` is "json" or "console", `level` a level's name in small letters."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(service) if format == "json" else ConsoleFormatter(service))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


def process_registry() -> CollectorRegistry:
    """A registry that already tells of the process: CPU, memory, descriptors, garbage collection, and of the event loop
    that it is made in."""
    registry = CollectorRegistry()
    registry.register(LoopDelay())
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry
