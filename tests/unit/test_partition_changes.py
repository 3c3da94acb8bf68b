"""Change rows of a partition: for tables with a reader, of every write, and gone when all readers have passed."""

from __future__ import annotations

import msgspec
import pytest

from cluster.wire import storage_pb2
from dynamo import codec
from dynamo.change import Change, ChangeRow, Touch, decode_change
from dynamo.table import Index, KeySchema, Table
from dynamo.values import Item, load
from replication.messages import NORMAL, Entry
from storagenode.change_readers import ChangeReaders, Fill, index_reader
from storagenode.index_commands import encode_read, encode_touch
from storagenode.partition import Partition
from storagenode.storage import layout
from storagenode.storage.store import Store
from tests.unit.partition_samples import TABLE, Leader, item, key

FOLLOWED = msgspec.structs.replace(
    TABLE,
    attribute_types={"pk": "S", "sk": "N", "g": "S"},
    global_indexes=(Index("by_g", KeySchema(("g",)), "ALL", table=70),),
)
READER = index_reader(70)


def changes(store: Store) -> list[tuple[int, int, ChangeRow]]:
    """All change rows, with position and number."""
    found = store.rows(layout.CHANGE, layout.prefix_end(layout.CHANGE))
    return [(*layout.change_place(place), decode_change(row)) for place, row in found]


def images(store: Store) -> list[tuple[int, Item | None, Item | None]]:
    """Position, item before and item after of all changes."""
    shown = []
    for position, _, row in changes(store):
        assert isinstance(row, Change)
        gone = codec.header_of(row.after).flags & codec.TOMBSTONE
        codec.verify(row.key, row.after)
        before = load(codec.body_of(row.before)) if row.before else None
        shown.append((position, before, None if gone else load(codec.body_of(row.after))))
    return shown


def append(leader: Leader, payload: bytes) -> None:
    """An entry that no request led to."""
    leader.position += 1
    leader.log.append(Entry(1, leader.position, payload, NORMAL))
    leader.apply()


def schema(leader: Leader, table: Table, version: int) -> None:
    append(leader, leader.partition.propose_schema(msgspec.structs.replace(table, schema_version=version)))


@pytest.mark.parametrize("together", [True, False])
def test_every_write_leaves_what_was_and_what_is(together: bool) -> None:
    leader = Leader(table=FOLLOWED)
    first = leader.position
    leader.put(item("a", 1, x={"N": "1"}))
    leader.put(item("a", 1, x={"N": "2"}))
    leader.update("a", 1, "SET x = :x", {":x": {"N": "3"}})
    leader.delete("a", 1)
    leader.delete("a", 1)
    leader.apply(together=together)
    versions = [None, *(item("a", 1, x={"N": str(n)}) for n in (1, 2, 3)), None]
    assert images(leader.store) == [(first + n + 1, versions[n], versions[n + 1]) for n in range(4)]


def test_a_table_that_nobody_follows_has_none() -> None:
    leader = Leader()
    leader.put(item("a", 1))
    leader.apply()
    assert not leader.partition.readers
    assert changes(leader.store) == []


def test_a_reader_begins_where_it_came_in() -> None:
    leader = Leader()
    leader.put(item("a", 1))
    leader.apply()
    schema(leader, FOLLOWED, 2)
    at = leader.position
    assert leader.partition.readers == ChangeReaders({READER: at}, {70: Fill(False, at)})
    leader.put(item("a", 2))
    leader.apply()
    assert [position for position, _, _ in changes(leader.store)] == [at + 1]


def test_an_index_that_came_with_its_table_is_filled() -> None:
    leader = Leader(table=FOLLOWED)
    assert leader.partition.readers == ChangeReaders({READER: 2}, {70: Fill(True, 2)})


