"""What a start does with snapshots: the state that a crash of the machine took comes from the newest one."""

from __future__ import annotations

import logging

from replication.log import LogSummary
from replication.membership import UNKNOWN, Membership
from storagenode.log.errors import LogBroken, LogCorrupt
from storagenode.log.node_log import RecoveredReplica
from storagenode.snapshots.folder import Snapshot, SnapshotCorrupt, SnapshotFolder
from storagenode.storage.store import Store, StoreError, Stores

_log = logging.getLogger(__name__)


def log_summary(found: RecoveredReplica) -> LogSummary:
    """What the core is told of a recovered log, which may have been trimmed. Raises LogBroken.

    The core must know the epoch before its first position. Where neither a snapshot nor the log tells, the first entry
    stands for it.
    """
    first, spans = found.first_position, found.epochs
    memberships = tuple((position, Membership.decode(data)) for position, data in found.memberships if position)
    if first == 1:
        return LogSummary(found.last_position, spans, 1, memberships=memberships)
    if first - 1 == found.snapshot_position:
        rest = spans[1:] if spans and spans[0][0] == found.snapshot_epoch else spans
        begin = (found.snapshot_epoch, first - 1)
        return LogSummary(found.last_position, (begin, *rest), first, memberships=memberships)
    if not spans:
        raise LogBroken(f"the beginning of partition {found.partition} in the log is lost: {LogCorrupt.REMEDY}")
    return LogSummary(found.last_position, spans, first + 1, memberships=memberships)


def founding_membership(found: RecoveredReplica) -> Membership:
    """What was in force before every entry that the log still holds or held, as far as it tells."""
    return next((Membership.decode(data) for position, data in found.memberships if not position), UNKNOWN)


def restore_state(
    folder: SnapshotFolder, stores: Stores, found: RecoveredReplica, first_position: int, store: Store
) -> None:
    """Bring a replica's store to where its log begins, or farther, if a snapshot can. Blocks. Raises LogBroken.

    If none can, the replica starts without its state: it serves nothing until its leader has given it a snapshot.
    """
    applied = store.applied().position
    _require_log_reaches(found, applied)
    usable = _usable(folder, found)
    lost = applied < first_position - 1
    if usable is not None and usable.position > applied and (lost or applied == 0):
        try:
            _restore(folder, stores, usable, found, store)
        except (SnapshotCorrupt, StoreError, OSError) as error:
            _log.error("the snapshot of partition %d is of no use: %s", found.partition, error)
            folder.remove(usable)
    if store.applied().position < first_position - 1:
        _log.error(
            "partition %d has lost its state, and its log begins at %d: it waits for a snapshot from its leader",
            found.partition,
            first_position,
        )


def _require_log_reaches(found: RecoveredReplica, applied: int) -> None:
    if applied > found.last_position:
        raise LogBroken(
            f"the log ends at position {found.last_position} of partition {found.partition}, but position {applied} "
            f"was applied, so that the end of the log is lost: {LogCorrupt.REMEDY}"
        )


def _usable(folder: SnapshotFolder, found: RecoveredReplica) -> Snapshot | None:
    """The newest snapshot that the log knows of, or holds the entries of; what was fetched in vain goes."""
    for snapshot in reversed(folder.all(found.partition, found.replica)):
        if snapshot.manifest.replica == found.replica:
            _require_log_reaches(found, snapshot.position)
            return snapshot
        if snapshot.position <= found.snapshot_position:
            return snapshot
        folder.remove(snapshot)
    return None


def _restore(folder: SnapshotFolder, stores: Stores, snapshot: Snapshot, found: RecoveredReplica, store: Store) -> None:
    restoration = stores.restore(found.partition, found.replica)
    try:
        for chunk in folder.chunks(snapshot):
            restoration.write(chunk)
        restoration.open()
    except BaseException:
        restoration.discard()
        raise
    restoration.place(store)
