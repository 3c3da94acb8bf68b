"""Where a member of auto-admin keeps what must survive a restart: one synced transaction per flush. records.py says
what is in it."""

from __future__ import annotations

import fcntl
import os
from typing import Protocol

import lmdb

from autoadmin.records import Damaged, Stored, Write, cleared, read, writes

MAP_BYTES = 1 << 30


class StateError(Exception):
    """The state cannot be used: in use, damaged, or another cluster's. The text is one plain sentence."""


class StateStore(Protocol):
    """Calls block."""

    def load(self) -> Stored:
        """All of it as of the last write. Raises StateError."""
        ...

    def write(self, write: Write) -> None:
        """Make it durable, all or nothing. Raises OSError when it cannot; then nothing has changed."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class LmdbState:
    """The state in an LMDB environment of its own, which one process holds at a time."""

    def __init__(self, directory: str) -> None:
        """Open or make it. Raises StateError when another process has it, or it is damaged."""
        os.makedirs(directory, exist_ok=True)
        self._directory = directory
        self._lock = os.open(f"{directory}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise StateError(f"The data directory {directory} is in use by another auto-admin.") from None
        try:
            self._environment = lmdb.open(f"{directory}/state", map_size=MAP_BYTES, lib_version=1)
        except lmdb.Error as error:
            os.close(self._lock)
            raise _damaged(directory, error) from error
        _sync_directory(directory)

    def load(self) -> Stored:
        """All of it as of the last write. Raises StateError when a record is damaged."""
        try:
            with self._environment.begin() as transaction:
                return read((bytes(key), bytes(value)) for key, value in transaction.cursor())
        except (lmdb.Error, Damaged) as error:
            raise _damaged(self._directory, error) from error

    def write(self, write: Write) -> None:
        """Write it in one transaction, which is on the disk when this returns. Raises OSError."""
        try:
            with self._environment.begin(write=True) as transaction:
                for first, end in cleared(write):
                    _clear(transaction, first, end)
                for key, value in writes(write):
                    if value is None:
                        transaction.delete(key)
                    else:
                        transaction.put(key, value)
        except lmdb.Error as error:
            raise OSError(f"the state in {self._directory} cannot be written: {error}") from error

    def close(self) -> None:
        """Close the environment and let another process have it."""
        self._environment.close()
        os.close(self._lock)


def _clear(transaction: lmdb.Transaction, first: bytes, end: bytes) -> None:
    cursor = transaction.cursor()
    if cursor.set_range(first):
        while cursor.key() and bytes(cursor.key()) < end:  # after the last key of all it is empty
            cursor.delete()


def _damaged(directory: str, reason: object) -> StateError:
    return StateError(
        f"The state in {directory} is damaged ({reason}): move the folder {directory}/state away; this auto-admin then "
        "joins the other members anew or, if there are none, takes the newest catalog that the storage nodes hold."
    )


class MemoryState:
    """The state of a cluster that keeps nothing, and the tests' twin of LmdbState."""

    def __init__(self) -> None:
        self._records: dict[bytes, bytes] = {}

    def load(self) -> Stored:
        """All of it as of the last write."""
        return read(sorted(self._records.items()))

    def write(self, write: Write) -> None:
        """Keep it."""
        records = dict(self._records)
        for first, end in cleared(write):
            for key in [key for key in records if first <= key < end]:
                del records[key]
        for key, value in writes(write):
            if value is None:
                records.pop(key, None)
            else:
                records[key] = value
        self._records = records

    def close(self) -> None:
        """Nothing to let go of."""


def _sync_directory(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
