"""Copies of stores, and stores made from them, on both kinds of store."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from storagenode.storage.store import (
    Applied,
    OperationIdRow,
    Store,
    StoreBroken,
    StoreCopy,
    StoreError,
    Stores,
    WriteBatch,
)
from tests.unit.test_store import make_stores

PIECE = 10_000


@pytest.fixture(params=["lmdb", "memory"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Stores:
    return make_stores(request.param, tmp_path)


def fill(store: Store, first: int, count: int, size: int = 900) -> None:
    items: dict[bytes, bytes | None] = {b"%06d" % n: b"%d." % n * (size // 8) for n in range(first, first + count)}
    position = store.applied().position + 1
    ids = OperationIdRow(position, 5, (position * 7,))
    store.write(WriteBatch(Applied(position, 2, 3, count, 5), items, meta={b"schema": b"s"}, operation_ids=ids))


def rows(store: Store) -> tuple[object, ...]:
    return list(store.scan(b"", b"")), store.schema(), list(store.operation_ids()), store.applied()


def read_all(copy: StoreCopy) -> bytes:
    parts = []
    while piece := copy.read(PIECE):
        assert len(piece) <= PIECE
        parts.append(piece)
    copy.close()
    return b"".join(parts)


def restored(stores: Stores, data: bytes, partition: int = 1, replica: int = 3) -> Store:
    restoration = stores.restore(partition, replica)
    for at in range(0, len(data), PIECE):
        restoration.write(data[at : at + PIECE])
    store = stores.open(partition, replica)
    restoration.open()
    restoration.place(store)
    return store


def test_a_copy_restores_to_the_same_rows_as_another_replica(stores: Stores) -> None:
    store = stores.open(1, 2)
    fill(store, 0, 500)
    data = read_all(store.copy())
    copied = restored(stores, data)
    assert rows(copied) == rows(store)
    copied.close()
    again = stores.open(1, 3)
    assert rows(again) == rows(store)
    fill(again, 500, 1)
    assert again.get(b"000500") is not None
    assert store.get(b"000500") is None


def test_a_copy_is_of_one_moment_whatever_is_written_meanwhile(stores: Stores) -> None:
    store = stores.open(1, 2)
    fill(store, 0, 3000)
    before = rows(store)
    copy = store.copy()
    head = copy.read(PIECE)
    fill(store, 1000, 3000)
    assert copy.applied == Applied(1, 2, 3, 3000, 5)
    assert rows(restored(stores, head + read_all(copy))) == before


def test_a_restored_store_takes_the_place_of_one_in_use(stores: Stores) -> None:
    store = stores.open(1, 2)
    fill(store, 0, 10)
    data = read_all(store.copy())
    fill(store, 10, 10)
    restoration = stores.restore(1, 2)
    restoration.write(data)
    other = restoration.open()
    fill(other, 20, 10)
    restoration.place(store)
    fill(store, 30, 10)
    assert [store.get(b"%06d" % n) is not None for n in (0, 10, 20, 30)] == [True, False, True, True]
    expected = rows(store)
    store.close()
    assert rows(stores.open(1, 2)) == expected


def test_a_copy_that_is_cut_short_is_refused(stores: Stores) -> None:
    store = stores.open(1, 2)
    fill(store, 0, 100)
    data = read_all(store.copy())
    restoration = stores.restore(1, 9)
    restoration.write(data[: len(data) // 2 + 3])
    with pytest.raises(StoreBroken):
        restoration.open()
    restoration.discard()
    assert stores.open(1, 9).applied() == Applied()


def test_a_store_is_no_copy_of_another_partition(tmp_path: Path) -> None:
    stores = make_stores("lmdb", tmp_path)
    store = stores.open(1, 2)
    fill(store, 0, 10)
    restoration = stores.restore(7, 9)
    restoration.write(read_all(store.copy()))
    with pytest.raises(StoreBroken, match="partition 7"):
        restoration.open()
    restoration.discard()
    assert stores.open(7, 9).applied() == Applied()


def test_closing_a_store_ends_its_copies(stores: Stores) -> None:
    store = stores.open(1, 2)
    fill(store, 0, 3000)
    before = threading.active_count()
    copy = store.copy()
    copy.read(10)
    copy.close()
    copy.close()
    assert threading.active_count() == before
    with pytest.raises(StoreError, match="closed"):
        copy.read(10)
    store.copy().read(10)
    store.close()
    assert threading.active_count() == before


def test_space_tells_what_is_free_in_the_file(tmp_path: Path) -> None:
    stores = make_stores("lmdb", tmp_path)
    store = stores.open(1, 2)
    fill(store, 0, 2000)
    full = store.space()
    assert full.live <= full.file
    store.write(WriteBatch(Applied(2), {b"%06d" % n: None for n in range(1900)}))
    thinned = store.space()
    assert thinned.file >= full.file
    assert thinned.live < full.live / 5
    data = read_all(store.copy())
    store.close()
    assert restored(stores, data, 1, 2).space().file < thinned.file / 5


def test_whoever_copies_a_store_hears_that_it_was_closed(tmp_path: Path) -> None:
    store = make_stores("lmdb", tmp_path).open(1, 2)
    fill(store, 0, 3000)
    copy = store.copy()
    copy.read(10)
    store.close()
    with pytest.raises(StoreError, match="closed"):
        copy.read(10)
