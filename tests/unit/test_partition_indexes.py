"""Local indexes of one partition: what writes may do, what they cost, and what reads give."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from cluster.wire import storage_pb2
from dynamo import codec
from dynamo.item import item_size
from dynamo.keys import partition_hash, prefix_end
from dynamo.values import AttributeValue, Item, dump, load
from storagenode.indexes import LocalIndexes
from storagenode.partition import Answer, Partition, Propose
from storagenode.query import SLICE_ROWS, Page, reply_of
from storagenode.storage import layout
from storagenode.storage.store import WriteBatch
from tests.unit.partition_samples import INDEXED, Leader, item, key, put

ALL, KEYS, INCLUDE = 1, 2, 3


def indexed(item_collection_bytes_max: int = 10 << 30) -> Leader:
    return Leader(table=INDEXED, item_collection_bytes_max=item_collection_bytes_max)


def written(decision: object) -> storage_pb2.WriteReply:
    assert isinstance(decision, Propose | Answer)
    assert isinstance(decision.reply, storage_pb2.WriteReply), decision.reply
    return decision.reply


def refused(decision: object) -> storage_pb2.Failure:
    assert isinstance(decision, Answer)
    assert isinstance(decision.reply, storage_pb2.Failure)
    return decision.reply


def text(content: str) -> AttributeValue:
    return {"S": content}


def number(content: int) -> AttributeValue:
    return {"N": str(content)}


# --- writes ---


@pytest.mark.parametrize(
    ("before", "update", "values", "units"),
    [
        ({}, "SET d = :v", {":v": text("x")}, [0, 0, 0]),
        ({}, "SET a = :v", {":v": text("x")}, [1, 0, 0]),
        ({}, "SET b = :v", {":v": number(1)}, [0, 1, 1]),
        ({"a": text("x"), "b": number(1)}, "SET d = :v", {":v": text("y")}, [1, 0, 0]),  # 150: outside the projection
        ({"a": text("x"), "b": number(1)}, "SET c = :v", {":v": text("y")}, [1, 0, 1]),
        ({"a": text("x"), "b": number(1)}, "SET b = :v", {":v": number(1)}, [0, 0, 0]),  # 150: nothing changes
        ({"a": text("x"), "b": number(1)}, "SET b = :v", {":v": number(2)}, [1, 2, 2]),  # 150: another key
        ({"a": text("x"), "b": number(1)}, "REMOVE b", {}, [1, 1, 1]),  # 150: the key goes
        ({"b": number(1), "c": text("x" * 3000)}, "SET c = :v", {":v": text("y")}, [0, 0, 3]),
        ({"b": number(1), "c": text("x" * 3000)}, "SET b = :v", {":v": number(2)}, [0, 2, 6]),
    ],
)
def test_each_index_charges_by_the_change_of_its_entry(
    before: Item, update: str, values: dict[str, AttributeValue], units: list[int]
) -> None:
    leader = indexed()
    leader.put(item("p", 1, **before))
    in_flight = list(written(leader.update("p", 1, update, values or None)).local_index_units)
    applied = indexed()
    applied.put(item("p", 1, **before))
    applied.apply()
    assert list(written(applied.update("p", 1, update, values or None)).local_index_units) == in_flight == units


def test_the_size_of_the_item_collection_counts_what_is_in_flight() -> None:
    leader = indexed()
    one, two = item("p", 1, a=text("x")), item("p", 2, d=text("y"))
    first = written(leader.put(one)).collection_size
    assert first == 2 * item_size(one)
    assert written(leader.put(two)).collection_size == first + item_size(two)
    assert written(leader.put(item("q", 1))).collection_size == item_size(item("q", 1))
    leader.apply()
    assert written(leader.delete("p", 1)).collection_size == item_size(two)
    assert written(leader.delete("p", 9)).collection_size == item_size(two)
    leader.apply()
    assert written(leader.delete("p", 9)).collection_size == item_size(two)


def test_an_item_collection_ends_at_its_limit() -> None:
    leader = indexed(item_collection_bytes_max=100)
    leader.put(item("p", 1, d=text("x" * 80)))
    full = leader.put(item("p", 2, d=text("x" * 20)))
    failure = refused(full)
    assert (failure.type, failure.message) == ("ItemCollectionSizeLimitExceededException", "Collection size exceeded.")
    assert isinstance(full, Answer)
    assert full.after == leader.position  # it rests on a write that is not applied yet
    written(leader.put(item("q", 1, d=text("x" * 80))))
    leader.apply()
    again = leader.update("p", 1, "SET e = :e", {":e": text("x" * 30)})
    assert refused(again).type == failure.type
    assert isinstance(again, Answer)
    assert again.after == 0
    written(leader.update("p", 1, "REMOVE d"))
    written(leader.put(item("p", 2, d=text("x" * 20))))
    leader.apply()
    assert leader.get("p", 2) is not None


def test_a_collection_beyond_the_limit_may_still_shrink() -> None:
    leader = indexed()
    leader.put(item("p", 1, d=text("x" * 80)))
    leader.apply()
    leader.partition = Partition(leader.store, item_collection_bytes_max=10)
    written(leader.update("p", 1, "SET d = :d", {":d": text("y" * 80)}))
    written(leader.delete("p", 1))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (number(1), "Type mismatch for Index Key a Expected: S Actual: N IndexName: all"),
        ({"M": {}}, "Type mismatch for Index Key a Expected: S Actual: M IndexName: all"),
        ({"NULL": True}, "Type mismatch for Index Key a Expected: S Actual: NULL IndexName: all"),
        (text(""), "The AttributeValue for a key attribute cannot contain an empty string value."),
        (text("x" * 1025), "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"),
    ],
)
def test_an_update_may_not_leave_an_index_key_that_does_not_fit(value: AttributeValue, message: str) -> None:
    """Case 74."""
    leader = indexed()
    leader.put(item("p", 1, a=text("good")))
    failure = refused(leader.update("p", 1, "SET a = :v", {":v": value}))
    assert failure.type == "ValidationException"
    assert failure.message.endswith(message)
    leader.apply()
    assert leader.get("p", 1) == item("p", 1, a=text("good"))


def test_an_item_and_its_entries_have_one_limit() -> None:
    leader = indexed()
    leader.put(item("p", 1, d=text("x" * 250_000)))
    failure = refused(leader.update("p", 1, "SET a = :a", {":a": text("x")}))  # index `all` would hold it once more
    assert failure.message == "Item size to update has exceeded the maximum allowed size"
    written(leader.update("p", 1, "SET b = :b", {":b": number(1)}))


def test_an_entry_that_stays_the_same_is_not_written_again() -> None:
    leader = indexed()
    leader.put(item("p", 1, a=text("x"), b=number(1), c=text("c"), d=text("d")))
    leader.apply()
    store, batch = leader.store, WriteBatch()
    body = dump(item("p", 1, a=text("x"), b=number(1), c=text("c"), d=text("other")))
    stored = codec.encode(key("p", 1), body, codec.ItemHeader(0, 0, 100, 7, 7))
    before = store.get(key("p", 1)) or b""
    LocalIndexes(INDEXED).take(batch, store, store.applied().indexes, key("p", 1), before, stored)
    assert {entry[:2] for entry in batch.index_entries} == {layout.index_key(ALL, b"")}


def test_leadership_lost_forgets_what_was_in_flight() -> None:
    leader = indexed()
    leader.put(item("p", 1))
    leader.partition.abandon()
    leader.log.pop()
    leader.position -= 1
    assert written(leader.put(item("p", 2))).collection_size == item_size(item("p", 2))


def test_a_retried_write_is_answered_alike() -> None:
    leader = indexed()
    first = written(leader.decide(put(item("p", 1, a=text("x")), operation_id=5)))
    assert written(leader.decide(put(item("p", 1, a=text("x")), operation_id=5))) == first
    assert list(first.local_index_units) == [1, 0, 0]


# --- reads ---


def filled(count: int) -> Leader:
    """A partition with items p/0 … p/count-1, whose `b` falls, in threes; every fifth has none."""
    leader = indexed()
    for n in range(count):
        b = {} if n % 5 == 4 else {"b": number((count - n) // 3)}
        leader.put(item("p", n, a=text(f"a{n:03}"), c=text("c"), d=text("d" * 20), **b))
    leader.put(item("q", 0, b=number(0)))
    leader.apply()
    return leader


def of(index: int, pk: str = "p", **options: Any) -> storage_pb2.Query:
    start = partition_hash("S", pk)
    return storage_pb2.Query(start=start, end=prefix_end(start), index=index, **options)


def run(leader: Leader, query: storage_pb2.Query) -> tuple[storage_pb2.QueryReply, list[Item], int]:
    page, slices, finished = Page(), 0, False
    while not finished:
        finished = leader.partition.query_slice(query, page)
        slices += 1
    reply = reply_of(page, INDEXED)
    items: list[Item] = orjson.loads(b"[" + reply.items + b"]")
    return reply, items, slices


@pytest.mark.parametrize(
    ("index", "names"),
    [(ALL, {"pk", "sk", "a", "b", "c", "d"}), (KEYS, {"pk", "sk", "b"}), (INCLUDE, {"pk", "sk", "b", "c"})],
)
def test_reads_give_what_is_projected(index: int, names: set[str]) -> None:
    reply, items, _ = run(filled(1), of(index))
    assert [set(each) for each in items] == [names]
    assert reply.size == item_size(items[0])
    assert reply.fetched_units == 0


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("limit", [0, 1, 3, 4])
def test_pages_are_complete_and_in_one_order(reverse: bool, limit: int) -> None:
    """Case 102: equal sort keys keep one order over pages; case 90: items without the key are left out."""
    leader, found, after = filled(20), [], b""
    while True:
        reply, items, _ = run(leader, of(KEYS, reverse=reverse, limit=limit, after=after))
        found += items
        if not reply.last_key:
            break
        last = load(reply.last_key_attributes)
        assert last == {name: items[-1][name] for name in ("pk", "sk", "b")}
        after = reply.last_key
    values = [int(each["b"]["N"]) for each in found]
    assert values == sorted(values, reverse=reverse)
    assert sorted(int(each["sk"]["N"]) for each in found) == [n for n in range(20) if n % 5 != 4]
    whole = run(leader, of(KEYS))[1]
    assert found == (whole[::-1] if reverse else whole)


def test_whole_items_are_fetched_and_charged_one_by_one() -> None:
    leader = indexed()
    for n, size in enumerate((10, 4000, 5000)):
        leader.put(item("p", n, b=number(n), d=text("x" * size)))
    leader.apply()
    reply, items, _ = run(leader, of(KEYS, fetch=True))
    assert [len(each["d"]["S"]) for each in items] == [10, 4000, 5000]
    assert reply.fetched_units == 1 + 1 + 2
    assert reply.size == run(leader, of(KEYS))[0].size


def test_what_is_fetched_counts_for_the_size_of_a_page() -> None:
    leader = indexed()
    for n in range(6):
        leader.put(item("p", n, b=number(n), d=text("x" * 1000)))
    leader.apply()
    reply, items, _ = run(leader, of(KEYS, fetch=True, max_bytes=3000))
    assert len(items) == 3
    assert reply.last_key
    assert len(run(leader, of(KEYS, max_bytes=3000))[1]) == 6


def test_an_index_is_read_in_slices() -> None:
    leader = filled(SLICE_ROWS + 10)
    reply, items, slices = run(leader, of(ALL))
    assert len(items) == SLICE_ROWS + 10
    assert slices == 2
    assert not reply.last_key


def _rows_of(leader: Leader, index: int) -> list[tuple[bytes, bytes]]:
    start = partition_hash("S", "p")
    return list(leader.store.scan(start, prefix_end(start), index=index))


@pytest.mark.parametrize("index", [KEYS, INCLUDE])
def test_a_damaged_entry_is_noticed(index: int) -> None:
    leader = filled(1)
    ((entry_key, stored),) = _rows_of(leader, index)
    damaged: dict[bytes, bytes | None] = {layout.index_key(index, entry_key): stored[:-2] + b"?" + stored[-1:]}
    leader.store.write(WriteBatch(leader.store.applied(), index_entries=damaged))
    with pytest.raises(codec.CorruptItem):
        run(leader, of(index))


def test_an_entry_of_another_index_is_noticed() -> None:
    leader = filled(1)
    ((entry_key, stored),) = _rows_of(leader, KEYS)
    leader.store.write(WriteBatch(leader.store.applied(), index_entries={layout.index_key(INCLUDE, entry_key): stored}))
    with pytest.raises(codec.CorruptItem):
        run(leader, of(INCLUDE))


def test_an_entry_without_its_item_is_noticed() -> None:
    leader = filled(1)
    leader.store.write(WriteBatch(leader.store.applied(), {key("p", 0): None}))
    with pytest.raises(codec.CorruptItem):
        run(leader, of(KEYS, fetch=True))


def test_statistics_count_each_index() -> None:
    leader = filled(10)
    statistics = leader.partition.statistics()
    assert [count.items for count in statistics.local_indexes] == [10, 9, 9]
    entries = [run(leader, of(index, pk)) for index in (ALL, KEYS, INCLUDE) for pk in "pq"]
    sizes = [one[0].size + other[0].size for one, other in zip(entries[::2], entries[1::2], strict=True)]
    assert [count.size for count in statistics.local_indexes] == sizes
    leader.delete("q", 0)
    leader.apply()
    assert [count.items for count in leader.partition.statistics().local_indexes] == [10, 8, 8]


def test_tables_without_local_indexes_keep_nothing_of_the_kind() -> None:
    leader = Leader()
    reply = written(leader.put(item("p", 1, a=text("x"), b=number(1))))
    leader.apply()
    assert not reply.local_index_units
    assert reply.collection_size == 0
    assert leader.store.applied().indexes == ()
    assert leader.store.collection_size(partition_hash("S", "p")) == 0
    assert list(leader.store.scan(b"", b"", index=1)) == []
