"""What every store must do, on both of them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from cluster.local_disk import LocalDisk
from storagenode.storage import layout
from storagenode.storage.lmdb_store import TRASH_SECONDS, LmdbStore, LmdbStores
from storagenode.storage.memory_store import MemoryStore, MemoryStores
from storagenode.storage.store import (
    Applied,
    IndexCount,
    OperationIdRow,
    Store,
    StoreBroken,
    StoreFull,
    Stores,
    WriteBatch,
)


def make_stores(kind: str, path: Path) -> Stores:
    if kind == "memory":
        return MemoryStores()
    return LmdbStores(LocalDisk(), str(path / "partitions"), str(path / "trash"), lambda: 0.0)


@pytest.fixture(params=["lmdb", "memory"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Stores:
    return make_stores(request.param, tmp_path)


@pytest.fixture
def store(stores: Stores) -> Store:
    return stores.open(1, 2)


def put(store: Store, **items: bytes | None) -> None:
    position = store.applied().position + 1
    store.write(WriteBatch(Applied(position), {key.encode(): value for key, value in items.items()}))


def keys(store: Store, start: bytes = b"", end: bytes = b"", *, reverse: bool = False) -> list[bytes]:
    return [key for key, _ in store.scan(start, end, reverse=reverse)]


def test_an_empty_store_has_applied_nothing(store: Store) -> None:
    assert store.applied() == Applied(0, 0, 0, 0, 0)
    assert keys(store) == keys(store, reverse=True) == []
    assert (store.get(b"a"), store.meta(b"schema"), list(store.operation_ids())) == (None, None, [])


def test_items_are_put_replaced_and_deleted(store: Store) -> None:
    put(store, a=b"1", b=b"2")
    put(store, a=b"3", b=None, never=None)
    assert list(store.scan(b"", b"")) == [(b"a", b"3")]
    assert (store.get(b"a"), store.get(b"b")) == (b"3", None)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (b"", b"", [b"a", b"b", b"bb", b"c"]),
        (b"b", b"", [b"b", b"bb", b"c"]),
        (b"", b"bb", [b"a", b"b"]),
        (b"b", b"c", [b"b", b"bb"]),
        (b"ba", b"bc", [b"bb"]),
        (b"c", b"b", []),
        (b"d", b"", []),
    ],
)
def test_a_range_is_scanned_both_ways(store: Store, start: bytes, end: bytes, expected: list[bytes]) -> None:
    put(store, a=b"", b=b"", bb=b"", c=b"")
    assert keys(store, start, end) == expected
    assert keys(store, start, end, reverse=True) == expected[::-1]


def test_other_rows_never_show_among_items(store: Store) -> None:
    store.write(
        WriteBatch(
            Applied(1),
            {b"\xff" * 40: b"last", b"": b"first"},
            changes=[(1, 0, b"change")],
            meta={b"schema": b"v1"},
            operation_ids=OperationIdRow(1, 10, (5,)),
        )
    )
    assert keys(store) == [b"", b"\xff" * 40]
    assert keys(store, reverse=True) == [b"\xff" * 40, b""]


def changes_left(store: Store) -> list[tuple[int, int]]:
    """Position and number of every change row."""
    return [layout.change_place(key) for key, _ in store.rows(layout.CHANGE, layout.prefix_end(layout.CHANGE))]


def test_change_rows_are_in_order_and_go_when_all_have_read_them(store: Store) -> None:
    places = [(1, 0), (1, 1), (255, 0), (256, 0), (256, 1), (1 << 40, 0)]
    store.write(WriteBatch(Applied(1 << 40), {b"k": b"v"}, changes=[(*place, b"row") for place in reversed(places)]))
    assert changes_left(store) == places
    store.write(WriteBatch(Applied(1 << 40), forget_changes_to=255))
    assert changes_left(store) == places[3:]
    store.write(WriteBatch(Applied(1 << 40), forget_changes_to=1 << 40))
    assert changes_left(store) == []
    assert keys(store) == [b"k"]


def test_a_write_forgets_more_change_rows_than_it_adds_but_not_all_at_once(store: Store) -> None:
    many = 3 * layout.FORGOTTEN_ROWS_MAX
    store.write(WriteBatch(Applied(many), changes=[(position, 0, b"row") for position in range(1, many + 1)]))
    added = [(many + 1, number, b"row") for number in range(10)]
    store.write(WriteBatch(Applied(many + 1), changes=added, forget_changes_to=many))
    assert changes_left(store)[0] == (layout.FORGOTTEN_ROWS_MAX + 2 * len(added) + 1, 0)


@pytest.mark.parametrize("reverse", [False, True])
def test_local_indexes_are_apart_from_items_and_each_other(store: Store, reverse: bool) -> None:
    entries: dict[bytes, bytes | None] = {
        layout.index_key(number, key): b"%d" % number for number in (1, 2, 255, 256) for key in (b"a", b"b", b"\xff")
    }
    store.write(WriteBatch(Applied(1), {b"item": b"0"}, index_entries=entries))
    store.write(WriteBatch(Applied(2), index_entries={layout.index_key(2, b"b"): None}))
    assert keys(store) == [b"item"]
    for number, expected in ((1, [b"a", b"b", b"\xff"]), (2, [b"a", b"\xff"]), (255, [b"a", b"b", b"\xff"]), (3, [])):
        rows = list(store.scan(b"", b"", reverse=reverse, index=number))
        assert rows == sorted([(key, b"%d" % number) for key in expected], reverse=reverse)
        middle = [key for key, _ in store.scan(b"b", b"\xff", reverse=reverse, index=number)]
        assert middle == [key for key in expected if key == b"b"]


def test_sizes_of_item_collections(store: Store) -> None:
    one, other = b"1" * 16, b"2" * 16
    store.write(WriteBatch(Applied(1), collections={one: 5, other: 11 << 30}))
    assert [store.collection_size(hash_) for hash_ in (one, other, b"3" * 16)] == [5, 11 << 30, 0]
    store.write(WriteBatch(Applied(2), collections={one: 0}))
    assert [store.collection_size(hash_) for hash_ in (one, other)] == [0, 11 << 30]
    assert keys(store) == []


def test_counts_of_local_indexes_are_kept_with_the_applied_position(stores: Stores) -> None:
    applied = Applied(3, 1, 9, 2, 50, (IndexCount(1, 30), IndexCount(0, 0)))
    store = stores.open(1, 2)
    store.write(WriteBatch(applied))
    store.close()
    assert stores.open(1, 2).applied() == applied


def test_a_scan_sees_one_moment(store: Store) -> None:
    put(store, a=b"1", b=b"1", c=b"1")
    with closing(store.scan(b"", b"")) as rows:
        assert next(rows) == (b"a", b"1")
        put(store, b=None, c=b"2", d=b"2")
        with closing(store.scan(b"", b"")) as later:
            put(store, a=None)
            assert list(later) == [(b"c", b"2"), (b"d", b"2")]
        assert list(rows) == [(b"b", b"1"), (b"c", b"1")]


def test_what_apply_rests_on_is_kept_with_it(stores: Stores) -> None:
    store = stores.open(1, 2)
    applied = Applied(7, 3, 1 << 63, 5, 1 << 40)
    store.write(WriteBatch(applied, meta={b"schema": b"v1", b"gone": b""}))
    store.write(WriteBatch(applied, meta={b"gone": None}))
    store.close()
    again = stores.open(1, 2)
    assert again.applied() == applied
    assert (again.meta(b"schema"), again.meta(b"gone")) == (b"v1", None)
    again.close()


def test_the_applied_position_never_moves_back(store: Store) -> None:
    store.write(WriteBatch(Applied(7)))
    with pytest.raises(ValueError, match="applied"):
        store.write(WriteBatch(Applied(6), {b"a": b"1"}))
    assert (store.applied().position, store.get(b"a")) == (7, None)


def test_a_key_of_the_largest_size_fits_and_a_longer_one_keeps_nothing_of_its_batch(store: Store) -> None:
    longest = b"k" * (layout.KEY_BYTES_MAX - 1)
    store.write(WriteBatch(Applied(1), {longest: b"1"}))
    with pytest.raises(ValueError, match="key"):
        store.write(WriteBatch(Applied(2), {b"a": b"1", longest + b"k": b"1"}))
    assert (store.get(longest), store.get(b"a"), store.applied().position) == (b"1", None, 1)


def test_a_stored_item_of_half_a_megabyte_comes_back(store: Store) -> None:
    value = Random(1).randbytes(500_000)
    put(store, a=value)
    assert store.get(b"a") == value


def test_operation_ids_come_back_in_order_and_old_ones_go_a_few_at_a_time(store: Store) -> None:
    per_write = layout.FORGOTTEN_ROWS_MAX
    rows = [OperationIdRow(1 + 2 * n, 1000 + n, (n + 1, 1 << 63)) for n in range(per_write + 10)]
    for row in rows:
        store.write(WriteBatch(Applied(row.last_position), operation_ids=row))
    assert list(store.operation_ids()) == rows
    last = rows[-1].last_position
    # The row at per_write + 5 covers this position and the one before it: it stays.
    forgotten_before = rows[per_write + 5].last_position
    store.write(WriteBatch(Applied(last), forget_operation_ids_before=forgotten_before))
    assert list(store.operation_ids()) == rows[per_write:]
    store.write(WriteBatch(Applied(last), forget_operation_ids_before=forgotten_before))
    assert list(store.operation_ids()) == rows[per_write + 5 :]
    store.write(WriteBatch(Applied(last), forget_operation_ids_before=last + 1))
    assert list(store.operation_ids()) == []


def test_a_batch_is_made_step_by_step(store: Store) -> None:
    batch = WriteBatch()
    batch.put(b"a", b"1")
    batch.put(b"b", b"1")
    batch.delete(b"b")
    batch.set_schema(b"v1")
    batch.add_operation_ids(3, 1000, [0, 9])
    batch.applied = Applied(4)
    store.write(batch)
    assert (keys(store), store.schema()) == ([b"a"], b"v1")
    assert list(store.operation_ids()) == [(3, 1000, (0, 9))]


def test_entries_without_ids_leave_no_row(store: Store) -> None:
    batch = WriteBatch(Applied(2))
    batch.add_operation_ids(1, 1000, [0, 0])
    store.write(batch)
    assert list(store.operation_ids()) == []


def test_stores_are_apart_and_can_be_thrown_away(stores: Stores) -> None:
    first, second = stores.open(1, 2), stores.open(1, 3)
    put(first, a=b"1")
    assert second.get(b"a") is None
    assert stores.existing() == [(1, 2), (1, 3)]
    first.close()
    stores.discard(1, 2)
    stores.discard(1, 2)
    assert stores.existing() == [(1, 3)]
    assert stores.open(1, 2).get(b"a") is None


def test_a_dropped_store_is_gone(stores: Stores) -> None:
    stores.open(1, 2).close()
    stores.retire(1, 2)
    stores.retire(1, 2)
    assert stores.existing() == []


def test_the_trash_keeps_an_environment_for_a_while(tmp_path: Path) -> None:
    now = 1_000_000.0
    stores = LmdbStores(LocalDisk(), str(tmp_path / "partitions"), str(tmp_path / "trash"), lambda: now)
    store = stores.open(1, 2)
    put(store, a=b"1")
    store.close()
    stores.retire(1, 2)
    now += TRASH_SECONDS
    stores.empty_trash()
    (kept,) = (tmp_path / "trash").iterdir()
    with closing(LmdbStore(str(kept), 1, 2)) as again:
        assert again.get(b"a") == b"1"
    now += 1
    stores.empty_trash()
    assert list((tmp_path / "trash").iterdir()) == []


def test_an_environment_of_another_replica_is_refused(tmp_path: Path) -> None:
    LmdbStore(str(tmp_path), 1, 2).close()
    with pytest.raises(StoreBroken, match="another replica"):
        LmdbStore(str(tmp_path), 1, 3)
    LmdbStore(str(tmp_path), 1, 2).close()


def test_a_file_that_is_no_environment_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(b"something else" * 1000)
    with pytest.raises(StoreBroken):
        LmdbStore(str(tmp_path), 1, 2)


def test_a_full_environment_keeps_nothing_of_the_write_and_goes_on(tmp_path: Path) -> None:
    store = LmdbStore(str(tmp_path), 1, 2, map_bytes=1 << 20)
    put(store, a=b"1")
    with pytest.raises(StoreFull):
        store.write(WriteBatch(Applied(2), {b"a": b"2", b"b": bytes(2 << 20)}))
    assert (store.get(b"a"), store.get(b"b"), store.applied().position) == (b"1", None, 1)
    put(store, a=b"3")
    store.sync()
    assert store.get(b"a") == b"3"
    store.close()


def test_a_damaged_applied_row_is_noticed() -> None:
    value = bytearray(layout.encode_applied(Applied(1, 2, 3, 4, 5)))
    assert layout.decode_applied(bytes(value)) == Applied(1, 2, 3, 4, 5)
    value[9] ^= 1
    with pytest.raises(StoreBroken):
        layout.decode_applied(bytes(value))


def test_a_damaged_operation_id_row_is_noticed() -> None:
    row = OperationIdRow(5, 6, (7, 8))
    key, value = layout.operation_ids_key(5), layout.encode_operation_ids(row)
    assert layout.decode_operation_ids(key, value) == row
    assert layout.last_position_of(key, value) == row.last_position == 6
    with pytest.raises(StoreBroken):
        layout.decode_operation_ids(key, value[:-1] + b"\x01")


def test_prefixes_are_one_byte_and_different() -> None:
    assert len(set(layout.VERSIONS)) == len(layout.VERSIONS)
    assert {len(prefix) for prefix in layout.VERSIONS} == {1}


def test_memory_survives_being_closed() -> None:
    store = MemoryStore()
    put(store, a=b"1")
    store.close()
    assert store.get(b"a") == b"1"


def test_rows_of_other_kinds_are_found_by_their_whole_keys(store: Store) -> None:
    ages = {layout.token_age_key(position): b"%d" % position for position in (9, 256, 1)}
    store.write(WriteBatch(Applied(1), {b"item": b""}, rows={layout.pending_key(b"a"): b"mark", **ages}))
    assert store.row(layout.pending_key(b"a")) == b"mark"
    low, high = layout.TOKEN_AGE, layout.prefix_end(layout.TOKEN_AGE)
    with closing(store.rows(low, high)) as found:
        assert [value for _, value in found] == [b"1", b"9", b"256"]
    store.write(WriteBatch(Applied(2), rows={layout.pending_key(b"a"): None}))
    assert store.row(layout.pending_key(b"a")) is None
    assert keys(store) == [b"item"]
