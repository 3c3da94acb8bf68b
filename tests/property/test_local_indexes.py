"""Local indexes after random writes: what leader and followers keep is what a look at the whole table gives."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.wire import storage_pb2
from dynamo import codec
from dynamo.item import item_size
from dynamo.keys import HASH_SIZE, index_row_key
from dynamo.values import AttributeValue, Item, dump, load
from replication.messages import Entry
from storagenode.partition import Answer, Partition, Propose
from storagenode.storage import layout
from storagenode.storage.lmdb_store import LmdbStore
from storagenode.storage.memory_store import MemoryStore
from storagenode.storage.store import IndexCount, Store
from tests.unit.partition_samples import INDEXED, Leader, item

Write: TypeAlias = tuple[str, str, int, dict[str, AttributeValue], bool]
"""Operation, partition key, sort key, attributes, and whether all writes up to here are applied then."""

texts = st.builds(lambda text: {"S": text}, st.sampled_from(["x", "xy", "é" * 40, "\x00", "zz"]))
numbers = st.builds(lambda number: {"N": str(number)}, st.integers(-3, 3))
others = st.one_of(texts, numbers, st.just({"L": [{"BOOL": True}]}))
attributes = st.fixed_dictionaries({}, optional={"a": texts, "b": numbers, "c": others, "d": others})
writes = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "update", "remove", "delete"]),
        st.sampled_from(["p", "q"]),
        st.integers(0, 2),
        attributes,
        st.booleans(),
    ),
    max_size=30,
)


@contextmanager
def stores() -> Iterator[tuple[Store, Store]]:
    with tempfile.TemporaryDirectory() as folder:
        lmdb = LmdbStore(folder, 1, 1)
        try:
            yield lmdb, MemoryStore()
        finally:
            lmdb.close()


def do(leader: Leader, write: Write) -> storage_pb2.WriteReply:
    operation, pk, sk, new, apply = write
    if operation == "put":
        decision = leader.put(item(pk, sk, **new))
    elif operation == "delete":
        decision = leader.delete(pk, sk)
    elif operation == "remove":
        decision = leader.update(pk, sk, "REMOVE a, c")
    else:
        sets = ", ".join(f"{name} = :{name}" for name in new)
        values = {f":{name}": value for name, value in new.items()}
        decision = leader.update(pk, sk, f"SET {sets}" if sets else None, values or None)
    if apply:
        leader.apply(together=len(new) % 2 == 0)
    assert isinstance(decision, Propose | Answer)
    assert isinstance(decision.reply, storage_pb2.WriteReply)
    return decision.reply


def recomputed(store: Store) -> tuple[list[dict[bytes, bytes]], dict[bytes, int]]:
    """The rows of each index, and the size of each item collection, from the rows of the table."""
    rows: list[dict[bytes, bytes]] = [{} for _ in INDEXED.local_indexes]
    collections: dict[bytes, int] = {}
    for key, stored in store.scan(b"", b""):
        whole = load(codec.body_of(stored))
        size = codec.size_of(stored)
        for number, index in enumerate(INDEXED.local_indexes, 1):
            entry_key = index_row_key(index.keys, INDEXED.attribute_types, whole, key)
            if entry_key is None:
                continue
            part = whole if index.projection == "ALL" else keys_and(whole, index.keys.range, index.non_key_attributes)
            header = codec.ItemHeader(0, 0, item_size(part), 0, 0)
            rows[number - 1][entry_key] = codec.encode(layout.index_key(number, entry_key), dump(part), header)
            size += item_size(part)
        collections[key[:HASH_SIZE]] = collections.get(key[:HASH_SIZE], 0) + size
    return rows, collections


def keys_and(whole: Item, *names: tuple[str, ...]) -> Item:
    wanted = {"pk", "sk"}.union(*names)
    return {name: value for name, value in whole.items() if name in wanted}


def kept(store: Store, hashes: dict[bytes, int]) -> tuple[list[dict[bytes, bytes]], dict[bytes, int]]:
    rows = [dict(store.scan(b"", b"", index=number)) for number in range(1, len(INDEXED.local_indexes) + 1)]
    return rows, {hash_: store.collection_size(hash_) for hash_ in hashes}


def check(store: Store) -> None:
    rows, collections = recomputed(store)
    assert kept(store, collections) == (rows, collections)
    counts = [IndexCount(len(each), sum(map(codec.size_of, each.values()))) for each in rows]
    assert list(store.applied().indexes) == counts or (store.applied().indexes == () and not any(rows))


@settings(max_examples=80, deadline=None)
@given(writes, st.integers(1, 5))
def test_indexes_equal_their_table(done: list[Write], group: int) -> None:
    with stores() as (lmdb, memory):
        leader = Leader(lmdb, INDEXED)
        for write in done:
            reply = do(leader, write)
        leader.apply()
        check(lmdb)
        if done:
            sizes = recomputed(lmdb)[1]
            row = next((key for key, _ in lmdb.scan(b"", b"") if load_pk(lmdb, key) == done[-1][1]), b"")
            assert reply.collection_size == sizes.get(row[:HASH_SIZE], 0)
        follow(memory, leader.log, group)
        check(memory)
        for number in range(len(INDEXED.local_indexes) + 1):
            assert list(memory.scan(b"", b"", index=number)) == list(lmdb.scan(b"", b"", index=number))
        assert memory.applied() == lmdb.applied()


def load_pk(store: Store, key: bytes) -> str:
    stored = store.get(key)
    assert stored is not None
    pk: str = load(codec.body_of(stored))["pk"]["S"]
    return pk


def follow(store: Store, log: list[Entry], group: int) -> None:
    """Apply the log on another replica, so many entries at a time."""
    for at in range(0, len(log), group):
        Partition(store).apply(log[at : at + group])
