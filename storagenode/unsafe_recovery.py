"""A partition whose majority is lost for good goes on with what one surviving replica has: an operator's last resort.

The node is stopped. A new membership, whose only voter is the survivor, is put at the end of its log, as if it had led
an epoch far above whatever those that are lost may have gone to. When the node starts, the replica elects itself,
commits all that its log holds, and takes new replicas in. Writes that the lost ones alone acknowledged are gone, and
ones that nobody acknowledged may come to pass: so it is never done but by an order that names partition and replica.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from cluster.disk import Disk
from cluster.files import read_file
from replication.effects import HardState
from replication.membership import Member, Membership
from replication.messages import MEMBERSHIP, Entry
from storagenode.identity import FILE_NAME, Identity
from storagenode.log.node_log import NodeLog, RecoveredReplica
from storagenode.log.segments import has_log
from storagenode.snapshots.recovering import founding_membership, log_summary
from storagenode.storage import marks
from storagenode.storage.marks import LastStop

AHEAD: Final = 1_000
"""So much higher than what the survivor knows are the new epoch and the membership's version: above what was lost."""


class RecoveryRefused(Exception):  # noqa: N818 - an answer, not a fault
    """The order is not carried out; the text is one plain sentence."""


@dataclass(frozen=True, slots=True)
class Survivor:
    """One replica on the stopped node, and what its log says of the partition."""

    partition: int
    replica: int
    epoch: int
    last_position: int
    membership: Membership

    @property
    def others(self) -> tuple[Member, ...]:
        """The other members that vote, as far as this replica knows."""
        voters = self.membership.replicas()
        return tuple(m for m in self.membership.members if m.replica != self.replica and m.replica in voters)


class StoppedNode:
    """The log of a node that does not run, opened for this alone. Whoever makes it holds the folder's lock."""

    def __init__(self, disk: Disk, data: str, segment_bytes: int) -> None:
        """Raises RecoveryRefused, LogError, OSError."""
        self._disk, self._data = disk, data
        content = read_file(disk, f"{data}/{FILE_NAME}")
        if content is None or not has_log(disk, f"{data}/log"):
            raise RecoveryRefused(f"{data} holds no storage node's log: there is nothing to go on with.")
        self.node = msgspec.json.decode(content, type=Identity).node
        self._stop = marks.last_stop(disk, data)
        marks.forget_clean(disk, data)
        self._log, found = NodeLog.open(
            disk,
            f"{data}/log",
            machine_crashed=self._stop is LastStop.MACHINE_CRASHED,
            segment_bytes=segment_bytes,
        )
        self._found = found.replicas

    def survivors(self) -> list[Survivor]:
        """Every replica that the log knows, in order of partitions."""
        return [_survivor(self._found[partition]) for partition in sorted(self._found)]

    def check(self, orders: Iterable[tuple[int, int]]) -> list[Survivor]:
        """The replicas of these (partition, replica). Raises RecoveryRefused when one of them cannot lead alone."""
        return [self._checked(partition, replica) for partition, replica in orders]

    def lead_alone(self, orders: Iterable[tuple[int, int]]) -> None:
        """Put a membership of their own into the logs of these (partition, replica); durable when it returns.

        All of them or, when one is refused, none. Raises RecoveryRefused, LogError.
        """
        for survivor in self.check(orders):
            epoch = survivor.epoch + AHEAD
            alone = Membership(
                (survivor.replica,), survivor.membership.version + AHEAD, (Member(survivor.replica, self.node),)
            )
            entry = Entry(epoch, survivor.last_position + 1, alone.encode(), MEMBERSHIP)
            self._log.append_hard_state(survivor.partition, HardState(epoch, survivor.replica))
            self._log.append_entries(survivor.partition, [entry])
        while self._log.pending():
            batch = self._log.take()
            self._log.write(batch)
            self._log.written(batch)

    def _checked(self, partition: int, replica: int) -> Survivor:
        found = self._found.get(partition)
        if found is None or found.replica != replica:
            raise RecoveryRefused(f"This node has no replica {replica} of partition {partition}.")
        survivor = _survivor(found)
        if replica not in survivor.membership.replicas():
            raise RecoveryRefused(
                f"Replica {replica} of partition {partition} did not vote: it may lack most of the partition."
            )
        if survivor.membership.is_log_only(replica):
            raise RecoveryRefused(f"Replica {replica} of partition {partition} keeps a log alone, and has no items.")
        if not survivor.others:
            raise RecoveryRefused(f"Replica {replica} of partition {partition} is alone already: start its node.")
        return survivor

    def close(self) -> None:
        """Leave the node as it was stopped."""
        self._log.close()
        if self._stop is LastStop.CLEAN:
            marks.mark_clean(self._disk, self._data)


def _survivor(found: RecoveredReplica) -> Survivor:
    memberships = log_summary(found).memberships
    membership = memberships[-1][1] if memberships else founding_membership(found)
    last_epoch = found.epochs[-1][0] if found.epochs else found.snapshot_epoch
    epoch = max(found.hard_state.epoch, last_epoch, found.snapshot_epoch)
    return Survivor(found.partition, found.replica, epoch, found.last_position, membership)


NameOf = Callable[[int], str]


def risk(survivor: Survivor, name_of: NameOf) -> str:
    """What is at stake, in one sentence. `name_of`: how people call a node."""
    nodes = " and ".join(name_of(member.node) for member in survivor.others) or "nobody"
    return (
        f"Partition {survivor.partition} goes on from position {survivor.last_position} of replica {survivor.replica}: "
        f"writes that only {nodes} acknowledged after it are lost, and their replicas never count again."
    )
