"""The additive hash that stores keep of their rows, and walks that check it while rows change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import lmdb
import pytest

from cluster.local_disk import LocalDisk
from dynamo import codec
from storagenode.storage import layout
from storagenode.storage.lmdb_store import LmdbStores
from storagenode.storage.memory_store import MemoryStore, MemoryStores
from storagenode.storage.row_sums import ALL, RowWalk, is_summed, sum_of, verify_row
from storagenode.storage.store import Applied, Store, StoreBroken, Stores, WriteBatch

EVERYTHING = 1 << 30


@pytest.fixture(params=["lmdb", "memory"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Stores:
    if request.param == "memory":
        return MemoryStores()
    return LmdbStores(LocalDisk(), str(tmp_path / "partitions"), str(tmp_path / "trash"), lambda: 0.0)


@pytest.fixture
def store(stores: Stores) -> Store:
    return stores.open(1, 2)


def stored(key: bytes, body: bytes, position: int = 1) -> bytes:
    return codec.encode(key, body, codec.ItemHeader(0, 0, len(body), position, position))


def write(store: Store, *puts: tuple[bytes, bytes | None], ids: tuple[int, ...] = ()) -> None:
    position = store.applied().position + 1
    batch = WriteBatch(Applied(position))
    for key, body in puts:
        batch.items[key] = None if body is None else stored(key, body, position)
    batch.add_operation_ids(position, 1, ids)
    store.write(batch)


def walk(store: Store, rows_max: int = EVERYTHING, between: Callable[[int], None] = lambda _: None) -> RowWalk:
    """A whole walk; `between` is called in the middle of each slice and after it."""
    made, step = store.begin_walk(), 0
    while not made.whole:
        look = store.walk_slice(made, rows_max)
        between(step)
        look()
        between(step + 1)
        made.end()
        step += 2
    return made


def test_the_sum_follows_from_the_rows_alone(stores: Stores) -> None:
    one, other = stores.open(1, 2), stores.open(1, 3)
    write(one, (b"a", b"1"), (b"b", b"2"))
    assert one.row_sum() != other.row_sum() == 0
    write(other, (b"x", b"gone"), (b"b", b"0"))
    write(one, (b"c", b"3"), ids=(7,))
    other.write(WriteBatch(Applied(2), {b"x": None, b"a": stored(b"a", b"1"), b"b": stored(b"b", b"2")}))
    assert one.row_sum() != other.row_sum()
    other.write(WriteBatch(Applied(2), {b"c": stored(b"c", b"3", 2)}))
    assert one.row_sum() == other.row_sum() == sum_of(one.rows(*ALL))


def test_a_walk_among_writes_gives_the_sum_that_is_kept(store: Store) -> None:
    random = Random(7)
    keys = [b"%03d" % number for number in range(60)]

    def some_writes(_: int) -> None:
        for key in random.sample(keys, 4):
            write(store, (key, random.choice((None, b"x", b"yy"))))

    write(store, *((key, b"first") for key in keys))
    for rows_max in (1, 7, 59, 60, 61):
        done = walk(store, rows_max, some_writes)
        assert done.sum == store.row_sum() == sum_of(store.rows(*ALL))
        assert done.damaged_rows == 0


def test_a_walk_ends_with_the_store_that_it_was_of(stores: Stores) -> None:
    store = stores.open(1, 2)
    write(store, (b"a", b"1"))
    begun = store.begin_walk()
    look = store.walk_slice(begun, 10)
    restoration = stores.restore(1, 2)
    restoration.open_empty()
    restoration.place(store)
    look()
    assert begun.void
    assert (store.applied().position, store.row_sum()) == (0, 0)
    write(store, (b"b", b"2"))
    assert walk(store).sum == store.row_sum()


def tamper(path: Path, change: Callable[[lmdb.Transaction], object]) -> None:
    """Do something to an environment that its store does not know of."""
    with lmdb.open(str(path), map_size=1 << 30, lib_version=1) as environment, environment.begin(write=True) as writing:
        change(writing)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An LMDB store's folder, with 50 rows in it."""
    store = real_stores(tmp_path).open(1, 2)
    write(store, *((b"%03d" % number, b"body") for number in range(50)), ids=(1,))
    store.close()
    return tmp_path / "partitions" / f"{1:016x}-{2:016x}"


def real_stores(path: Path) -> LmdbStores:
    return LmdbStores(LocalDisk(), str(path / "partitions"), str(path / "trash"), lambda: 0.0)


def test_a_hidden_row_is_found(folder: Path, tmp_path: Path) -> None:
    tamper(folder, lambda writing: writing.delete(layout.ITEM + b"007"))
    store = real_stores(tmp_path).open(1, 2)
    write(store, (b"later", b"1"))
    done = walk(store)
    assert done.sum != store.row_sum()
    assert done.damaged_rows == 0
    store.close()


def test_a_row_under_another_key_and_a_changed_body_are_found(folder: Path, tmp_path: Path) -> None:
    def swap(writing: lmdb.Transaction) -> None:
        moved = writing.pop(layout.ITEM + b"007")
        assert moved is not None
        writing.put(layout.ITEM + b"107", moved)
        body = writing.get(layout.ITEM + b"008")
        assert body is not None
        writing.put(layout.ITEM + b"008", bytes(body)[:-1] + b"Y")

    tamper(folder, swap)
    store = real_stores(tmp_path).open(1, 2)
    done = walk(store)
    assert done.sum != store.row_sum()
    assert done.damaged_rows == 2
    assert "checksum" in done.damaged[0]
    store.close()


OF_ANOTHER: bytes = layout.encode_sum(0, 99)
"""A sum that an older release has left behind by writing without it."""


@pytest.mark.parametrize(
    "age", [lambda writing: writing.delete(layout.SUM_KEY), lambda writing: writing.put(layout.SUM_KEY, OF_ANOTHER)]
)
def test_a_store_of_an_older_release_is_summed_when_it_is_opened(
    folder: Path, tmp_path: Path, age: Callable[[lmdb.Transaction], object]
) -> None:
    store = real_stores(tmp_path).open(1, 2)
    kept = store.row_sum()
    store.close()
    tamper(folder, age)
    store = real_stores(tmp_path).open(1, 2)
    assert store.row_sum() == kept == sum_of(store.rows(*ALL))
    store.close()


def test_what_replicas_hold_as_it_happens_is_not_summed() -> None:
    store = MemoryStore()
    store.write(WriteBatch(Applied(3), changes=[(3, 0, b"change")]))
    assert store.row_sum() == 0
    write(store, ids=(1, 2))
    assert store.row_sum() == 0
    kinds = {prefix for prefix in layout.VERSIONS if not is_summed(prefix + b"\x01key")}
    assert kinds == {layout.CHANGE, layout.OPERATION_IDS}


def test_rows_are_checked_by_their_own_checksums() -> None:
    verify_row(layout.ITEM + b"k", stored(b"k", b"{}"))
    verify_row(layout.collection_key(b"h" * 16), layout.encode_collection(7))
    with pytest.raises(codec.CorruptItem):
        verify_row(layout.ITEM + b"other", stored(b"k", b"{}"))
    with pytest.raises(StoreBroken):
        verify_row(layout.collection_key(b"h" * 16), layout.encode_collection(7)[:-1] + b"\x01")
