"""Both stores equal a plain dict under random batches, ranges and restarts."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice

from hypothesis import given, settings
from hypothesis import strategies as st

from storagenode.storage import layout
from storagenode.storage.lmdb_store import LmdbStore
from storagenode.storage.memory_store import MemoryStore
from storagenode.storage.store import Applied, OperationIdRow, Store, WriteBatch

short_keys = st.binary(max_size=3)
"""Few, so that puts meet and prefixes of each other are common."""
long_keys = st.tuples(short_keys, st.sampled_from((1024, layout.KEY_BYTES_MAX - 4))).map(
    lambda two: two[0] + b"k" * two[1]
)
item_keys = short_keys | long_keys
values = st.binary(max_size=40) | st.integers(4000, 9000).map(lambda size: b"v" * size)
batches = st.lists(st.dictionaries(item_keys, st.none() | values, max_size=8), max_size=8)
ranges = st.lists(st.tuples(short_keys, short_keys, st.booleans(), st.integers(0, 20)), max_size=5)


@contextmanager
def both_stores() -> Iterator[tuple[Store, Store]]:
    with tempfile.TemporaryDirectory() as folder:
        lmdb, memory = LmdbStore(folder, 1, 1), MemoryStore()
        try:
            yield lmdb, memory
        finally:
            lmdb.close()


def expected(rows: dict[bytes, bytes], start: bytes, end: bytes, *, reverse: bool) -> list[tuple[bytes, bytes]]:
    return sorted(
        ((key, value) for key, value in rows.items() if start <= key and (not end or key < end)), reverse=reverse
    )


@settings(max_examples=80, deadline=None)
@given(batches, ranges)
def test_stores_equal_a_dict(
    writes: list[dict[bytes, bytes | None]], scans: list[tuple[bytes, bytes, bool, int]]
) -> None:
    rows: dict[bytes, bytes] = {}
    with both_stores() as stores:
        for position, items in enumerate(writes, 1):
            for key, value in items.items():
                if value is None:
                    rows.pop(key, None)
                else:
                    rows[key] = value
            for store in stores:
                store.write(WriteBatch(Applied(position, 1, position, len(rows)), items))
        for store in stores:
            assert store.applied().position == len(writes)
            for start, end, reverse, limit in [*scans, (b"", b"", False, 1000), (b"", b"", True, 1000)]:
                with closing(store.scan(start, end, reverse=reverse)) as found:
                    assert list(islice(found, limit)) == expected(rows, start, end, reverse=reverse)[:limit]
            assert {key: store.get(key) for key in rows} == rows


@settings(max_examples=40, deadline=None)
@given(batches, item_keys)
def test_a_batch_that_fails_leaves_the_store_as_it_was(writes: list[dict[bytes, bytes | None]], key: bytes) -> None:
    too_long = b"k" * layout.KEY_BYTES_MAX
    with both_stores() as stores:
        for position, items in enumerate(writes, 1):
            for store in stores:
                store.write(WriteBatch(Applied(position), items))
        for store in stores:
            before, applied = list(store.scan(b"", b"")), store.applied()
            try:
                store.write(WriteBatch(Applied(99), {key: b"new", too_long: b"too long"}, meta={b"schema": b"new"}))
            except ValueError:
                pass
            else:
                raise AssertionError("a key too long was taken")
            assert (list(store.scan(b"", b"")), store.applied(), store.schema()) == (before, applied, None)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5), min_size=1, max_size=90),
    st.integers(0, 200),
)
def test_operation_ids_come_back_without_those_that_may_go(ids: list[list[int]], forget_before: int) -> None:
    rows, position = [], 1
    for batch in ids:
        rows.append(OperationIdRow(position, position * 10, tuple(batch)))
        position += len(batch)
    old = [row for row in rows if row.last_position < forget_before]
    with both_stores() as stores:
        for store in stores:
            for row in rows:
                store.write(WriteBatch(Applied(row.last_position), operation_ids=row))
            store.write(WriteBatch(store.applied(), forget_operation_ids_before=forget_before))
            kept = list(store.operation_ids())
            assert kept == rows[min(len(old), layout.FORGOTTEN_ROWS_MAX) :]
