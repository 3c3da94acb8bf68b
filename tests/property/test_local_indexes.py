"""Local indexes after random writes: what leader and followers keep is what a look at the whole table gives."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.wire import storage_pb2
from dynamo import codec
from dynamo.keys import HASH_SIZE
from dynamo.values import AttributeValue, load
from replication.messages import Entry
from storagenode.partition import Answer, Partition, Propose
from storagenode.storage import layout
from storagenode.storage.lmdb_store import LmdbStore
from storagenode.storage.memory_store import MemoryStore
from storagenode.storage.store import Store, WriteBatch
from tests.simulation.checkers.local_indexes import index_differences, recomputed
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


@settings(max_examples=80, deadline=None)
@given(writes, st.integers(1, 5))
def test_indexes_equal_their_table(done: list[Write], group: int) -> None:
    with stores() as (lmdb, memory):
        leader = Leader(lmdb, INDEXED)
        for write in done:
            reply = do(leader, write)
        leader.apply()
        assert list(index_differences(lmdb, INDEXED)) == []
        if done:
            sizes = recomputed(lmdb, INDEXED)[1]
            row = next((key for key, _ in lmdb.scan(b"", b"") if load_pk(lmdb, key) == done[-1][1]), b"")
            assert reply.collection_size == sizes.get(row[:HASH_SIZE], 0)
        follow(memory, leader.log, group)
        assert list(index_differences(memory, INDEXED)) == []
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


def test_the_checker_notices() -> None:
    """Rows missing, too many or stale, wrong sizes and wrong counts."""
    store = MemoryStore()
    leader = Leader(store, INDEXED)
    leader.put(item("p", 1, a={"S": "x"}, b={"N": "1"}))
    leader.put(item("p", 2, a={"S": "y"}))
    leader.apply()
    good = store.applied()
    ((key, stored), (other_key, _)) = store.scan(b"", b"", index=1)
    at = layout.index_key(1, key)
    damages = [
        WriteBatch(good, index_entries={at: None}),
        WriteBatch(good, index_entries={layout.index_key(2, other_key): stored}),
        WriteBatch(good, index_entries={at: stored[:-1] + b"]"}),
        WriteBatch(good, index_entries={at: stored}, collections={key[:HASH_SIZE]: 1}),
        WriteBatch(msgspec.structs.replace(good, indexes=good.indexes[::-1])),
        WriteBatch(msgspec.structs.replace(good, indexes=())),
    ]
    for damage in damages:
        repaired = MemoryStore()
        follow(repaired, leader.log, 1)
        assert list(index_differences(repaired, INDEXED)) == []
        repaired.write(damage)
        assert list(index_differences(repaired, INDEXED)) != []
