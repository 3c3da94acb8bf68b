"""Changes of the catalog that say which replicas and nodes there should be. Made durable elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from autoadmin.actions import (
    AddReplica,
    AdoptMembers,
    ChangeLeaving,
    PreferLeader,
    ReleaseReplicas,
    Step,
    TakeVersion,
)
from autoadmin.catalog import Catalog, Change
from cluster.topology import (
    CatalogUpdate,
    DropOrder,
    MembershipChange,
    NodePlace,
    Partition,
    PartitionState,
    ReplicaPlace,
    Topology,
)


def with_steps(catalog: Catalog, steps: Iterable[Step]) -> Change | None:
    """The records with all these steps done; None when none of them changes anything."""
    topology = catalog.topology
    changed: dict[int, Partition] = {}
    next_replica = catalog.counters.replica
    for step in steps:
        partition = changed.get(step.partition) or topology.partitions[step.partition]
        if isinstance(step, AddReplica):
            after = _added(partition, step, topology.nodes[step.node], next_replica)
            next_replica += 1
        else:
            after = _stepped(topology, partition, step)
        changed[partition.id] = after
    version = topology.version + 1
    records = tuple(
        replace(partition, version=version)
        for partition in changed.values()
        if partition != topology.partitions[partition.id]
    )
    if not records:
        return None
    return Change(_update(topology, partitions=records), replace(catalog.counters, replica=next_replica))


def _added(partition: Partition, step: AddReplica, node: NodePlace, replica: int) -> Partition:
    place = ReplicaPlace(replica, node.id, node.zone, step.log_only)
    return replace(partition, replicas=(*partition.replicas, place), leaving=step.leaving, change=step.change)


def _stepped(topology: Topology, partition: Partition, step: Step) -> Partition:
    match step:
        case ChangeLeaving(_, leaving):
            return replace(partition, leaving=leaving)
        case ReleaseReplicas(_, replicas, membership_version):
            return _released(partition, replicas, membership_version)
        case TakeVersion(_, membership_version):
            orders = tuple(replace(order, membership_version=membership_version) for order in partition.dropping)
            return replace(partition, membership_version=membership_version, dropping=orders)
        case AdoptMembers(_, voters, membership_version):
            return _adopted(topology, partition, voters, membership_version)
        case PreferLeader(_, replica):
            return replace(partition, preferred_leader=replica)
    raise AssertionError(step)


def _released(partition: Partition, replicas: Collection[int], membership_version: int) -> Partition:
    """Orders to drop them, in their places."""
    orders = tuple(
        DropOrder(place.replica, place.node, membership_version)
        for place in partition.replicas
        if place.replica in replicas
    )
    leaving = tuple(replica for replica in partition.leaving if replica not in replicas)
    return replace(
        partition,
        replicas=tuple(place for place in partition.replicas if place.replica not in replicas),
        leaving=leaving,
        dropping=(*partition.dropping, *orders),
        membership_version=membership_version,
        change=partition.change if leaving else MembershipChange.NONE,
    )


def _adopted(
    topology: Topology, partition: Partition, voters: Iterable[tuple[int, int, bool]], membership_version: int
) -> Partition:
    known = {place.replica: place for place in partition.replicas}
    places = []
    for replica, node, log_only in voters:
        place = topology.nodes.get(node)
        zone = known[replica].zone if replica in known else "" if place is None else place.zone
        places.append(ReplicaPlace(replica, node, zone, log_only))
    staying = {place.replica for place in places}
    gone = tuple(
        DropOrder(place.replica, place.node, membership_version)
        for place in partition.replicas
        if place.replica not in staying
    )
    return replace(
        partition,
        replicas=tuple(places),
        leaving=(),
        dropping=(*partition.dropping, *gone),
        membership_version=membership_version,
        change=MembershipChange.NONE,
    )


def with_draining(catalog: Catalog, node: int, *, draining: bool) -> Change | None:
    """The node to be emptied, or no longer."""
    topology = catalog.topology
    place = topology.nodes[node]
    if place.draining == draining:
        return None
    record = replace(place, draining=draining, version=topology.version + 1)
    return Change(_update(topology, nodes=(record,)), catalog.counters)


def without_nodes(catalog: Catalog, nodes: Collection[int]) -> Change | None:
    """These nodes removed from the cluster, and with them every order to drop a replica there.

    Replicas of partitions in use are not touched: a node that holds one is not to be removed.
    """
    topology, version = catalog.topology, catalog.topology.version + 1
    gone = [topology.nodes[node] for node in nodes if node in topology.nodes]
    if not gone:
        return None
    shorter, done = [], []
    for partition in topology.partitions.values():
        after = _without_nodes(partition, {node.id for node in gone})
        if after.state is PartitionState.DROPPED and not after.replicas:
            done.append(partition.id)
        elif after != partition:
            shorter.append(replace(after, version=version))
    records = tuple(replace(node, removed=True, version=version) for node in gone)
    update = _update(topology, partitions=tuple(shorter), removed_partitions=tuple(done), nodes=records)
    return Change(update, catalog.counters)


def _without_nodes(partition: Partition, nodes: Collection[int]) -> Partition:
    replicas = partition.replicas
    if partition.state is PartitionState.DROPPED:
        replicas = tuple(place for place in replicas if place.node not in nodes)
    dropping = tuple(order for order in partition.dropping if order.node not in nodes)
    return replace(partition, replicas=replicas, dropping=dropping)


def _update(
    topology: Topology,
    *,
    partitions: tuple[Partition, ...] = (),
    removed_partitions: tuple[int, ...] = (),
    nodes: tuple[NodePlace, ...] = (),
) -> CatalogUpdate:
    return CatalogUpdate(
        topology.cluster_id,
        topology.epoch,
        topology.version,
        topology.version + 1,
        partitions=partitions,
        removed_partitions=removed_partitions,
        nodes=nodes,
    )
