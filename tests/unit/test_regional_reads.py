"""What a partition tells other regions of itself: changes, fills, how far they have come, checksums and rows."""

from __future__ import annotations

import msgspec
import pytest

from cluster.wire import storage_pb2
from dynamo.codec import make_stamp, stamp_milliseconds
from dynamo.regions import replica_of
from dynamo.values import dump
from storagenode import regional_reads as reads
from storagenode.change_readers import Fill, region_fill, region_reader
from storagenode.index_commands import encode_read
from storagenode.storage import layout
from tests.unit.partition_samples import NOW_MS, TABLE, Leader, item, key
from tests.unit.regional_samples import EAST, SOUTH, WEST, append, global_table, row, take, tombstones

TABLES = global_table(EAST, SOUTH, WEST)
LOW, HIGH = b"\x00" * 16, b"\xff" * 16


def number(region: str) -> int:
    found = replica_of(TABLES[EAST], region)
    assert found is not None
    return found.number


@pytest.fixture
def east() -> Leader:
    return Leader(table=TABLES[EAST])


def body(pk: str, **attributes: dict[str, str]) -> bytes:
    return dump(item(pk, 1, **attributes))


def told(leader: Leader, region: str, after: int = 0) -> list[tuple[bytes, bool, str]]:
    """Row key, whether it is a delete, and the writer's region of all changes for another region."""
    rows: list[tuple[bytes, bool, str]] = []
    while True:
        found = reads.changes_after(leader.store, TABLES[EAST], number(region), after)
        rows += [(each.key, each.deleted, each.region) for each in found.rows]
        after = found.next
        if not found.more:
            return rows


def test_own_changes_are_told_in_order_and_what_came_from_elsewhere_is_not(east: Leader) -> None:
    east.put(item("a", 1))
    east.apply()
    take(east, [row(key("b", 1), body("b"), make_stamp(NOW_MS, 1), WEST, 1)], 1)
    east.put(item("c", 1))
    east.delete("a", 1)
    east.delete("b", 1)
    east.apply()
    expected = [(key("a", 1), False, EAST), (key("c", 1), False, EAST)]
    expected += [(key("a", 1), True, EAST), (key("b", 1), True, EAST)]
    assert told(east, WEST) == told(east, SOUTH) == expected


def test_changes_come_in_slices_that_never_cut_a_position(east: Leader) -> None:
    for _ in range(3):
        actions = [
            storage_pb2.Action(put=storage_pb2.Put(key=key("a", n), item=dump(item("a", n)), size=10))
            for n in range(reads.SLICE_ITEMS - 1)
        ]
        east.decide(storage_pb2.Request(operation_id=east.position, transact=storage_pb2.Transact(actions=actions)))
    east.apply()
    first = reads.changes_after(east.store, TABLES[EAST], number(WEST), 0)
    assert first.more
    assert len({each.position for each in first.rows}) == 2
    assert len(first.rows) == 2 * (reads.SLICE_ITEMS - 1)
    assert len(told(east, WEST)) == 3 * (reads.SLICE_ITEMS - 1)


def test_a_region_that_joins_a_full_table_is_told_everything_by_touches() -> None:
    leader = Leader(table=global_table(EAST, SOUTH)[EAST])
    for n in range(5):
        leader.put(item("old", n))
    leader.put(item("gone", 1))
    leader.delete("gone", 1)
    leader.apply()
    take(leader, [row(key("south", 1), body("south"), make_stamp(NOW_MS + 5, 1), SOUTH, 1)], 1)
    append(leader, leader.partition.propose_schema(msgspec.structs.replace(TABLES[EAST], schema_version=2)))
    fill, joined_at = region_fill(number(WEST)), leader.position
    assert leader.partition.readers.fills[fill] == Fill(False, joined_at)
    append(leader, reads.next_fill(leader.store, number(WEST), b""))
    assert leader.partition.readers.fills[fill].done
    rows = told(leader, WEST, joined_at)
    assert {(each, deleted) for each, deleted, _ in rows} == {
        *((key("old", n), False) for n in range(5)),
        (key("gone", 1), True),
        (key("south", 1), False),
    }
    assert (key("south", 1), False, SOUTH) in rows, "who wrote it, not who tells it"
    assert told(leader, SOUTH, joined_at) == []
    assert not reads.is_filled(leader.partition.readers, number(WEST), leader.position - 1)
    assert reads.is_filled(leader.partition.readers, number(WEST), leader.position)


def test_a_fill_names_items_by_number_and_by_bytes(east: Leader) -> None:
    for n in range(reads.FILL_ITEMS + 5):
        east.put(item("a", n))
    east.put(item("z", 1, big={"S": "x" * reads.FILL_BYTES}))
    east.apply()
    touches, position = 0, east.position
    through, done = b"", False
    while not done:
        append(east, reads.next_fill(east.store, number(WEST), through))
        fill = east.partition.readers.fills[region_fill(number(WEST))]
        through, done, touches = fill.through, fill.done, touches + 1
    assert touches == 3
    assert len(told(east, WEST, position)) == reads.FILL_ITEMS + 6
    assert through.startswith(layout.ITEM)


