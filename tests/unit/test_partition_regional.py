"""Changes from other regions in one partition: who wins, what is stamped how, what waits, what stays of deletes."""

from __future__ import annotations

import msgspec
import pytest

from cluster.wire import storage_pb2
from dynamo import codec
from dynamo.change import Change, decode_change
from dynamo.codec import make_stamp, stamp_milliseconds
from dynamo.regions import AHEAD_MS_MAX, OWN
from dynamo.table import Index, KeySchema
from dynamo.values import dump
from storagenode.change_readers import region_fill, region_reader
from storagenode.partition import Answer, Partition
from storagenode.regional import AHEAD, LATE_MS_MAX, load_taken
from storagenode.regional_commands import Source, Tombstone, encode_clock, encode_cut_off, encode_tombstones
from storagenode.storage import layout
from tests.unit.partition_samples import NOW_MS, TABLE, Leader, item, key
from tests.unit.regional_samples import EAST, SOUTH, WEST, append, global_table, row, take, tombstones

TABLES = global_table(EAST, WEST, SOUTH)
KEY = key("a", 1)


def body(**attributes: dict[str, str]) -> bytes:
    return dump(item("a", 1, **attributes))


def header(leader: Leader) -> codec.ItemHeader:
    stored = leader.store.get(KEY)
    assert stored is not None
    codec.verify(KEY, stored)
    return codec.header_of(stored)


@pytest.fixture
def east() -> Leader:
    return Leader(table=TABLES[EAST])


def test_the_later_change_wins_whatever_comes_first(east: Leader) -> None:
    early, late = make_stamp(NOW_MS, 1), make_stamp(NOW_MS, 2)
    take(east, [row(KEY, body(x={"N": "2"}), late, WEST, 7)], 7)
    reply = take(east, [row(KEY, body(x={"N": "1"}), early, SOUTH, 9)], 9, source=2)
    assert east.get("a", 1) == item("a", 1, x={"N": "2"})
    assert isinstance(reply, storage_pb2.WriteReply)
    assert (reply.taken, reply.won, reply.lost) == (9, 0, 1)


@pytest.mark.parametrize("regions", [(SOUTH, WEST), (WEST, SOUTH)])
def test_of_equal_stamps_the_greater_region_wins(east: Leader, regions: tuple[str, str]) -> None:
    for position, region in enumerate(regions, 1):
        take(
            east, [row(KEY, body(by={"S": region}), make_stamp(NOW_MS, 5), region, position)], position, source=position
        )
    assert east.get("a", 1) == item("a", 1, by={"S": WEST})


def test_a_write_here_beats_every_change_that_was_taken_before_it(east: Leader) -> None:
    ahead = make_stamp(NOW_MS + 50_000, 9)
    take(east, [row(KEY, body(), ahead, WEST, 1)], 1)
    east.put(item("a", 1, x={"N": "1"}))
    east.apply()
    assert header(east).stamp > ahead
    assert header(east).origin == OWN


def test_a_write_is_stamped_above_a_change_that_is_still_in_flight(east: Leader) -> None:
    ahead = make_stamp(NOW_MS + 50_000, 9)
    write = storage_pb2.RegionalWrite(life=1, source=1, position=1, rows=[row(KEY, body(), ahead, WEST, 1)])
    east.decide(storage_pb2.Request(regional_write=write))
    east.put(item("a", 1, x={"N": "1"}))
    east.apply()
    assert east.get("a", 1) == item("a", 1, x={"N": "1"})
    assert header(east).stamp > ahead


def test_a_delete_beats_earlier_changes_and_is_not_seen(east: Leader) -> None:
    take(east, [row(KEY, body(), make_stamp(NOW_MS, 1), WEST, 1)], 1)
    take(east, [row(KEY, None, make_stamp(NOW_MS, 3), WEST, 2)], 2)
    reply = take(east, [row(KEY, body(), make_stamp(NOW_MS, 2), SOUTH, 1)], 1, source=2)
    assert isinstance(reply, storage_pb2.WriteReply)
    assert reply.lost == 1
    assert east.get("a", 1) is None
    assert (east.partition.statistics().items, east.partition.statistics().size) == (0, 0)
    assert tombstones(east)[KEY].stamp == make_stamp(NOW_MS, 3)


