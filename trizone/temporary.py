"""Folders for clusters that keep nothing: in memory where there is room, and gone even if their makers were killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX = "trizone-"
ALIVE = "alive"
"""A file in each folder, locked as long as the maker lives."""
MEMORY = Path("/dev/shm")
FREE_BYTES_MIN = 2 << 30


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A new folder that is removed at the end. Removes those of makers that did not get to do so."""
    parent = MEMORY if _has_room(MEMORY) else Path(tempfile.gettempdir())
    remove_abandoned(parent)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    alive = _locked(folder)
    try:
        yield folder
    finally:
        os.close(alive)
        shutil.rmtree(folder, ignore_errors=True)


def _has_room(folder: Path) -> bool:
    try:
        return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free >= FREE_BYTES_MIN
    except OSError:
        return False


def _locked(folder: Path) -> int:
    """Lock the folder's `alive` file, which gets its name only once it is locked: so nobody finds it unlocked."""
    draft = folder / "alive.new"
    descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    draft.rename(folder / ALIVE)
    return descriptor


def remove_abandoned(parent: Path) -> None:
    """Remove folders whose makers are gone."""
    for alive in parent.glob(f"{PREFIX}*/{ALIVE}"):
        try:
            descriptor = os.open(alive, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        else:
            shutil.rmtree(alive.parent, ignore_errors=True)
        finally:
            os.close(descriptor)
