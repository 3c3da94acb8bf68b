"""The folder that a storage node stores everything in: taken for as long as the process lives.

Two processes on one folder would write into each other's log, so it is locked. Nodes in containers that share a
volume take the first numbered folder in it that is free.
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass

import msgspec

from cluster.settings import StorageNodeSettings

LOCK = "lock"
SLOTS_MAX = 100


class FolderError(Exception):
    """The folder cannot be used; the text is one plain sentence."""


@dataclass(frozen=True)
class Taken:
    """The settings with the folder that was taken, and the lock, which ends with the process."""

    settings: StorageNodeSettings
    lock: int


def take_folder(settings: StorageNodeSettings) -> Taken:
    """Take the node's folder. Raises FolderError when another process has it, or it cannot be made."""
    if not settings.data_slots:
        lock = _locked(settings.data)
        if lock is None:
            raise FolderError(f"The data directory {settings.data} is in use by another storage node.")
        return Taken(settings, lock)
    for number in range(1, SLOTS_MAX + 1):
        folder = f"{settings.data}/{number}"
        if (lock := _locked(folder)) is not None:
            return Taken(msgspec.structs.replace(settings, data=folder, name=f"{settings.name}-{number}"), lock)
    raise FolderError(f"All {SLOTS_MAX} folders in {settings.data} are in use by other storage nodes.")


def _locked(folder: str) -> int | None:
    """An open, locked descriptor, or None when another process holds the lock. Raises FolderError."""
    try:
        os.makedirs(folder, exist_ok=True)
        descriptor = os.open(f"{folder}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise FolderError(f"The data directory {folder} cannot be used: {error.strerror}.") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
