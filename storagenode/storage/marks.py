"""How the node stopped the last time, and what may be trusted after that.

Three files in the data folder tell: `boot`, the id of the boot in which the node last ran, and `clean`, which says that
since the last write everything was synced; and `starts`, how many lives in a row ended before they were steady: LMDB
may end the process, rather than fail, when it meets a damaged page. The order of a life:

1. `last_stop`: unless it is `trusted`, throw every environment away, before anything else.
2. `forget_clean`; then the log is opened, which cuts off what a crash of the machine left of its last batch. A process
   killed in the middle of that leaves the older boot's id, so that the next life does it again.
3. `mark_running`: from here on the environments may hold what is not on the disk.
4. Serve.
5. Sync every environment; only if all succeeded, `mark_clean`.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from cluster.disk import Disk
from cluster.files import read_file, replace_file
from storagenode.storage.store import Stores

_BOOT: Final = "boot"
_CLEAN: Final = "clean"
_STARTS: Final = "starts"
STEADY_SECONDS: Final = 5.0
"""A life that lasts so long was well."""
UNSTEADY_MAX: Final = 3
"""After so many others in a row the stores are not trusted any more."""


class LastStop(Enum):
    """How the node stopped the last time."""

    NEVER_RAN = "never ran"
    CLEAN = "clean"
    PROCESS_CRASHED = "process crashed"
    MACHINE_CRASHED = "machine crashed"
    KEEPS_CRASHING = "process crashed again and again"

    @property
    def trusted(self) -> bool:
        """Whether what processes wrote is there, and does them no harm: environments are whole."""
        return self in (LastStop.CLEAN, LastStop.PROCESS_CRASHED)


def last_stop(disk: Disk, directory: str) -> LastStop:
    """Read the marks; changes nothing."""
    if disk.exists(f"{directory}/{_CLEAN}"):
        return LastStop.CLEAN
    boot_id = read_file(disk, f"{directory}/{_BOOT}")
    if boot_id is None:
        return LastStop.NEVER_RAN
    if boot_id != disk.boot_id().encode():
        return LastStop.MACHINE_CRASHED
    return LastStop.PROCESS_CRASHED if _unsteady(disk, directory) < UNSTEADY_MAX else LastStop.KEEPS_CRASHING


def count_start(disk: Disk, directory: str, stop: LastStop) -> None:
    """Before any environment is opened: this life is not steady yet. `stop`: what `last_stop` gave."""
    before = _unsteady(disk, directory) if stop is LastStop.PROCESS_CRASHED else 0
    replace_file(disk, directory, _STARTS, b"%d" % (before + 1))


def mark_steady(disk: Disk, directory: str) -> None:
    """This life was well for `STEADY_SECONDS`."""
    replace_file(disk, directory, _STARTS, b"0")


def _unsteady(disk: Disk, directory: str) -> int:
    content = read_file(disk, f"{directory}/{_STARTS}") or b""
    return int(content) if content.isdigit() else 0


def discard_untrusted(stop: LastStop, stores: Stores) -> None:
    """Throw away what may be damaged."""
    if not stop.trusted:
        for partition, replica in stores.existing():
            stores.discard(partition, replica)


def mark_running(disk: Disk, directory: str) -> None:
    """Before the first write to an environment: this boot's id is durable, and the clean mark durably gone."""
    replace_file(disk, directory, _BOOT, disk.boot_id().encode())
    forget_clean(disk, directory)


def forget_clean(disk: Disk, directory: str) -> None:
    """Before the first write to the log: the clean mark is durably gone."""
    if disk.exists(f"{directory}/{_CLEAN}"):
        disk.remove(f"{directory}/{_CLEAN}")
        disk.sync_directory(directory)


def mark_clean(disk: Disk, directory: str) -> None:
    """After the last write, when every environment was synced."""
    replace_file(disk, directory, _CLEAN, b"")
