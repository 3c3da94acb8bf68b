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
from replication.membership import UNKNOWN, Member, Membership
from replication.replica import Replica
from replication.timing import Timing
from storagenode.hosted import Host, HostedReplica
from storagenode.log.errors import LogBroken, LogCorrupt
from storagenode.log.node_log import RecoveredReplica
from storagenode.membership_steps import may_drop
from storagenode.peers import Peers
from storagenode.snapshots.folder import SnapshotFolder
from storagenode.snapshots.recovering import founding_membership, log_summary, restore_state
from storagenode.storage.memory_store import MemoryStore
from storagenode.storage.store import Store, StoreBroken, Stores

FIRST_VERSION = 1
"""Of the membership that a partition begins with."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where a replica starts from: nothing, or what the log holds of it."""

    membership: Membership
    hard_state: HardState
    log: LogSummary
    is_new: bool
    log_only: bool = False


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
        self._changing: dict[int, int] = {}
        """Partition → replica that is just being opened or dropped."""
        self._topology = Topology()
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
        membership = founding_membership(found)
        place = topology.partition(found.partition)
        log_only = any(each.is_log_only(found.replica) for each in [membership, *dict(summary.memberships).values()])
        log_only = log_only or _is_log_only(place, found.replica)
        origin = _Origin(membership, found.hard_state, summary, is_new=False, log_only=log_only)
        if log_only:
            self._add(found.partition, found.replica, place, origin, MemoryStore())
            return
        store = self._open_store(found.partition, found.replica)
        try:
            restore_state(self._snapshots, self._stores, found, summary.first_position, store)
        except BaseException:
            store.close()
            raise
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
        self._topology = topology
        place = self._place(partition)
        hosted = self._hosted.get(partition.id)
        if hosted is not None:
            hosted.learn(partition.table, {member.replica: member.node for member in partition.replicas})
            if (table := topology.table(partition.table)) is not None:
                hosted.want_schema(table)
        if partition.id in self._changing:
            return
        if hosted is not None and _is_to_go(hosted, partition, place):
            self._changing[partition.id] = hosted.replica.replica
            self._host.start_work(self._drop(hosted))
        elif hosted is None and place is not None and partition.state is PartitionState.ACTIVE:
            self._changing[partition.id] = place.replica
            self._host.start_work(self._open(partition, place, topology))

    def _place(self, partition: Partition) -> ReplicaPlace | None:
        """The replica that is to be on this node: the newest, should there be one after another."""
        places = [place for place in partition.replicas if place.node == self._node]
        return max(places, key=lambda place: place.replica, default=None)

    def holds(self, partition: int, replica: int) -> bool:
        """Whether this very replica is here, or is just being opened or dropped."""
        hosted = self._hosted.get(partition)
        return self._changing.get(partition) == replica or (hosted is not None and hosted.replica.replica == replica)

    def _changed(self, partition_id: int) -> None:
        """What was under way is done; the catalog may say more by now."""
        del self._changing[partition_id]
        if (latest := self._topology.partition(partition_id)) is not None:
            self.follow(latest, self._topology)

    async def _open(self, partition: Partition, place: ReplicaPlace, topology: Topology) -> None:
        founds = place.replica in partition.founders
        membership = _founders(partition) if founds else UNKNOWN
        store = MemoryStore() if place.log_only else await self._opened(partition.id, place.replica)
        log = self._host.log
        log.open_partition(partition.id, place.replica)
        if founds:
            log.append_membership(partition.id, 0, membership.encode())
        durable = asyncio.Event()
        self._host.flusher.after_flush(durable.set)
        await durable.wait()
        origin = _Origin(membership, HardState(0, 0), LogSummary(), is_new=True, log_only=place.log_only)
        hosted = self._add(partition.id, place.replica, partition, origin, store)
        if (table := topology.table(partition.table)) is not None:
            hosted.want_schema(table)
        self._peers.opened(hosted)
        if founds and partition.preferred_leader in (0, place.replica):
            hosted.perform(hosted.replica.stand(self._host.clock.boottime()))
        self._host.role_changed(hosted)
        self._changed(partition.id)

    async def _opened(self, partition: int, replica: int) -> Store:
        """The store of a new replica. Raises LogBroken if it is an old one."""
        store = await self._executor.run(partial(self._open_store, partition, replica))
        if applied := store.applied().position:
            store.close()
            raise LogBroken(
                f"the log holds nothing of partition {partition}, but position {applied} was applied, so that the "
                f"log is lost: {LogCorrupt.REMEDY}"
            )
        return store

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
        if not hosted.replica.log_only:
            await self._executor.run(partial(self._stores.retire, hosted.partition_id, hosted.replica.replica))
            await self._executor.run(partial(self._snapshots.remove_all, hosted.partition_id, hosted.replica.replica))
        self._host.role_changed(hosted)
        self._changed(hosted.partition_id)

    def _add(
        self, partition_id: int, replica_id: int, partition: Partition | None, origin: _Origin, store: Store
    ) -> HostedReplica:
        nodes = {} if partition is None else {member.replica: member.node for member in partition.replicas}
        nodes[replica_id] = self._node
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
            contact=NodeContact(partition_id, nodes, self._peers.leads, self._peers.follows),
            log_only=origin.log_only,
        )
        for member in replica.membership.members:
            nodes.setdefault(member.replica, member.node)
        table_id = 0 if partition is None else partition.table
        hosted = HostedReplica(self._host, partition_id, table_id, replica, store, nodes)
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


def _is_to_go(hosted: HostedReplica, partition: Partition, place: ReplicaPlace | None) -> bool:
    """Whether an order to drop names this very replica, and its own log says nothing against it.

    Of a whole partition only what was agreed on counts, and that is what auto-admin hears of: a change of members that
    was under way may have nobody left to agree on it.
    """
    replica = hosted.replica
    held, agreed = replica.membership, replica.committed_membership
    if partition.state is PartitionState.DROPPED:
        version = partition.membership_version
        return place is not None and place.replica == replica.replica and version >= agreed.version
    return any(
        order.replica == replica.replica and may_drop(replica.replica, held, agreed, order.membership_version)
        for order in partition.dropping
    )


def _founders(partition: Partition) -> Membership:
    """The first voters, and where they were."""
    places = [place for place in partition.replicas if place.replica in partition.founders]
    members = tuple(Member(place.replica, place.node, place.log_only) for place in places)
    return Membership(partition.founders, FIRST_VERSION, members)


def _is_log_only(partition: Partition | None, replica: int) -> bool:
    place = None if partition is None else partition.replica(replica)
    return place is not None and place.log_only
