"""Local indexes, their counts and the sizes of item collections are what a look at the whole table gives."""

from __future__ import annotations

from collections.abc import Iterator

from dynamo import codec
from dynamo.item import item_size
from dynamo.keys import HASH_SIZE, index_row_key
from dynamo.table import Index, Table
from dynamo.values import Item, dump, load
from storagenode.storage import layout
from storagenode.storage.store import IndexCount, Store


def index_differences(store: Store, table: Table) -> Iterator[str]:
    """What is wrong with the indexes in a partition's store."""
    rows, collections = recomputed(store, table)
    for number, expected in enumerate(rows, 1):
        found = dict(store.scan(b"", b"", index=number))
        for key in sorted(expected.keys() | found.keys()):
            if expected.get(key) != found.get(key):
                yield f"index {table.local_indexes[number - 1].name} differs from the table at {key.hex()}"
    for hash_, size in collections.items():
        if store.collection_size(hash_) != size:
            yield f"item collection {hash_.hex()} has {size} bytes, not {store.collection_size(hash_)}"
    counts = tuple([IndexCount(len(each), sum(map(codec.size_of, each.values()))) for each in rows])
    kept = store.applied().indexes
    if kept != counts and (kept or any(rows)):  # before the first write there are none
        yield f"counts of indexes are {counts}, not {kept}"


def recomputed(store: Store, table: Table) -> tuple[list[dict[bytes, bytes]], dict[bytes, int]]:
    """The rows of each index, and the size of each item collection by hash, from the rows of the table."""
    rows: list[dict[bytes, bytes]] = [{} for _ in table.local_indexes]
    collections: dict[bytes, int] = {}
    for key, stored in store.scan(b"", b""):
        item = load(codec.body_of(stored))
        size = codec.size_of(stored)
        for number, index in enumerate(table.local_indexes, 1):
            entry_key = index_row_key(index.keys, table.attribute_types, item, key)
            if entry_key is not None:
                part = _projected(table, index, item)
                header = codec.ItemHeader(0, 0, item_size(part), 0, 0)
                row = codec.encode(layout.index_key(number, entry_key), dump(part), header)
                rows[number - 1][entry_key] = row
                size += item_size(part)
        collections[key[:HASH_SIZE]] = collections.get(key[:HASH_SIZE], 0) + size
    return rows, collections


def _projected(table: Table, index: Index, item: Item) -> Item:
    if index.projection == "ALL":
        return item
    wanted = {*table.keys.attributes, *index.keys.attributes, *index.non_key_attributes}
    return {name: value for name, value in item.items() if name in wanted}