def test_a_delete_of_what_is_not_there_leaves_its_tombstone(east: Leader) -> None:
    take(east, [row(KEY, None, make_stamp(NOW_MS, 3), WEST, 2)], 2)
    take(east, [row(KEY, body(), make_stamp(NOW_MS, 2), SOUTH, 1)], 1, source=2)
    assert east.get("a", 1) is None
    assert east.partition.statistics().items == 0


def test_a_delete_in_flight_counts(east: Leader) -> None:
    east.put(item("a", 1))
    east.apply()
    east.delete("a", 1)
    reply = take(east, [row(KEY, body(), make_stamp(NOW_MS - 1, 0), WEST, 1)], 1)
    assert isinstance(reply, storage_pb2.WriteReply)
    assert reply.lost == 1
    assert east.get("a", 1) is None


def test_a_put_takes_the_tombstone_away(east: Leader) -> None:
    east.put(item("a", 1))
    east.delete("a", 1)
    east.apply()
    assert set(tombstones(east)) == {KEY}
    east.put(item("a", 1))
    east.apply()
    assert tombstones(east) == {}


def test_a_table_of_one_region_keeps_no_tombstones() -> None:
    leader = Leader(table=TABLE)
    leader.put(item("a", 1))
    leader.delete("a", 1)
    leader.apply()
    assert tombstones(leader) == {}


def test_what_was_taken_is_not_taken_again_not_even_after_its_tombstone_has_gone(east: Leader) -> None:
    put = row(KEY, body(), make_stamp(NOW_MS, 1), WEST, 1)
    take(east, [put], 1)
    take(east, [row(KEY, None, make_stamp(NOW_MS, 2), WEST, 2)], 2)
    append(east, encode_tombstones([Tombstone(KEY, make_stamp(NOW_MS, 2))]))
    assert tombstones(east) == {}
    reply = take(east, [put], 1)
    assert isinstance(reply, storage_pb2.WriteReply)
    assert reply.taken == 1
    assert east.get("a", 1) is None
    assert load_taken(east.store, Source(1, 1)) == 2


def test_a_later_tombstone_stays_when_an_earlier_one_is_let_go(east: Leader) -> None:
    take(east, [row(KEY, None, make_stamp(NOW_MS, 2), WEST, 2)], 2)
    append(east, encode_tombstones([Tombstone(KEY, make_stamp(NOW_MS, 1))]))
    assert set(tombstones(east)) == {KEY}


def test_a_write_beats_a_delete_whose_tombstone_has_gone(east: Leader) -> None:
    deleted = make_stamp(NOW_MS + 40_000, 0)
    take(east, [row(KEY, None, deleted, WEST, 2)], 2)
    append(east, encode_tombstones([Tombstone(KEY, deleted)]))
    again = Leader(store=east.store)
    again.put(item("a", 1))
    again.apply()
    assert header(again).stamp > deleted


def test_a_change_that_is_too_far_ahead_is_not_taken(east: Leader) -> None:
    ahead = row(KEY, body(), make_stamp(NOW_MS + AHEAD_MS_MAX + 1, 0), WEST, 1)
    reply = take(east, [ahead], 1)
    assert isinstance(reply, storage_pb2.Failure)
    assert reply.type == AHEAD
    assert east.get("a", 1) is None
    reply = take(east, [ahead], 1, wall_ms=NOW_MS + 1)
    assert isinstance(reply, storage_pb2.WriteReply), "its time has come"
    assert east.get("a", 1) is not None


def test_changes_wait_for_a_transaction_and_those_before_it_do_not(east: Leader) -> None:
    put = storage_pb2.Put(key=KEY, item=body(t={"N": "1"}), size=10)
    prepare = storage_pb2.Prepare(
        actions=[storage_pb2.Action(put=put)],
        transaction=b"t" * 16,
        payload=b"p" * 16,
        attempt=b"a" * 16,
        started_ms=NOW_MS,
    )
    east.decide(storage_pb2.Request(operation_id=77, prepare=prepare))
    east.apply()
    rows = [
        row(key("a", 2), body(), make_stamp(NOW_MS, 1), WEST, 1),
        row(KEY, body(w={"N": "1"}), make_stamp(NOW_MS + 10, 2), WEST, 4),
        row(key("a", 3), body(), make_stamp(NOW_MS, 3), WEST, 5),
    ]
    reply = take(east, rows, 5)
    assert isinstance(reply, storage_pb2.WriteReply)
    assert reply.taken == 3
    assert east.store.get(key("a", 2)) is not None
    assert east.store.get(key("a", 3)) is None
    finish = storage_pb2.Finish(attempt=b"a" * 16, commit=True, keys=[KEY])
    east.decide(storage_pb2.Request(finish=finish))
    east.apply()
    reply = take(east, rows, 5)
    assert isinstance(reply, storage_pb2.WriteReply)
    assert (reply.taken, reply.won) == (5, 2)
    assert east.get("a", 1) == item("a", 1, w={"N": "1"})


