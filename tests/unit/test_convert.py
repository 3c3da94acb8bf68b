"""Protobuf ⇄ ours loses nothing."""

from __future__ import annotations

import pytest

from cluster import convert
from cluster.topology import (
    CatalogUpdate,
    DropOrder,
    MembershipChange,
    NodePlace,
    Partition,
    PartitionState,
    ReplicaPlace,
)
from cluster.wire import common_pb2, replication_pb2
from replication.messages import MEMBERSHIP, Append, AppendReply, Entry, HandOver, VoteReply, VoteRequest
from storagenode.appends import append_from_wire, append_to_wire
from tests.unit.test_topology import table

ENTRIES = (Entry(3, 7, b"abc"), Entry(3, 8, b"", MEMBERSHIP), Entry(2**64 - 1, 2**64 - 1, b"\x00" * 400))


def test_a_catalog_update() -> None:
    update = CatalogUpdate(
        "c",
        2,
        4,
        6,
        tables=(table(1, "a", 5),),
        removed_tables=(2, 3),
        partitions=(
            Partition(
                1,
                1,
                bytes(16),
                b"\xff" * 16,
                (ReplicaPlace(4, 2**62, "z1"), ReplicaPlace(5, 7, "z2", log_only=True)),
                3,
                5,
                PartitionState.DROPPED,
                6,
                (4,),
                (DropOrder(3, 8, 2), DropOrder(2, 2**62, 2**63)),
                MembershipChange.DRAIN,
            ),
        ),
        removed_partitions=(8,),
        nodes=(
            NodePlace(7, "n", "r", "z2", "127.0.0.1:1", "127.0.0.1:2", 6),
            NodePlace(8, "m", "r", "z2", "127.0.0.1:3", "", 6, draining=True, removed=True),
        ),
        removed_nodes=(9,),
    )
    data = convert.update_to_wire(update).SerializeToString()
    assert convert.update_from_wire(common_pb2.CatalogUpdate.FromString(data)) == update


def test_records_that_name_no_change_of_membership_have_none() -> None:
    """As those have that were kept before there were such changes."""
    place = common_pb2.ReplicaRecord(replica=4, node=2, zone="z")
    partition = convert.partition_from_wire(common_pb2.PartitionRecord(partition=1, replicas=[place]))
    assert partition.wanted_voters == partition.replicas == (ReplicaPlace(4, 2, "z"),)
    assert (partition.leaving, partition.dropping, partition.change) == ((), (), MembershipChange.NONE)
    node = convert.node_from_wire(common_pb2.NodeRecord(node=1))
    assert not node.draining
    assert not node.removed


def test_messages_between_replicas() -> None:
    append = Append(1, 2, 3, 6, 2, ENTRIES, 5)
    on_wire = replication_pb2.Append.FromString(append_to_wire(9, append).SerializeToString())
    assert on_wire.partition == 9
    assert append_from_wire(on_wire) == append

    for reply in (AppendReply(2, 1, 3, True, 8), AppendReply(2, 1, 3, False, 4, 2)):
        assert convert.append_reply_from_wire(convert.append_reply_to_wire(9, reply)) == reply
    for request in (VoteRequest(1, 2, 3, 4, 5), VoteRequest(1, 2, 3, 4, 5, pre=True, ordered=True)):
        assert convert.vote_request_from_wire(convert.vote_request_to_wire(9, request)) == request
    order = HandOver(1, 2, 3)
    assert convert.hand_over_from_wire(convert.hand_over_to_wire(9, order)) == order


@pytest.mark.parametrize("lease_left", [0.0, 0.6, 0.123456789, 1e-9])
def test_a_lease_never_gets_shorter_on_the_way(lease_left: float) -> None:
    reply = VoteReply(2, 1, 3, True, False, lease_left)
    back = convert.vote_reply_from_wire(convert.vote_reply_to_wire(9, reply))
    assert lease_left <= back.lease_left < lease_left + 0.000_002
    assert (back.sender, back.to, back.epoch, back.granted, back.pre) == (2, 1, 3, True, False)