def test_how_far_a_region_has_come(east: Leader) -> None:
    def state(region: str = WEST, taken: int = 0) -> storage_pb2.RegionReply:
        return reads.state_of(east.store, east.partition.readers, number(region), taken)

    stamp = east.partition.applied.stamp
    assert (state().waiting, state().settled, state().filled) == (0, stamp, True)
    east.put(item("a", 1))
    east.put(item("b", 1))
    east.apply()
    first = east.position - 1
    assert state().waiting == 2
    assert state().waiting_since_ms == NOW_MS
    assert stamp_milliseconds(state().settled) < NOW_MS
    assert state(taken=first).waiting == 1
    append(east, encode_read({region_reader(number(WEST)): east.position}))
    assert (state().waiting, state().settled) == (0, east.partition.applied.stamp)
    assert state(SOUTH).waiting == 2
    assert not state().tombstones
    east.delete("a", 1)
    east.apply()
    assert state().tombstones


def test_what_came_from_elsewhere_keeps_nobody_waiting(east: Leader) -> None:
    take(east, [row(key("b", 1), body("b"), make_stamp(NOW_MS, 1), WEST, 1)], 1)
    state = reads.state_of(east.store, east.partition.readers, number(SOUTH))
    assert (state.waiting, state.settled) == (0, east.partition.applied.stamp)


def test_a_region_that_is_not_filled_holds_every_tombstone_back() -> None:
    leader = Leader(table=global_table(EAST, SOUTH)[EAST])
    append(leader, leader.partition.propose_schema(msgspec.structs.replace(TABLES[EAST], schema_version=2)))
    assert reads.state_of(leader.store, leader.partition.readers, number(WEST)).settled == 0


def test_old_tombstones_are_found_by_stamp_and_region(east: Leader) -> None:
    take(east, [row(key("a", n), None, make_stamp(NOW_MS + n, 0), WEST, n) for n in range(1, 5)], 4)
    take(east, [row(key("b", 1), None, make_stamp(NOW_MS, 0), SOUTH, 1)], 1, source=2)
    limit = make_stamp(NOW_MS + 2, 0)
    found, after = reads.old_tombstones(east.store, b"", limit, None)
    assert {each.key for each in found} == {key("a", 1), key("a", 2), key("b", 1)}
    assert after == b""
    found, _ = reads.old_tombstones(east.store, b"", limit, frozenset({number(WEST)}))
    assert {each.key for each in found} == {key("a", 1), key("a", 2)}
    assert len(tombstones(east)) == 5


def test_many_tombstones_are_looked_at_in_slices(east: Leader) -> None:
    count = reads.TOMBSTONES_GONE + reads.TOMBSTONE_ROWS + 7
    young = make_stamp(NOW_MS + 10, 0)
    for first in range(0, count, 100):
        numbers = range(first, min(count, first + 100))
        stamps = {n: make_stamp(NOW_MS, n) if n < reads.TOMBSTONES_GONE else young for n in numbers}
        take(east, [row(key("a", n), None, stamps[n], WEST, 1 + n) for n in numbers], 1 + numbers[-1])
    found, through = [], b""
    slices = 0
    while True:
        some, through = reads.old_tombstones(east.store, through, make_stamp(NOW_MS + 1, 0), None)
        assert len(some) <= reads.TOMBSTONES_GONE
        found += some
        slices += 1
        if not through:
            break
    assert {each.key for each in found} == {key("a", n) for n in range(reads.TOMBSTONES_GONE)}
    assert slices >= 2


def digest(leader: Leader, region: str) -> tuple[bytes, int]:
    total = items = 0
    after = b""
    while True:
        request = storage_pb2.Digest(after=after, low=LOW, high=HIGH)
        reply = reads.digest_of(leader.store, TABLES[region], request)
        total += int.from_bytes(reply.sum, "big")
        items += reply.items
        after = reply.after
        if not after:
            return (total % (1 << 128)).to_bytes(16, "big"), items


def test_the_same_items_have_the_same_sum_in_every_region(east: Leader) -> None:
    west = Leader(table=TABLES[WEST])
    for n in range(reads.DIGEST_ITEMS + 3):
        east.put(item("a", n))
    east.apply()
    sent = 0
    while True:
        found = reads.changes_after(east.store, TABLES[EAST], number(WEST), sent)
        take(west, found.rows, found.next)
        sent = found.next
        if not found.more:
            break
    assert digest(east, EAST) == digest(west, WEST)
    assert digest(east, EAST)[1] == reads.DIGEST_ITEMS + 3
    west.put(item("a", 0))
    west.apply()
    assert digest(east, EAST) != digest(west, WEST)


def test_rows_of_a_range_come_in_slices_with_their_versions(east: Leader) -> None:
    for n in range(reads.SLICE_ITEMS + 1):
        east.put(item("a", n))
    east.delete("a", 0)
    east.apply()
    first = reads.range_of(east.store, TABLES[EAST], storage_pb2.ReadRange(low=LOW, high=HIGH), NOW_MS)
    assert len(first.rows) == reads.SLICE_ITEMS
    assert first.after == b""
    gone = reads.range_of(east.store, TABLES[EAST], storage_pb2.ReadRange(tombstones=True, low=LOW, high=HIGH), NOW_MS)
    assert [(each.key, each.deleted, each.region) for each in gone.rows] == [(key("a", 0), True, EAST)]
    east.put(item("a", 0))
    east.apply()
    first = reads.range_of(east.store, TABLES[EAST], storage_pb2.ReadRange(low=LOW, high=HIGH), NOW_MS)
    rest = reads.range_of(
        east.store, TABLES[EAST], storage_pb2.ReadRange(after=first.after, low=LOW, high=HIGH), NOW_MS
    )
    assert len(first.rows) + len(rest.rows) == reads.SLICE_ITEMS + 1


def test_only_the_changes_of_a_global_table_are_kept_for_regions() -> None:
    leader = Leader(table=TABLE)
    leader.put(item("a", 1))
    leader.apply()
    assert not leader.partition.readers
