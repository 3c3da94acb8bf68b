"""Streams of a partition: which changes have a record, where it stands, and what trimming and ending do."""

from __future__ import annotations

import msgspec
import pytest

from cluster.wire import storage_pb2
from dynamo.table import Index, KeySchema, Stream, StreamView, Table
from dynamo.values import Item, load
from replication.messages import NORMAL, Entry
from storagenode.index_commands import encode_read, encode_touch
from storagenode.partition import Partition
from storagenode.storage import layout
from storagenode.stream_ranges import StreamRange, stream_reader
from storagenode.streams import SLICE_ROWS, begin, place_of_time, read_slice, trimmed_before
from tests.unit.partition_samples import NOW_MS, TABLE, Leader, item, put

LABEL = "2027-01-15T08:00:00.000"
RECORD = storage_pb2.StreamRecord


def streamed(view: StreamView = "NEW_AND_OLD_IMAGES", table: Table = TABLE) -> Table:
    return msgspec.structs.replace(table, streams=(Stream(LABEL, view, 1.0),))


def ended(table: Table, version: int = 2) -> Table:
    last = msgspec.structs.replace(table.streams[-1], disabled=2.0)
    return msgspec.structs.replace(table, schema_version=version, streams=(*table.streams[:-1], last))


def read(
    leader: Leader, *, label: str = LABEL, place: tuple[int, int] = (0, 0), limit: int = 1000, max_bytes: int = 1 << 20
) -> storage_pb2.StreamReply:
    """All that one request gets."""
    request = storage_pb2.ReadStream(label=label, position=place[0], number=place[1], limit=limit, max_bytes=max_bytes)
    schema = leader.partition.applied_schema
    assert schema is not None
    ranges = leader.partition.readers.streams
    reply = begin(leader.store, request, schema, ranges)
    while not read_slice(leader.store, request, schema, ranges, reply):
        pass
    return reply


def shown(reply: storage_pb2.StreamReply) -> list[tuple[int, Item | None, Item | None]]:
    """Event, old and new image of each record."""
    return [
        (one.event, load(one.old_image) if one.old_image else None, load(one.new_image) if one.new_image else None)
        for one in reply.records
    ]


def append(leader: Leader, payload: bytes) -> None:
    leader.position += 1
    leader.log.append(Entry(1, leader.position, payload, NORMAL))
    leader.apply()


def schema(leader: Leader, table: Table) -> int:
    append(leader, leader.partition.propose_schema(table))
    return leader.position


def write_one_life(leader: Leader) -> None:
    leader.put(item("a", 1, x={"N": "1"}))
    leader.put(item("a", 1, x={"N": "2"}))
    leader.delete("a", 1)
    leader.apply()


FIRST, SECOND = item("a", 1, x={"N": "1"}), item("a", 1, x={"N": "2"})
VIEWS: dict[StreamView, list[tuple[int, Item | None, Item | None]]] = {
    "KEYS_ONLY": [(RECORD.INSERT, None, None), (RECORD.MODIFY, None, None), (RECORD.REMOVE, None, None)],
    "NEW_IMAGE": [(RECORD.INSERT, None, FIRST), (RECORD.MODIFY, None, SECOND), (RECORD.REMOVE, None, None)],
    "OLD_IMAGE": [(RECORD.INSERT, None, None), (RECORD.MODIFY, FIRST, None), (RECORD.REMOVE, SECOND, None)],
    "NEW_AND_OLD_IMAGES": [
        (RECORD.INSERT, None, FIRST),
        (RECORD.MODIFY, FIRST, SECOND),
        (RECORD.REMOVE, SECOND, None),
    ],
}


@pytest.mark.parametrize("view", VIEWS)
def test_records_show_what_the_view_says(view: StreamView) -> None:
    leader = Leader(table=streamed(view))
    first = leader.position
    write_one_life(leader)
    reply = read(leader)
    assert shown(reply) == VIEWS[view]
    assert all(load(record.keys) == item("a", 1) for record in reply.records)
    assert [(record.position, record.number) for record in reply.records] == [(first + n, 0) for n in (1, 2, 3)]
    assert all(record.time_ms == NOW_MS and not record.by_service for record in reply.records)


def test_what_changes_nothing_has_no_record() -> None:
    """Case 121: also when only the order of a map's or set's members differs."""
    leader = Leader(table=streamed())
    leader.put(item("a", 1, m={"M": {"x": {"N": "1"}, "y": {"N": "2"}}}))
    leader.put(item("a", 1, m={"M": {"y": {"N": "2"}, "x": {"N": "1"}}}))
    leader.update("a", 1, "SET m.x = :one", {":one": {"N": "1"}})
    leader.delete("a", 2)
    leader.apply()
    assert [event for event, _, _ in shown(read(leader))] == [RECORD.INSERT]


def test_records_of_one_entry_have_numbers() -> None:
    leader = Leader(table=streamed())
    actions = [storage_pb2.Action(put=put(item("a", n), operation_id=0).put) for n in range(3)]
    request = storage_pb2.Request(
        operation_id=99, transact=storage_pb2.Transact(actions=actions, transaction=bytes(16), payload=bytes(16))
    )
    leader.decide(request)
    leader.apply()
    reply = read(leader)
    assert [(record.position, record.number) for record in reply.records] == [(leader.position, n) for n in range(3)]
    second = read(leader, place=(leader.position, 1), limit=1)
    assert list(second.records) == [reply.records[1]]
    assert (second.next_position, second.next_number) == (leader.position, 2)


