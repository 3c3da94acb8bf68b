"""Protobuf ⇄ ours: catalog, topology and the messages between replicas (appends: `storagenode.appends`)."""

from __future__ import annotations

from cluster.topology import (
    CatalogTable,
    CatalogUpdate,
    CatalogUser,
    DropOrder,
    MembershipChange,
    NodePlace,
    Partition,
    PartitionState,
    ReplicaPlace,
)
from cluster.wire import common_pb2, replication_pb2
from dynamo.table import Table, decode_table, encode_table
from dynamo.user import User, decode_user, encode_user
from replication.messages import AppendReply, HandOver, VoteReply, VoteRequest

_MICROSECONDS = 1_000_000


def node_to_wire(node: NodePlace) -> common_pb2.NodeRecord:
    """A node's record."""
    return common_pb2.NodeRecord(
        node=node.id,
        name=node.name,
        region=node.region,
        zone=node.zone,
        address=node.address,
        metrics=node.metrics,
        version=node.version,
        draining=node.draining,
        removed=node.removed,
    )


def node_from_wire(record: common_pb2.NodeRecord) -> NodePlace:
    """A node's record."""
    return NodePlace(
        record.node,
        record.name,
        record.region,
        record.zone,
        record.address,
        record.metrics,
        record.version,
        record.draining,
        record.removed,
    )


def table_to_wire(table: Table, version: int) -> common_pb2.TableRecord:
    """A table's record, with its description as JSON."""
    return common_pb2.TableRecord(
        table=table.id,
        name=table.name,
        schema_version=table.schema_version,
        definition=encode_table(table),
        version=version,
    )


def table_from_wire(record: common_pb2.TableRecord) -> CatalogTable:
    """A table's record."""
    return CatalogTable(decode_table(record.definition), record.version)


def partition_to_wire(partition: Partition) -> common_pb2.PartitionRecord:
    """A partition's record."""
    return common_pb2.PartitionRecord(
        partition=partition.id,
        table=partition.table,
        low=partition.low,
        high=partition.high,
        replicas=[
            common_pb2.ReplicaRecord(replica=place.replica, node=place.node, zone=place.zone, log_only=place.log_only)
            for place in partition.replicas
        ],
        membership_version=partition.membership_version,
        preferred_leader=partition.preferred_leader,
        state=common_pb2.PartitionRecord.State.Name(partition.state),
        version=partition.version,
        leaving=partition.leaving,
        dropping=[
            common_pb2.DropRecord(replica=order.replica, node=order.node, membership_version=order.membership_version)
            for order in partition.dropping
        ],
        change=common_pb2.PartitionRecord.Change.Name(partition.change),
        founders=partition.founders,
    )


def partition_from_wire(record: common_pb2.PartitionRecord) -> Partition:
    """A partition's record."""
    return Partition(
        record.partition,
        record.table,
        record.low,
        record.high,
        tuple(ReplicaPlace(place.replica, place.node, place.zone, place.log_only) for place in record.replicas),
        record.membership_version,
        record.preferred_leader,
        PartitionState(record.state),
        record.version,
        tuple(record.leaving),
        tuple(DropOrder(order.replica, order.node, order.membership_version) for order in record.dropping),
        MembershipChange(record.change),
        tuple(record.founders),
    )


def user_to_wire(user: User, version: int) -> common_pb2.UserRecord:
    """A user's record, with its description as JSON."""
    return common_pb2.UserRecord(user=user.id, name=user.name, definition=encode_user(user), version=version)


def user_from_wire(record: common_pb2.UserRecord) -> CatalogUser:
    """A user's record."""
    return CatalogUser(decode_user(record.definition), record.version)


def update_to_wire(update: CatalogUpdate) -> common_pb2.CatalogUpdate:
    """A change of catalog and topology."""
    return common_pb2.CatalogUpdate(
        cluster_id=update.cluster_id,
        epoch=update.epoch,
        from_version=update.from_version,
        version=update.version,
        tables=[table_to_wire(record.table, record.version) for record in update.tables],
        removed_tables=update.removed_tables,
        partitions=[partition_to_wire(partition) for partition in update.partitions],
        removed_partitions=update.removed_partitions,
        nodes=[node_to_wire(node) for node in update.nodes],
        removed_nodes=update.removed_nodes,
        users=[user_to_wire(record.user, record.version) for record in update.users],
        removed_users=update.removed_users,
    )


def update_from_wire(update: common_pb2.CatalogUpdate) -> CatalogUpdate:
    """A change of catalog and topology."""
    return CatalogUpdate(
        update.cluster_id,
        update.epoch,
        update.from_version,
        update.version,
        tables=tuple(table_from_wire(record) for record in update.tables),
        removed_tables=tuple(update.removed_tables),
        partitions=tuple(partition_from_wire(record) for record in update.partitions),
        removed_partitions=tuple(update.removed_partitions),
        nodes=tuple(node_from_wire(record) for record in update.nodes),
        removed_nodes=tuple(update.removed_nodes),
        users=tuple(user_from_wire(record) for record in update.users),
        removed_users=tuple(update.removed_users),
    )


def append_reply_to_wire(partition: int, message: AppendReply) -> replication_pb2.Appended:
    """A follower's acknowledgement or refusal."""
    return replication_pb2.Appended(
        partition=partition,
        from_replica=message.sender,
        to_replica=message.to,
        epoch=message.epoch,
        accepted=message.accepted,
        match=message.match,
        hint_epoch=message.hint_epoch,
    )


def append_reply_from_wire(message: replication_pb2.Appended) -> AppendReply:
    """A follower's acknowledgement or refusal."""
    return AppendReply(
        message.from_replica, message.to_replica, message.epoch, message.accepted, message.match, message.hint_epoch
    )


def vote_request_to_wire(partition: int, message: VoteRequest) -> replication_pb2.VoteRequest:
    """A candidate's question."""
    return replication_pb2.VoteRequest(
        partition=partition,
        from_replica=message.sender,
        to_replica=message.to,
        epoch=message.epoch,
        last_position=message.last_position,
        last_epoch=message.last_epoch,
        pre=message.pre,
        ordered=message.ordered,
    )


def vote_request_from_wire(message: replication_pb2.VoteRequest) -> VoteRequest:
    """A candidate's question."""
    return VoteRequest(
        message.from_replica,
        message.to_replica,
        message.epoch,
        message.last_position,
        message.last_epoch,
        message.pre,
        message.ordered,
    )


def vote_reply_to_wire(partition: int, message: VoteReply) -> replication_pb2.VoteReply:
    """A voter's answer. What is left of a lease is rounded up to whole microseconds, never down."""
    return replication_pb2.VoteReply(
        partition=partition,
        from_replica=message.sender,
        to_replica=message.to,
        epoch=message.epoch,
        granted=message.granted,
        pre=message.pre,
        lease_left_us=-int(-message.lease_left * _MICROSECONDS // 1),
    )


def vote_reply_from_wire(message: replication_pb2.VoteReply) -> VoteReply:
    """A voter's answer."""
    return VoteReply(
        message.from_replica,
        message.to_replica,
        message.epoch,
        message.granted,
        message.pre,
        message.lease_left_us / _MICROSECONDS,
    )


def hand_over_to_wire(partition: int, message: HandOver) -> replication_pb2.HandOver:
    """A leader's order to stand."""
    return replication_pb2.HandOver(
        partition=partition, from_replica=message.sender, to_replica=message.to, epoch=message.epoch
    )


def hand_over_from_wire(message: replication_pb2.HandOver) -> HandOver:
    """A leader's order to stand."""
    return HandOver(message.from_replica, message.to_replica, message.epoch)
