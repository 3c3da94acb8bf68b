"""What auto-admin takes from reports: replicas that are no members any more, versions, orders carried out, and
memberships that it does not know because it has lost its state."""

from __future__ import annotations

from collections.abc import Iterator

from autoadmin.actions import AdoptMembers, ReleaseReplicas, Step, TakeVersion
from autoadmin.plans.situation import VOTERS, Situation
from autoadmin.view import LeaderSeen, View
from cluster.topology import Partition, PartitionState, Topology


def plan_orders(situation: Situation, seen: View) -> Iterator[Step]:
    """The steps that follow from reports alone."""
    for partition in situation.active:
        leader = situation.settled_leader(partition)
        if leader is None or leader.version < partition.membership_version:
            continue
        if leader.version == partition.membership_version and not partition.leaving and not _is_behind(partition):
            continue  # nothing has happened since
        if any(partition.replica(voter) is None for voter in leader.voters):
            yield from _adopted(partition, leader, seen)
        elif gone := _released(partition, leader):
            yield ReleaseReplicas(partition.id, gone, leader.version)
        elif (leader.version > partition.membership_version or _is_behind(partition)) and _is_done(partition, leader):
            yield TakeVersion(partition.id, leader.version)
    yield from _versions_of_dropped(situation, seen)


def _is_behind(partition: Partition) -> bool:
    """Whether an order names an older membership than the record: the replica may know a later one than the order, and
    then it does not obey, as when a leader that had not heard of the order took it in once more."""
    return any(order.membership_version < partition.membership_version for order in partition.dropping)


def carried_out(topology: Topology, seen: View) -> frozenset[int]:
    """Replicas that orders of partitions in use name, and that their own nodes have dropped, or took with them when
    those were removed."""
    return frozenset(
        order.replica
        for partition in topology.partitions.values()
        if partition.state is PartitionState.ACTIVE
        for order in partition.dropping
        if order.node not in topology.nodes
        or (order.node in seen.nodes and order.replica in seen.nodes[order.node].dropped)
    )


def _released(partition: Partition, leader: LeaderSeen) -> tuple[int, ...]:
    """Replicas that leave and are no members any more. A full one only once so many others are full voters as the
    partition is to have: till then it may be needed, if not by the others then as a copy."""
    full = [place for place in partition.replicas if place.replica in leader.voters and not place.log_only]
    enough = len(full) >= min(VOTERS, len(partition.wanted_voters))
    return tuple(
        place.replica
        for place in partition.replicas
        if place.replica in partition.leaving
        and place.replica not in leader.voters
        and place.replica not in leader.learners
        and (enough or place.log_only)
    )


def _is_done(partition: Partition, leader: LeaderSeen) -> bool:
    """Whether no change is under way, and no replica that is to be dropped is a member."""
    members = {*leader.voters, *leader.learners}
    wanted = {place.replica for place in partition.wanted_voters}
    if partition.leaving or wanted != set(leader.voters):
        return False
    return not any(order.replica in members for order in partition.dropping)


def _adopted(partition: Partition, leader: LeaderSeen, seen: View) -> Iterator[AdoptMembers]:
    """The voters, which are of a later membership than the record, if every one's node is known."""
    places = {place.replica: (place.node, place.log_only) for place in partition.replicas}
    for node, report in seen.nodes.items():
        places.update(
            (replica.replica, (node, replica.log_only))
            for replica in report.report.replicas
            if replica.partition == partition.id
        )
    if all(voter in places for voter in leader.voters):
        yield AdoptMembers(partition.id, tuple((voter, *places[voter]) for voter in leader.voters), leader.version)


def _versions_of_dropped(situation: Situation, seen: View) -> Iterator[TakeVersion]:
    """Tables are deleted while members change, too: the orders then name the newest version that anyone reports."""
    dropped = {
        partition.id: partition.membership_version
        for partition in situation.topology.partitions.values()
        if partition.state is PartitionState.DROPPED
    }
    if not dropped:
        return
    newest = dict(dropped)
    for node in seen.nodes.values():
        for replica in node.report.replicas:
            if replica.membership_version > newest.get(replica.partition, replica.membership_version):
                newest[replica.partition] = replica.membership_version
    yield from (
        TakeVersion(partition, newest[partition])
        for partition in sorted(dropped)
        if newest[partition] > dropped[partition]
    )
