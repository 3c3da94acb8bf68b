"""A partition of a global index takes rows from the partitions of the table: in order of each, and none twice."""

from __future__ import annotations

from cluster.wire import storage_pb2
from dynamo import codec
from dynamo.table import KeySchema, Table
from storagenode.index_rows import load_taken
from storagenode.partition import Answer, Partition, Propose
from tests.unit.partition_samples import Leader

ROWS = Table(
    id=70,
    name="",
    schema_version=1,
    attribute_types={"pk": "S", "g": "S"},
    keys=KeySchema(("g",)),
    created=0.0,
    index_of=7,
    base_keys=KeySchema(("pk",)),
)


def row(key: bytes, position: int, size: int = 10) -> storage_pb2.IndexRow:
    """An entry of the index; size 0: it goes."""
    stored = (
        codec.encode(key, b"%d" % position, codec.ItemHeader(0, 0, size, position << 16, position)) if size else b""
    )
    return storage_pb2.IndexRow(key=key, stored=stored, position=position)


def send(leader: Leader, source: int, position: int, *rows: storage_pb2.IndexRow) -> Propose | Answer:
    """A source's request, up to `position` of its log."""
    write = storage_pb2.IndexWrite(source=source, position=position, rows=rows)
    decision = leader.decide(storage_pb2.Request(index_write=write))
    assert isinstance(decision, Propose | Answer)
    return decision


def rows(leader: Leader) -> dict[bytes, int]:
    """Row keys, and the positions of the changes that the rows follow from."""
    return {key: codec.header_of(stored).position for key, stored in leader.store.scan(b"", b"")}


def test_rows_come_and_go_and_are_counted() -> None:
    leader = Leader(table=ROWS)
    assert isinstance(send(leader, 1, 5, row(b"a", 4), row(b"b", 5, 20)), Propose)
    leader.apply()
    assert rows(leader) == {b"a": 4, b"b": 5}
    applied = leader.partition.applied
    assert (applied.items, applied.size, applied.stamp) == (2, 30, 5 << 16)
    send(leader, 1, 9, row(b"a", 7, 0), row(b"b", 8, 15), row(b"never there", 9, 0))
    leader.apply()
    assert rows(leader) == {b"b": 8}
    assert (leader.partition.applied.items, leader.partition.applied.size) == (1, 15)


def test_what_was_taken_is_not_taken_again() -> None:
    leader = Leader(table=ROWS)
    send(leader, 1, 5, row(b"a", 5))
    leader.apply()
    assert send(leader, 1, 5, row(b"a", 5, 0)) == Answer(storage_pb2.WriteReply(), 0)
    assert isinstance(send(leader, 1, 8, row(b"a", 4, 0), row(b"b", 8)), Propose), "some of it is new"
    leader.apply()
    assert rows(leader) == {b"a": 5, b"b": 8}


def test_a_repeated_request_is_answered_when_the_first_is_applied() -> None:
    leader = Leader(table=ROWS)
    send(leader, 1, 5, row(b"a", 5))
    assert send(leader, 1, 5, row(b"a", 5)) == Answer(storage_pb2.WriteReply(), leader.position)


def test_requests_in_flight_are_counted_on_each_other() -> None:
    leader = Leader(table=ROWS)
    send(leader, 1, 5, row(b"a", 5, 10))
    send(leader, 1, 6, row(b"a", 6, 0))
    send(leader, 1, 7, row(b"a", 7, 30))
    leader.apply(together=False)
    assert rows(leader) == {b"a": 7}
    assert (leader.partition.applied.items, leader.partition.applied.size) == (1, 30)


def test_sources_count_their_own_positions() -> None:
    leader = Leader(table=ROWS)
    send(leader, 1, 100, row(b"a", 100))
    send(leader, 2, 3, row(b"b", 3))
    leader.apply()
    assert rows(leader) == {b"a": 100, b"b": 3}
    assert [load_taken(leader.store, source) for source in (1, 2, 3)] == [100, 3, 0]


def test_what_was_lost_with_leadership_is_taken_when_it_comes_again() -> None:
    leader = Leader(table=ROWS)
    send(leader, 1, 5, row(b"a", 5))
    leader.log.pop()
    leader.position -= 1
    leader.partition.abandon()
    assert isinstance(send(leader, 1, 5, row(b"a", 5)), Propose)
    leader.apply()
    assert rows(leader) == {b"a": 5}


def test_a_restarted_replica_and_a_follower_know_what_was_taken() -> None:
    leader = Leader(table=ROWS)
    send(leader, 1, 5, row(b"a", 5))
    leader.apply()
    for partition in (Partition(leader.store), leader.partition):
        request = storage_pb2.Request(index_write=storage_pb2.IndexWrite(source=1, position=5, rows=[row(b"a", 5, 0)]))
        assert isinstance(partition.decide(request, 0, leader.position + 1), Answer)
    follower = Leader(table=ROWS)
    follower.partition.apply([entry for entry in leader.log if entry.position > 2])
    follower.position = leader.position
    assert isinstance(send(follower, 1, 5, row(b"a", 5, 0)), Answer)
