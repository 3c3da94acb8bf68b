"""What every service's `__main__` does alike: read settings, start logs and the event loop, stop cleanly on a signal.

A process that cannot start says why in one sentence and ends with exit code 2.
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import gc
import os
import resource
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence

import uvloop

from cluster.configuration import read_settings
from cluster.settings import S, SettingsError
from cluster.telemetry import configure_logging

EXIT_CANNOT_START = 2
GARBAGE_THRESHOLD = 50_000
"""Objects made before the youngest are looked through for garbage: requests leave no cycles, the search costs time."""
CONFIG_HELP = "settings, a TOML file; of several, later ones win; TRIZONE_NAME in the environment wins over all"


class StartError(Exception):
    """The process cannot start; the text is one plain sentence for the person who started it."""


Main = Callable[[S, asyncio.Event], Awaitable[None]]
"""A service: given its settings, it serves until the event is set."""


def run_service(service: str, kind: type[S], main: Main[S], argv: Sequence[str] | None = None) -> int:
    """Run a service until SIGTERM or SIGINT; its exit code. Settings come from `--config FILE`, which may be given
    several times, and from the environment."""
    parser = argparse.ArgumentParser(prog=service)
    parser.add_argument("--config", metavar="FILE", action="append", default=[], help=CONFIG_HELP)
    paths = parser.parse_args(argv).config
    try:
        settings = read_settings(kind, paths, os.environ)
        configure_logging(settings.log_format, settings.log_level, service)
        raise_descriptor_limit()
        uvloop.run(_until_signal(settings, main))
    except (SettingsError, StartError) as error:
        print(error, file=sys.stderr)
        return EXIT_CANNOT_START
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES):
            raise
        print(f"{error.strerror or error}.", file=sys.stderr)
        return EXIT_CANNOT_START
    return 0


def settle_garbage() -> None:
    """Called when a service is ready: what it is made of stays, and is never looked through for garbage again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD)


def raise_descriptor_limit() -> None:
    """Raise RLIMIT_NOFILE to its hard limit: every replica's environment takes descriptors. Raises StartError."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:
        raise StartError(f"The limit of open files cannot be raised to {hard}: {error}.") from error


async def _until_signal(settings: S, main: Main[S]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await main(settings, stop)