def test_rows_go_when_all_readers_have_passed() -> None:
    two = (*FOLLOWED.global_indexes, Index("by_g2", KeySchema(("g",)), "KEYS_ONLY", table=71))
    leader = Leader(table=msgspec.structs.replace(FOLLOWED, global_indexes=two))
    for n in range(4):
        leader.put(item("a", n))
    leader.apply()
    append(leader, encode_read({READER: 5}))
    assert [position for position, _, _ in changes(leader.store)] == [3, 4, 5, 6]
    append(leader, encode_read({index_reader(71): 4}))
    assert [position for position, _, _ in changes(leader.store)] == [5, 6]
    append(leader, encode_read({index_reader(71): 3, b"index 99": 100}))
    assert leader.partition.readers.positions == {READER: 5, index_reader(71): 4}, "nobody goes back, or comes back"


def test_rows_go_with_their_last_reader() -> None:
    leader = Leader(table=FOLLOWED)
    for n in range(layout.FORGOTTEN_ROWS_MAX + 10):
        leader.put(item("a", n))
    leader.apply()
    schema(leader, TABLE, 2)
    assert not leader.partition.readers
    for n in range(2):
        leader.put(item("b", n))
        leader.apply()
    assert changes(leader.store) == []
    schema(leader, FOLLOWED, 3)
    assert leader.partition.readers.positions == {READER: leader.position}


def test_touches_are_rows_for_one_index_and_kept_as_its_progress() -> None:
    leader = Leader()
    leader.put(item("a", 1))
    leader.put(item("a", 2))
    leader.apply()
    schema(leader, FOLLOWED, 2)
    append(leader, encode_touch(70, [key("a", 1), key("a", 2)], key("a", 2), done=False))
    assert leader.partition.readers.fills == {70: Fill(False, leader.position, key("a", 2))}
    assert changes(leader.store) == [(leader.position, 0, Touch(70, (key("a", 1), key("a", 2))))]
    append(leader, encode_touch(70, [], key("a", 2), done=True))
    assert leader.partition.readers.fills == {70: Fill(True, leader.position, key("a", 2))}
    append(leader, encode_touch(99, [], b"", done=True))
    assert set(leader.partition.readers.fills) == {70}


def test_readers_are_the_same_after_a_restart() -> None:
    leader = Leader()
    leader.put(item("a", 1))
    leader.apply()
    schema(leader, FOLLOWED, 2)
    append(leader, encode_touch(70, [key("a", 1)], key("a", 1), done=False))
    append(leader, encode_read({READER: leader.position - 1}))
    assert Partition(leader.store).readers == leader.partition.readers


def test_changes_of_one_entry_are_told_apart() -> None:
    """A transaction writes several items in one entry."""
    leader = Leader(table=FOLLOWED)
    actions = [
        storage_pb2.Action(put=storage_pb2.Put(key=key("a", n), item=b'{"pk":{"S":"a"}}', size=3)) for n in range(3)
    ]
    leader.decide(storage_pb2.Request(operation_id=99, transact=storage_pb2.Transact(actions=actions)))
    leader.apply()
    places = [(position, number, row.key) for position, number, row in changes(leader.store) if isinstance(row, Change)]
    assert places == [(leader.position, n, key("a", n)) for n in range(3)]


def test_a_write_tells_the_units_of_global_indexes() -> None:
    """Cases 150: an unchanged entry costs nothing, a moved one two writes, one that goes a delete."""
    leader = Leader(table=FOLLOWED)

    def units(**attributes: dict[str, str]) -> list[int]:
        decision = leader.put(item("a", 1, **attributes))
        leader.apply()
        assert not isinstance(decision, int)
        return list(decision.reply.global_index_units)  # type: ignore[union-attr]

    assert units() == [0]
    assert units(g={"S": "x"}) == [1]
    assert units(g={"S": "x"}) == [0]
    assert units(g={"S": "x"}, big={"S": "y" * 3_000}) == [3]
    assert units(g={"S": "z"}, big={"S": "y" * 3_000}) == [6]
    assert units() == [3]