def test_a_change_of_an_unknown_region_is_refused(east: Leader) -> None:
    reply = take(east, [row(KEY, body(), make_stamp(NOW_MS, 1), "eu-north-1", 1)], 1)
    assert isinstance(reply, storage_pb2.Failure)
    assert load_taken(east.store, Source(1, 1)) == 0


def test_rows_of_a_comparison_must_not_come_late(east: Leader) -> None:
    late = storage_pb2.RegionalWrite(rows=[row(KEY, body(), 5, WEST)], read_ms=NOW_MS - LATE_MS_MAX - 1)
    decision = east.decide(storage_pb2.Request(regional_write=late))
    assert isinstance(decision, Answer)
    assert isinstance(decision.reply, storage_pb2.Failure)
    take(east, [row(KEY, body(), 5, WEST)])
    assert east.get("a", 1) is not None


def test_two_changes_of_one_item_in_one_request_follow_each_other(east: Leader) -> None:
    rows = [
        row(KEY, body(), make_stamp(NOW_MS, 1), WEST, 1),
        row(KEY, None, make_stamp(NOW_MS, 2), WEST, 2),
        row(KEY, body(x={"N": "3"}), make_stamp(NOW_MS, 3), WEST, 3),
    ]
    take(east, rows, 3)
    assert east.get("a", 1) == item("a", 1, x={"N": "3"})
    assert east.partition.statistics().items == 1


def test_local_indexes_follow_changes_from_elsewhere() -> None:
    indexed = msgspec.structs.replace(
        TABLE,
        attribute_types={"pk": "S", "sk": "N", "x": "S"},
        local_indexes=(Index("by_x", KeySchema(("pk",), ("x",)), "ALL"),),
    )
    leader = Leader(table=global_table(EAST, WEST, table=indexed)[EAST])
    take(leader, [row(KEY, body(x={"S": "v"}), make_stamp(NOW_MS, 1), WEST, 1)], 1)
    assert [count.items for count in leader.partition.applied.indexes] == [1]
    take(leader, [row(KEY, None, make_stamp(NOW_MS, 2), WEST, 2)], 2)
    assert [count.items for count in leader.partition.applied.indexes] == [0]


def test_every_other_region_is_a_reader_and_a_table_that_begins_global_is_filled(east: Leader) -> None:
    readers = east.partition.readers
    assert set(readers.positions) == {region_reader(2), region_reader(3)}
    assert all(readers.fills[region_fill(number)].done for number in (2, 3))


def test_a_region_that_is_cut_off_holds_nothing_back_and_stays_so_after_a_restart(east: Leader) -> None:
    append(east, encode_cut_off(2))
    for partition in (east.partition, Partition(east.store)):
        assert set(partition.readers.positions) == {region_reader(3)}
        assert partition.readers.cut_off == {2}
    append(east, east.partition.propose_schema(msgspec.structs.replace(TABLES[EAST], schema_version=2)))
    assert set(east.partition.readers.positions) == {region_reader(3)}


def test_what_was_taken_late_stands_in_the_order_of_this_partitions_clock(east: Leader) -> None:
    """Streams find times by halving, and trim by them: a change of hours ago must not look like one."""
    old = make_stamp(NOW_MS - 7_200_000, 0)
    east.put(item("a", 2))
    take(east, [row(KEY, body(), old, WEST, 1)], 1)
    east.put(item("a", 3))
    east.apply()
    found = east.store.rows(layout.CHANGE, layout.prefix_end(layout.CHANGE))
    changes = [change for _, value in found if isinstance(change := decode_change(value), Change)]
    assert len(changes) == 3
    clocks = [change.clock for change in changes]
    assert clocks == sorted(clocks)
    assert stamp_milliseconds(clocks[1]) >= NOW_MS
    assert codec.header_of(changes[1].after).stamp == old


def test_the_clock_moves_on_by_an_entry(east: Leader) -> None:
    stamp = make_stamp(NOW_MS + 30_000, 0)
    append(east, encode_clock(stamp))
    assert east.partition.applied.stamp == stamp
    east.put(item("a", 1))
    east.apply()
    assert header(east).stamp > stamp
