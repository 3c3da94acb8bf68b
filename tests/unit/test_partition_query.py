"""Pages over one partition: bounds, both directions, limits, filters, projections, and slices."""

from __future__ import annotations

import orjson
import pytest

from cluster.wire import storage_pb2
from dynamo.expressions.compile import compile_expressions
from dynamo.item import item_size
from dynamo.keys import partition_hash, prefix_end
from dynamo.values import Item
from storagenode.query import SLICE_ROWS, Page, reply_of
from tests.unit.partition_samples import TABLE, Leader, item, key, values_json


def run(leader: Leader, query: storage_pb2.Query) -> tuple[storage_pb2.QueryReply, list[Item], int]:
    """The reply, its items decoded, and how many slices it took."""
    page, slices, finished = Page(), 0, False
    while not finished:
        finished = leader.partition.query_slice(query, page)
        slices += 1
    reply = reply_of(page, TABLE)
    items: list[Item] = orjson.loads(b"[" + reply.items + b"]")
    return reply, items, slices


def filled(count: int) -> Leader:
    """A partition with items a/0 … a/count-1, and one of another key."""
    leader = Leader()
    for n in range(count):
        leader.put(item("a", n, v={"S": "x" * 10}))
    leader.put(item("b", 0))
    leader.apply()
    return leader


def of(pk: str, **options: object) -> storage_pb2.Query:
    """A query of one partition key."""
    start = partition_hash("S", pk)
    return storage_pb2.Query(start=start, end=prefix_end(start), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("reverse", [False, True])
def test_all_items_of_a_key_in_numeric_order(reverse: bool) -> None:
    _, items, _ = run(filled(12), of("a", reverse=reverse))
    numbers = [int(found["sk"]["N"]) for found in items]
    assert numbers == sorted(range(12), reverse=reverse)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("limit", [1, 3, 5])
def test_pages_by_limit_give_every_item_once(reverse: bool, limit: int) -> None:
    leader = filled(10)
    found: list[int] = []
    after = b""
    while True:
        reply, items, _ = run(leader, of("a", reverse=reverse, limit=limit, after=after))
        found += [int(one["sk"]["N"]) for one in items]
        if not reply.last_key:
            break
        after = reply.last_key
    assert found == sorted(range(10), reverse=reverse)


def test_a_page_that_ends_at_its_limit_says_where_even_if_nothing_follows() -> None:
    reply, items, _ = run(filled(3), of("a", limit=3))
    assert len(items) == 3
    assert reply.last_key == key("a", 2)
    assert reply.last_key_attributes == b'{"pk":{"S":"a"},"sk":{"N":"2"}}'


def test_a_page_ends_before_its_bytes_are_exceeded_but_has_one_row_at_least() -> None:
    leader = filled(5)
    size = sum(item_size(item("a", n, v={"S": "x" * 10})) for n in range(3))
    reply, items, _ = run(leader, of("a", max_bytes=size))
    assert (len(items), reply.size, bool(reply.last_key)) == (3, size, True)
    reply, items, _ = run(leader, of("a", max_bytes=1))
    assert len(items) == 1


def test_the_filter_counts_rows_that_it_keeps_back() -> None:
    compiled = compile_expressions(filter="sk >= :n", names=None, values={":n": {"N": "7"}})
    query = of("a", filter=compiled.encoded_filter, values=values_json(compiled.values))
    reply, items, _ = run(filled(10), query)
    assert [int(found["sk"]["N"]) for found in items] == [7, 8, 9]
    assert (reply.count, reply.scanned_count) == (3, 10)


def test_projection_and_count_only() -> None:
    compiled = compile_expressions(projection="sk", names=None, values=None)
    _, items, _ = run(filled(2), of("a", projection=compiled.encoded_projection))
    assert items == [{"sk": {"N": "0"}}, {"sk": {"N": "1"}}]
    reply, items, _ = run(filled(2), of("a", count_only=True))
    assert (items, reply.count) == ([], 2)


def test_a_scan_of_everything_goes_on_slice_by_slice() -> None:
    leader = filled(3 * SLICE_ROWS)
    reply, items, slices = run(leader, storage_pb2.Query())
    assert len(items) == 3 * SLICE_ROWS + 1
    assert slices > 3
    assert not reply.last_key


def test_an_empty_range_gives_an_empty_page() -> None:
    reply, items, slices = run(filled(1), of("nobody"))
    assert (items, reply.scanned_count, reply.last_key, slices) == ([], 0, b"", 1)
