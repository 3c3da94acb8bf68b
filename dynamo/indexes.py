"""Secondary indexes: which entry an item has in an index, and how large it is."""

from __future__ import annotations

from typing import NamedTuple

from dynamo.item import ITEM_SIZE_MAX, item_size, item_too_large
from dynamo.keys import index_row_key
from dynamo.table import Index, Table
from dynamo.values import Item, dump


class IndexEntry(NamedTuple):
    """An item as an index holds it."""

    key: bytes
    """Its row key in the index (`keys.index_row_key`)."""
    body: bytes
    """Canonical JSON of the projected attributes."""
    size: int
    """Of the projected attributes, in DynamoDB's bytes."""


class IndexProjection:
    """What one index of a table takes of the table's items."""

    def __init__(self, table: Table, index: Index) -> None:
        self.index = index
        self._types = table.attribute_types
        self._names = projected_names(table, index)

    def entry(self, base_key: bytes, item: Item, body: bytes, size: int) -> IndexEntry | None:
        """The entry of the item with row key `base_key`, None if the index leaves it out.

        `body` and `size` are the whole item's canonical JSON and size.
        """
        key = index_row_key(self.index.keys, self._types, item, base_key)
        if key is None:
            return None
        if self._names is None:
            return IndexEntry(key, body, size)
        part = {name: value for name, value in item.items() if name in self._names}
        return IndexEntry(key, dump(part), item_size(part))


def projected_names(table: Table, index: Index) -> frozenset[str] | None:
    """The attributes that the index holds: the table's and its own keys, and what it includes. None: all."""
    if index.projection == "ALL":
        return None
    included = index.non_key_attributes if index.projection == "INCLUDE" else ()
    return frozenset((*table.keys.attributes, *index.keys.attributes, *included))


def check_put_size(table: Table, item: Item, size: int) -> None:
    """An item to be put, of `size` bytes, may not be too large with its entries in local indexes; its index keys have
    been checked. Raises ValidationException."""
    if size + local_entries_size(table, item, size) > ITEM_SIZE_MAX:
        raise item_too_large()


def local_entries_size(table: Table, item: Item, size: int) -> int:
    """DynamoDB's bytes of the entries that an item of `size` bytes, with valid index keys, has in the local indexes."""
    total = 0
    for index in table.local_indexes:
        if all(name in item for name in index.keys.range):
            names = projected_names(table, index)
            total += size if names is None else item_size({name: item[name] for name in names if name in item})
    return total
