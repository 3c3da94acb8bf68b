"""Local secondary indexes: what a write changes in them, on the leader that decides it and on every replica that
applies it.

Both sides work out the entries of an item before and after from the two items alone, so nothing about them stands in
the log. A table has its local indexes from the first entry of its log on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dynamo import codec
from dynamo.capacity import index_write_units
from dynamo.indexes import IndexEntry, IndexProjection
from dynamo.keys import HASH_SIZE
from dynamo.table import Index, Table
from dynamo.values import load
from storagenode.storage import layout
from storagenode.storage.store import IndexCount, Store, WriteBatch


class Indexed(NamedTuple):
    """An item, or its absence, with its entry in each local index."""

    entries: tuple[IndexEntry | None, ...]
    size: int
    """The item's and all entries', in DynamoDB's bytes."""


class IndexEntries:
    """Some indexes of one table, and the entries that its items have in them."""

    def __init__(self, table: Table, indexes: Sequence[Index]) -> None:
        self._projections = tuple([IndexProjection(table, index) for index in indexes])
        self._absent = Indexed((None,) * len(self._projections), 0)

    def of(self, key: bytes, body: bytes | None, size: int) -> Indexed:
        """The entries of the item with this row key, canonical JSON (None or empty: there is none) and size."""
        if not body:
            return self._absent
        item = load(body)
        entries = tuple([projection.entry(key, item, body, size) for projection in self._projections])
        return Indexed(entries, size + sum([entry.size for entry in entries if entry is not None]))

    def of_stored(self, key: bytes, stored: bytes | None) -> Indexed:
        """The entries of an item as it is stored."""
        return self._absent if stored is None else self.of(key, codec.body_of(stored), codec.size_of(stored))


class LocalIndexes(IndexEntries):
    """The local indexes of one table."""

    def __init__(self, table: Table) -> None:
        super().__init__(table, table.local_indexes)

    # --- apply ---

    def take(
        self,
        batch: WriteBatch,
        store: Store,
        counts: tuple[IndexCount, ...],
        key: bytes,
        replaced: bytes,
        stored: bytes | None,
    ) -> tuple[IndexCount, ...]:
        """Add to `batch` what putting `stored` at `key` (None: taking it out) changes; the counts after it.

        `replaced`: the stored bytes that were there, empty if there were none, and verified.
        """
        before, after = self.of_stored(key, replaced or None), self.of_stored(key, stored)
        hash_ = key[:HASH_SIZE]
        size = batch.collections.get(hash_)
        batch.collections[hash_] = (store.collection_size(hash_) if size is None else size) + after.size - before.size
        counts = counts or (IndexCount(),) * len(self._projections)
        changes = enumerate(zip(counts, before.entries, after.entries, strict=True), 1)
        return tuple([_move(batch, number, *change) for number, change in changes])


def local_indexes_of(table: Table | None) -> LocalIndexes | None:
    """The table's local indexes, None if it has none."""
    return None if table is None or not table.local_indexes else LocalIndexes(table)


def global_indexes_of(table: Table | None) -> IndexEntries | None:
    """The table's global indexes, None if it has none."""
    return None if table is None or not table.global_indexes else IndexEntries(table, table.global_indexes)


def write_units(before: Indexed, after: Indexed) -> list[int]:
    """What each index charges for the change of its entry (facts.md §2.5)."""
    return [
        int(
            index_write_units(
                0 if old is None else old.size,
                0 if new is None else new.size,
                same_key=old is not None and new is not None and old.key == new.key,
                changed=old != new,
            )
        )
        for old, new in zip(before.entries, after.entries, strict=True)
    ]


def stored_entry(number: int, entry: IndexEntry) -> tuple[bytes, bytes]:
    """The key, as in `WriteBatch.index_entries`, and the value of an entry's row."""
    key = layout.index_key(number, entry.key)
    return key, codec.encode(key, entry.body, codec.ItemHeader(0, 0, entry.size, 0, 0))


def _move(
    batch: WriteBatch, number: int, count: IndexCount, old: IndexEntry | None, new: IndexEntry | None
) -> IndexCount:
    """Bring one index from the old entry to the new one; its count after that."""
    if old == new:
        return count
    if old is not None:
        batch.index_entries[layout.index_key(number, old.key)] = None
    if new is not None:
        key, stored = stored_entry(number, new)
        batch.index_entries[key] = stored
    growth = (0 if new is None else new.size) - (0 if old is None else old.size)
    return IndexCount(count.items + (new is not None) - (old is not None), count.size + growth)
