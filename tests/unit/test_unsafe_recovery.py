"""Which replicas of a stopped node may be told to go on alone, and what is in the log after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.local_disk import LocalDisk
from cluster.random_source import SeededRandom
from replication.effects import HardState
from replication.membership import Member, Membership
from replication.messages import Entry
from storagenode.identity import start_identity
from storagenode.log.node_log import NodeLog
from storagenode.unsafe_recovery import AHEAD, RecoveryRefused, StoppedNode, Survivor, risk

SEGMENT_BYTES = 1 << 20
DISK = LocalDisk()
THREE = Membership((11, 12, 13), 1, (Member(11, 1), Member(12, 2), Member(13, 3)))
MEMBERSHIPS = {
    7: THREE,
    8: Membership((12, 13), 5, (Member(11, 1), Member(12, 2), Member(13, 3))),
    9: Membership((11, 12, 13), 4, (Member(11, 1, log_only=True), Member(12, 2), Member(13, 3))),
    10: Membership((11,), 9, (Member(11, 1),)),
}
"""By partition, as replica 11 on this node knows them: it votes; learns; keeps the log; is alone."""


@pytest.fixture
def data(tmp_path: Path) -> str:
    """A stopped node's folder. Its replica of each partition has two entries, of epoch 4, and has voted in epoch 6."""
    folder = str(tmp_path)
    start_identity(DISK, folder, "cluster", SeededRandom(1))
    log, _ = NodeLog.open(DISK, f"{folder}/log", machine_crashed=False, segment_bytes=SEGMENT_BYTES)
    for partition, membership in MEMBERSHIPS.items():
        log.open_partition(partition, 11)
        log.append_membership(partition, 0, membership.encode())
        log.append_hard_state(partition, HardState(6, 12))
        log.append_entries(partition, [Entry(4, 1, b"a"), Entry(4, 2, b"b")])
    while log.pending():
        batch = log.take()
        log.write(batch)
        log.written(batch)
    log.close()
    return folder


def survivors(data: str) -> dict[int, Survivor]:
    node = StoppedNode(DISK, data, SEGMENT_BYTES)
    try:
        return {survivor.partition: survivor for survivor in node.survivors()}
    finally:
        node.close()


def test_a_voter_is_alone_afterwards_far_ahead_of_whatever_was_lost(data: str) -> None:
    before = survivors(data)
    node = StoppedNode(DISK, data, SEGMENT_BYTES)
    node.lead_alone([(7, 11)])
    node.close()
    after = survivors(data)
    assert {p: s for p, s in after.items() if p != 7} == {p: s for p, s in before.items() if p != 7}
    alone = Membership((11,), THREE.version + AHEAD, (Member(11, node.node),))
    assert after[7] == Survivor(7, 11, 6 + AHEAD, 3, alone)
    log, found = NodeLog.open(DISK, f"{data}/log", machine_crashed=False, segment_bytes=SEGMENT_BYTES)
    assert found.replicas[7].hard_state == HardState(6 + AHEAD, 11)
    assert [entry.payload for entry in log.read(7, 1, 1 << 20)] == [b"a", b"b", alone.encode()]
    log.close()


@pytest.mark.parametrize(
    ("partition", "replica", "why"),
    [
        (8, 11, "did not vote"),
        (9, 11, "keeps a log alone"),
        (10, 11, "is alone already"),
        (7, 12, "no replica 12 of partition 7"),
        (99, 11, "no replica 11 of partition 99"),
    ],
)
def test_others_are_refused_and_nothing_is_done_for_anybody(data: str, partition: int, replica: int, why: str) -> None:
    before = survivors(data)
    node = StoppedNode(DISK, data, SEGMENT_BYTES)
    with pytest.raises(RecoveryRefused, match=why):
        node.lead_alone([(7, 11), (partition, replica)])
    node.close()
    assert survivors(data) == before


def test_a_folder_without_a_node_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(RecoveryRefused, match="holds no storage node's log"):
        StoppedNode(DISK, str(tmp_path), SEGMENT_BYTES)
    assert list(tmp_path.iterdir()) == []


def test_the_risk_is_told_by_names() -> None:
    survivor = Survivor(7, 11, 6, 42, THREE)
    said = risk(survivor, {2: "b-1", 3: "c-1"}.__getitem__)
    assert "from position 42 of replica 11" in said
    assert "only b-1 and c-1 acknowledged" in said