@pytest.mark.parametrize("limit", [1, 7, SLICE_ROWS, 1000])
def test_pages_give_every_record_once(limit: int) -> None:
    leader = Leader(table=streamed())
    for n in range(2 * SLICE_ROWS + 5):
        leader.put(item("a", n))
        if n % 9 == 0:
            leader.put(item("a", n))  # changes nothing
    leader.apply()
    found, place = [], (0, 0)
    while (reply := read(leader, place=place, limit=limit)).records:
        found += [load(record.keys)["sk"]["N"] for record in reply.records]
        place = reply.next_position, reply.next_number
    assert found == [str(n) for n in range(2 * SLICE_ROWS + 5)]
    assert (reply.next_position, reply.next_number) == (leader.position + 1, 0)


def test_a_page_ends_at_its_bytes_but_has_one_record() -> None:
    leader = Leader(table=streamed("NEW_IMAGE"))
    for n in range(3):
        leader.put(item("a", n, x={"S": "x" * 1000}))
    leader.apply()
    assert len(read(leader, max_bytes=10).records) == 1
    assert len(read(leader, max_bytes=2500).records) == 2


def test_a_stream_begins_and_ends_with_entries_and_another_begins_anew() -> None:
    """Case 130."""
    leader = Leader()
    leader.put(item("a", 1))
    leader.apply()
    table = msgspec.structs.replace(streamed(), schema_version=2)
    first = schema(leader, table)
    leader.put(item("a", 2))
    leader.apply()
    end = schema(leader, ended(table, 3))
    leader.put(item("a", 3))
    leader.apply()
    again = Stream("2027-01-15T09:00:00.000", "KEYS_ONLY", 3.0)
    both = msgspec.structs.replace(ended(table, 4), streams=(*ended(table).streams, again))
    second = schema(leader, both)
    leader.put(item("a", 4))
    leader.apply()
    old = read(leader)
    assert (old.known, old.first, old.end) == (True, first, end)
    assert [load(record.keys) for record in old.records] == [item("a", 2)]
    assert old.next_position == end
    new = read(leader, label=again.label)
    assert (new.known, new.first, new.end) == (True, second, 0)
    assert [load(record.keys) for record in new.records] == [item("a", 4)]
    assert not read(leader, label="never").known


def test_a_store_opened_again_knows_its_streams() -> None:
    leader = Leader(table=streamed())
    write_one_life(leader)
    schema(leader, ended(streamed()))
    again = Partition(leader.store)
    assert again.readers == leader.partition.readers
    assert not again.readers.follows


def test_no_rows_are_kept_once_the_stream_has_ended() -> None:
    leader = Leader(table=streamed())
    schema(leader, ended(streamed()))
    leader.put(item("a", 1))
    leader.apply()
    assert not list(leader.store.rows(layout.CHANGE, layout.prefix_end(layout.CHANGE)))


def test_trimmed_records_are_gone_and_so_is_a_stream_that_ended() -> None:
    leader = Leader(table=streamed())
    first = leader.position
    for n in range(4):
        leader.put(item("a", n))
    leader.apply()
    append(leader, encode_read({stream_reader(LABEL): first + 2}))
    reply = read(leader)
    assert (reply.trimmed, reply.next_position) == (first + 2, leader.position + 1)
    assert [load(record.keys)["sk"] for record in reply.records] == [{"N": "2"}, {"N": "3"}]
    positions = [
        layout.change_place(key)[0] for key, _ in leader.store.rows(layout.CHANGE, layout.prefix_end(layout.CHANGE))
    ]
    assert positions == [first + 3, first + 4]
    end = schema(leader, ended(streamed()))
    append(leader, encode_read({stream_reader(LABEL): end}))
    assert not leader.partition.readers
    assert Partition(leader.store).readers == leader.partition.readers
    assert not read(leader).known


def test_places_are_found_by_time_and_old_records_are_trimmed() -> None:
    indexed = msgspec.structs.replace(
        TABLE,
        attribute_types={"pk": "S", "sk": "N", "g": "S"},
        global_indexes=(Index("by_g", KeySchema(("g",)), "ALL", table=70),),
    )
    leader = Leader(table=streamed(table=indexed))
    first = leader.position
    for n in range(20):
        leader.decide(put(item("a", n), operation_id=1000 + n), NOW_MS + 10 * n)
        leader.apply()
        append(leader, encode_touch(70, [b"k"], b"k", done=False))
    known = leader.partition.readers.streams[LABEL]
    high = leader.position + 1
    for n in range(20):
        for time_ms in (NOW_MS + 10 * n, NOW_MS + 10 * n - 9):
            place = place_of_time(leader.store, first + 1, high, time_ms)
            assert [load(record.keys)["sk"]["N"] for record in read(leader, place=(place, 0), limit=1).records] == [
                str(n)
            ]
    assert place_of_time(leader.store, first + 1, high, NOW_MS + 191) == first + 40, "right above the last change"
    assert trimmed_before(leader.store, known, NOW_MS) == 0
    assert trimmed_before(leader.store, known, NOW_MS + 1) == first + 1
    assert trimmed_before(leader.store, known, NOW_MS + 55) == first + 11
    assert trimmed_before(leader.store, known, NOW_MS + 1000) == first + 39
    over = StreamRange(known.first, leader.position, known.trimmed)
    assert trimmed_before(leader.store, over, NOW_MS + 100) == first + 19
    assert trimmed_before(leader.store, over, NOW_MS + 1000) == leader.position
