"""What a start makes of log, store and snapshots: what is missing comes back, waits for a peer, or stops the node."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from replication.effects import HardState
from replication.log import Log
from replication.membership import Membership
from replication.replica import Replica
from replication.timing import Timing
from storagenode.log.errors import LogBroken, LogCorrupt
from storagenode.log.node_log import RecoveredReplica
from storagenode.snapshots.folder import SnapshotFolder
from storagenode.snapshots.manifest import Manifest
from storagenode.snapshots.recovering import log_summary, restore_state
from storagenode.storage.memory_store import MemoryStores
from storagenode.storage.store import Applied, Store, WriteBatch
from tests.simulation.simulated_disk import SimulatedDisk

PARTITION, REPLICA, OTHER = 7, 901, 902
FOUND = RecoveredReplica(
    partition=PARTITION,
    replica=REPLICA,
    memberships=(),
    hard_state=HardState(3, 0),
    snapshot_epoch=2,
    snapshot_position=20,
    first_position=15,
    last_position=30,
    epochs=((2, 15), (3, 25)),
)


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


@pytest.fixture
def stores() -> MemoryStores:
    return MemoryStores()


@pytest.fixture
def folder(disk: SimulatedDisk) -> SnapshotFolder:
    folder = SnapshotFolder(disk, "snapshots")
    folder.open()
    return folder


def put_snapshot(folder: SnapshotFolder, position: int, source: int = REPLICA) -> None:
    """A snapshot of a store that has applied so much."""
    copied = MemoryStores().open(PARTITION, source)
    copied.write(WriteBatch(Applied(position, 2), {b"key": b"%d" % position}))
    writer = folder.begin(PARTITION, REPLICA, position)
    writer.write(copied.copy().read(1 << 20))
    folder.add(REPLICA, writer.finish(Manifest(PARTITION, source, position, 2, 1, b"", 0, ())))


def recover(
    folder: SnapshotFolder, stores: MemoryStores, applied: int, found: RecoveredReplica = FOUND
) -> tuple[Store, Replica]:
    """A start that finds this on the disk."""
    store = stores.open(PARTITION, REPLICA)
    if applied:
        store.write(WriteBatch(Applied(applied, 2)))
    summary = log_summary(found)
    restore_state(folder, stores, found, summary.first_position, store)
    replica = Replica(
        replica=REPLICA,
        membership=Membership((REPLICA, OTHER, 903)),
        timing=Timing(),
        random=Random(1),
        hard_state=found.hard_state,
        log=summary,
        applied=store.applied().position,
        now=0.0,
    )
    return store, replica


def test_a_store_that_survived_is_used_as_it_is(folder: SnapshotFolder, stores: MemoryStores) -> None:
    put_snapshot(folder, 20)
    store, replica = recover(folder, stores, 22)
    assert store.applied().position == 22
    assert not replica.lacks_state


def test_a_lost_store_comes_from_the_snapshot(folder: SnapshotFolder, stores: MemoryStores) -> None:
    put_snapshot(folder, 20)
    store, replica = recover(folder, stores, 0)
    assert (store.applied().position, store.get(b"key")) == (20, b"20")
    assert (replica.lacks_state, replica.commit, replica.last_position) == (False, 20, 30)


def test_a_store_behind_the_log_comes_from_the_snapshot(folder: SnapshotFolder, stores: MemoryStores) -> None:
    """So it is after a crash between the record of an installed snapshot and the replacement of the store."""
    put_snapshot(folder, 20, OTHER)
    store, _ = recover(folder, stores, 9)
    assert store.applied().position == 20


def test_of_two_snapshots_the_newest_counts(folder: SnapshotFolder, stores: MemoryStores) -> None:
    put_snapshot(folder, 20)
    put_snapshot(folder, 28)
    assert recover(folder, stores, 0)[0].applied().position == 28


def test_what_was_fetched_but_never_installed_goes(folder: SnapshotFolder, stores: MemoryStores) -> None:
    put_snapshot(folder, 20)
    put_snapshot(folder, 200, OTHER)
    assert recover(folder, stores, 0)[0].applied().position == 20
    assert [snapshot.position for snapshot in folder.all(PARTITION, REPLICA)] == [20]


@pytest.mark.parametrize("damage", ["flipped", "gone"])
def test_without_a_snapshot_the_replica_waits_for_its_leader(
    disk: SimulatedDisk, folder: SnapshotFolder, stores: MemoryStores, damage: str
) -> None:
    if damage == "flipped":
        put_snapshot(folder, 20)
        (name,) = [name for name in disk.list("snapshots") if name.endswith(".data")]
        disk.flip_bit(f"snapshots/{name}", 3)
    store, replica = recover(folder, stores, 0)
    assert store.applied().position == 0
    assert replica.lacks_state
    assert replica.wanted_snapshot == replica.first_position - 1
    assert folder.newest(PARTITION, REPLICA) is None
    replica.stand(100.0)
    assert replica.role == "follower"


def test_a_log_from_the_beginning_needs_no_snapshot(folder: SnapshotFolder, stores: MemoryStores) -> None:
    found = replace(FOUND, first_position=1, epochs=((2, 1), (3, 25)), snapshot_position=0, snapshot_epoch=0)
    _, replica = recover(folder, stores, 0, found)
    assert not replica.lacks_state
    assert replica.first_position == 1


@pytest.mark.parametrize("ahead", ["store", "snapshot"])
def test_what_is_ahead_of_the_log_stops_the_node_in_one_sentence(
    folder: SnapshotFolder, stores: MemoryStores, ahead: str
) -> None:
    if ahead == "snapshot":
        put_snapshot(folder, 31)
    with pytest.raises(LogBroken) as stopped:
        recover(folder, stores, 31 if ahead == "store" else 0)
    text = str(stopped.value)
    assert "log ends at position 30" in text
    assert "position 31 was applied" in text
    assert "start it with an empty one" in text
    assert "\n" not in text


def test_corruption_says_what_to_do() -> None:
    assert str(LogCorrupt(5, 4096, "batch 7 is damaged")) == (
        "log segment 0000000000000005 is corrupt at byte 4096 (batch 7 is damaged): move the node's data folder away "
        "and start it with an empty one: it joins as a new node, and its replicas are made again from the other ones"
    )


@pytest.mark.parametrize(
    ("snapshot", "first", "epochs", "known_from", "spans"),
    [
        ((0, 0), 1, ((2, 1),), 1, ((2, 1),)),
        ((2, 14), 15, ((2, 15), (3, 25)), 15, ((2, 14), (3, 25))),
        ((1, 14), 15, ((2, 15), (3, 25)), 15, ((1, 14), (2, 15), (3, 25))),
        ((2, 30), 31, (), 31, ((2, 30),)),
        ((2, 20), 15, ((2, 15), (3, 25)), 16, ((2, 15), (3, 25))),
    ],
)
def test_the_core_knows_every_epoch_it_may_be_asked_for(
    snapshot: tuple[int, int],
    first: int,
    epochs: tuple[tuple[int, int], ...],
    known_from: int,
    spans: tuple[tuple[int, int], ...],
) -> None:
    epoch, position = snapshot
    found = replace(FOUND, snapshot_epoch=epoch, snapshot_position=position, first_position=first, epochs=epochs)
    summary = log_summary(found)
    assert (summary.first_position, summary.last_position, summary.spans) == (known_from, 30, spans)
    log = Log(summary)
    assert all(log.epoch_at(at) is not None for at in range(known_from - 1, 31))


def test_a_log_whose_beginning_is_lost_stops_the_node() -> None:
    with pytest.raises(LogBroken, match="the beginning of partition 7 in the log is lost"):
        log_summary(replace(FOUND, first_position=31, epochs=()))
