"""How large item collections are, as the leader decides on them: applied, or still in flight."""

from __future__ import annotations

from dynamo.keys import HASH_SIZE
from storagenode.storage.store import Store

ITEM_COLLECTION_BYTES_MAX = 10 << 30
"""DynamoDB's limit for the items of one partition key and their entries in local indexes."""


class ItemCollections:
    """The overlay of sizes over the store's. Only tables with local indexes have item collections."""

    def __init__(self, store: Store, bytes_max: int) -> None:
        self._store = store
        self._bytes_max = bytes_max
        self._in_flight: dict[bytes, tuple[int, int]] = {}

    def size(self, key: bytes) -> int:
        """DynamoDB's bytes of the collection that the row key belongs to, after all writes that are in flight."""
        return self._current(key[:HASH_SIZE])[1]

    def may_grow(self, key: bytes, by: int) -> bool:
        """Whether the limit allows a change by so many bytes. A collection beyond it may still shrink."""
        return by <= 0 or self.size(key) + by <= self._bytes_max

    def rests_on(self, key: bytes) -> int:
        """The position of the last write in flight to the collection, 0 if there is none."""
        return self._current(key[:HASH_SIZE])[0]

    def change(self, key: bytes, by: int, position: int) -> int:
        """A write at this position changes the size by so many bytes; the size after it."""
        size = self.size(key) + by
        self._in_flight[key[:HASH_SIZE]] = (position, size)
        return size

    def applied_to(self, position: int) -> None:
        """Everything up to this position is in the store."""
        if self._in_flight:
            self._in_flight = {hash_: change for hash_, change in self._in_flight.items() if change[0] > position}

    def abandon(self) -> None:
        """Nothing is in flight any more."""
        self._in_flight.clear()

    def _current(self, hash_: bytes) -> tuple[int, int]:
        """The position of the last change, 0 if it is applied, and the size."""
        return self._in_flight.get(hash_) or (0, self._store.collection_size(hash_))
