"""How the node stopped the last time, and what may be trusted after that.

Two files in the data folder tell: `boot`, the id of the boot in which the node last ran, and `clean`, which says that
since the last write everything was synced. The order of a life:

1. `last_stop`: unless it is `trusted`, throw every environment away, before anything else.
2. `mark_running`: from here on the environments may hold what is not on the disk.
3. Serve.
4. Sync every environment; only if all succeeded, `mark_clean`.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from cluster.disk import Disk
from cluster.files import read_file, replace_file
from storagenode.storage.store import Stores

_BOOT: Final = "boot"
_CLEAN: Final = "clean"


class LastStop(Enum):
    """How the node stopped the last time."""

    NEVER_RAN = "never ran"
    CLEAN = "clean"
    PROCESS_CRASHED = "process crashed"
    MACHINE_CRASHED = "machine crashed"

    @property
    def trusted(self) -> bool:
        """Whether what processes wrote is there: environments are whole, and no frame of the log is torn."""
        return self in (LastStop.CLEAN, LastStop.PROCESS_CRASHED)


def last_stop(disk: Disk, directory: str) -> LastStop:
    """Read the marks; changes nothing."""
    if disk.exists(f"{directory}/{_CLEAN}"):
        return LastStop.CLEAN
    boot_id = read_file(disk, f"{directory}/{_BOOT}")
    if boot_id is None:
        return LastStop.NEVER_RAN
    return LastStop.PROCESS_CRASHED if boot_id == disk.boot_id().encode() else LastStop.MACHINE_CRASHED


def discard_untrusted(stop: LastStop, stores: Stores) -> None:
    """Throw away what a crash of the machine may have damaged."""
    if not stop.trusted:
        for partition, replica in stores.existing():
            stores.discard(partition, replica)


def mark_running(disk: Disk, directory: str) -> None:
    """Before the first write: this boot's id is durable, and then the clean mark durably gone."""
    replace_file(disk, directory, _BOOT, disk.boot_id().encode())
    if disk.exists(f"{directory}/{_CLEAN}"):
        disk.remove(f"{directory}/{_CLEAN}")
        disk.sync_directory(directory)


def mark_clean(disk: Disk, directory: str) -> None:
    """After the last write, when every environment was synced."""
    replace_file(disk, directory, _CLEAN, b"")
