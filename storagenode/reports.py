"""What a node tells auto-admin of its replicas."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cluster.topology import PartitionState, Topology
from cluster.wire import node_pb2
from storagenode.hosted import HostedReplica


def replica_report(hosted: HostedReplica, filled: Iterable[int]) -> node_pb2.ReplicaReport:
    """One replica as it is now. `filled`: the indexes that hold all of the partition."""
    replica, applied = hosted.replica, hosted.partition.applied
    membership = replica.committed_membership
    return node_pb2.ReplicaReport(
        partition=hosted.partition_id,
        replica=replica.replica,
        role=replica.role,
        epoch=replica.epoch,
        leader_replica=replica.leader,
        position=replica.last_position,
        applied=applied.position,
        items=applied.items,
        size=applied.size,
        serving=hosted.serving,
        filled_indexes=sorted(filled),
        membership_version=membership.version,
        voters=membership.voters,
        old_voters=membership.old_voters,
        learners=membership.learners,
        lacks_state=replica.lacks_state or replica.wanted_snapshot is not None,
        log_only=replica.log_only,
    )


def dropped_replicas(topology: Topology, node: int, holds: Callable[[int, int], bool]) -> list[int]:
    """Replicas that `node` was ordered to drop and that are not here, or not any more. `holds(partition, replica)`."""
    ordered = [
        (partition.id, replica)
        for partition in topology.partitions.values()
        for replica in (
            [place.replica for place in partition.replicas if place.node == node]
            if partition.state is PartitionState.DROPPED
            else [order.replica for order in partition.dropping if order.node == node]
        )
    ]
    return [replica for partition, replica in ordered if not holds(partition, replica)]
