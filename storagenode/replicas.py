"""The replicas of a node: brought back from disk at the start, opened and dropped as the catalog orders.

Nothing is ever dropped because it is missing somewhere: only an order that names partition, replica and membership
version
drops a replica, and its store goes to the trash first (design §6).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random

from cluster.executor import Executor
from cluster.topology import Partition, PartitionState, ReplicaPlace, Topology
from replication.contact import NodeContact
from replication.effects import HardState
from replication.lease import NEVER
from replication.log import LogSummary
from replication.membership import Membership
from replication.replica import Replica
from replication.timing import Timing
from storagenode.hosted import Host, HostedReplica
from storagenode.log.errors import LogBroken, LogCorrupt
from storagenode.log.node_log import RecoveredReplica
from storagenode.peers import Peers
from storagenode.snapshots.folder import SnapshotFolder
from storagenode.snapshots.recovering import log_summary, restore_state
from storagenode.storage.store import Store, StoreBroken, Stores

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where a replica starts from: nothing, or what the log holds of it."""

    membership: Membership
    hard_state: HardState
    log: LogSummary
    is_new: bool


class Replicas:
    """All replicas on one node, by partition."""

    def __init__(
        self,
        host: Host,
        node: int,
        stores: Stores,
        snapshots: SnapshotFolder,
        executor: Executor,
        peers: Peers,
        timing: Timing,
        random: Random,
    ) -> None:
        self._host = host
        self._node = node
        self._stores = stores
        self._snapshots = snapshots
        self._executor = executor
        self._peers = peers
        self._timing = timing
        self._random = random
        self._hosted: dict[int, HostedReplica] = {}
        self._changing: set[int] = set()
        self.before_drop: Callable[[], Awaitable[object]] = _at_once
        """Waited for before a replica goes."""

    def __iter__(self) -> Iterator[HostedReplica]:
        return iter(list(self._hosted.values()))

    def get(self, partition: int) -> HostedReplica | None:
        """This node's replica of the partition."""
        return self._hosted.get(partition)

    # --- from disk ---

    def recover(self, found: RecoveredReplica, topology: Topology) -> None:
        """Bring one replica back. Blocks."""
        summary = log_summary(found)
        origin = _Origin(Membership.decode(found.membership), found.hard_state, summary, is_new=False)
        store = self._open_store(found.partition, found.replica)
        try:
            restore_state(self._snapshots, self._stores, found, summary.first_position, store)
        except BaseException:
            store.close()
            raise
        place = topology.partition(found.partition)
        self._add(found.partition, found.replica, place, origin, store)

    def _open_store(self, partition: int, replica: int) -> Store:
        try:
            return self._stores.open(partition, replica)
        except StoreBroken as error:
            _log.warning("the store of partition %d is thrown away and made again from the log: %s", partition, error)
            self._stores.discard(partition, replica)
            return self._stores.open(partition, replica)

    # --- from the catalog ---

    def follow(self, partition: Partition, topology: Topology) -> None:
        """Do what the catalog says of this partition, if anything is left to do."""
        place = partition.replica_on(self._node)
        hosted = self._hosted.get(partition.id)
        if hosted is not None:
            hosted.learn(partition.table, {member.replica: member.node for member in partition.replicas})
            if (table := topology.table(partition.table)) is not None:
                hosted.want_schema(table)
        if place is None or partition.id in self._changing:
            return
        if partition.state is PartitionState.ACTIVE and hosted is None:
            self._changing.add(partition.id)
            self._host.start_work(self._open(partition, place, topology))
        elif partition.state is PartitionState.DROPPED and hosted is not None and _is_meant(hosted, partition, place):
            self._changing.add(partition.id)
            self._host.start_work(self._drop(hosted))

    async def _open(self, partition: Partition, place: ReplicaPlace, topology: Topology) -> None:
        membership = Membership(tuple(member.replica for member in partition.replicas), partition.membership_version)
        store = await self._executor.run(partial(self._open_store, partition.id, place.replica))
        if applied := store.applied().position:
            store.close()
            raise LogBroken(
                f"the log holds nothing of partition {partition.id}, but position {applied} was applied, so that the "
                f"log is lost: {LogCorrupt.REMEDY}"
            )
        log = self._host.log
        log.open_partition(partition.id, place.replica)
        log.append_membership(partition.id, membership.version, membership.encode())
        durable = asyncio.Event()
        self._host.flusher.after_flush(durable.set)
        await durable.wait()
        hosted = self._add(
            partition.id,
            place.replica,
            partition,
            _Origin(membership, HardState(0, 0), LogSummary(), is_new=True),
            store,
        )
        self._changing.discard(partition.id)
        if (table := topology.table(partition.table)) is not None:
            hosted.want_schema(table)
        self._peers.opened(hosted)
        if partition.preferred_leader in (0, place.replica):
            hosted.perform(hosted.replica.stand(self._host.clock.boottime()))
        self._host.role_changed(hosted)

    async def _drop(self, hosted: HostedReplica) -> None:
        # The order first: were it forgotten in a crash, the older one to hold a replica would be followed once more.
        await self.before_drop()
        del self._hosted[hosted.partition_id]
        hosted.drop()
        self._host.log.drop_partition(hosted.partition_id, hosted.replica.replica)
        durable = asyncio.Event()
        self._host.flusher.after_flush(durable.set)
        await durable.wait()
        hosted.store.close()
        await self._executor.run(partial(self._stores.retire, hosted.partition_id, hosted.replica.replica))
        await self._executor.run(partial(self._snapshots.remove_all, hosted.partition_id, hosted.replica.replica))
        self._changing.discard(hosted.partition_id)
        self._host.role_changed(hosted)

    def _add(
        self, partition_id: int, replica_id: int, partition: Partition | None, origin: _Origin, store: Store
    ) -> HostedReplica:
        nodes = {} if partition is None else {member.replica: member.node for member in partition.replicas}
        for voter in origin.membership.voters:
            nodes.setdefault(voter, self._node if voter == replica_id else 0)
        others = {voter: node for voter, node in nodes.items() if voter != replica_id}
        now = self._host.clock.boottime()
        replica = Replica(
            replica=replica_id,
            membership=origin.membership,
            timing=self._timing,
            random=self._random,
            hard_state=origin.hard_state,
            log=origin.log,
            applied=store.applied().position,
            now=now,
            restarted_at=NEVER if origin.is_new else now,
            contact=NodeContact(partition_id, others, self._peers.leads, self._peers.follows),
        )
        table_id = 0 if partition is None else partition.table
        hosted = HostedReplica(self._host, partition_id, table_id, replica, store, nodes, others)
        self._hosted[partition_id] = hosted
        self._host.watch(hosted)
        return hosted

    def close(self) -> None:
        """Close every store without syncing."""
        for hosted in self._hosted.values():
            hosted.store.close()

    def sync(self) -> None:
        """Make every store durable. Blocks. Raises StoreBroken."""
        for hosted in self._hosted.values():
            hosted.store.sync()


async def _at_once() -> None:
    """Nothing has to come before."""


def _is_meant(hosted: HostedReplica, partition: Partition, place: ReplicaPlace) -> bool:
    """Whether the order to drop names this very replica, in the membership that its own log knows."""
    replica = hosted.replica
    return place.replica == replica.replica and partition.membership_version == replica.membership.version
