"""What a partition replica needs of its store. The log is the durability; a store only has to be whole.

`storagenode.storage.lmdb_store` is the real one, `memory_store` its twin for tests and simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec

if TYPE_CHECKING:
    from storagenode.storage.row_sums import RowWalk


class StoreError(Exception):
    """Any failure of a store."""


class StoreFull(StoreError):  # noqa: N818
    """No room for a write. Nothing of it was kept, and the store goes on."""


class StoreBroken(StoreError):  # noqa: N818
    """The store is damaged or its file system fails: throw it away and make it again from the log."""


class IndexCount(NamedTuple):
    """What one local index holds."""

    items: int = 0
    size: int = 0
    """In DynamoDB's bytes."""


class Applied(msgspec.Struct, frozen=True):
    """How far the log is applied, and what there is then."""

    position: int = 0
    epoch: int = 0
    stamp: int = 0
    """The highest stamp that this partition ever applied."""
    items: int = 0
    size: int = 0
    """In DynamoDB's bytes."""
    indexes: tuple[IndexCount, ...] = ()
    """Of the table's local indexes, in their order."""


EMPTY: Final = Applied()
SCHEMA: Final = b"schema"
"""The name in `WriteBatch.meta` of the table's description."""


class OperationIdRow(NamedTuple):
    """The operation ids of consecutive positions."""

    first_position: int
    stamp_ms: int
    """The partition's clock at the last of them, in milliseconds."""
    ids: tuple[int, ...]
    """One for each position, 64 bits; 0: the entry had none."""

    @property
    def last_position(self) -> int:
        """The position of the last id."""
        return self.first_position + len(self.ids) - 1


@dataclass(slots=True)
class WriteBatch:
    """What applying some entries changes, in one transaction."""

    applied: Applied = EMPTY
    items: dict[bytes, bytes | None] = field(default_factory=dict)
    """Row key → stored bytes, or None to delete."""
    index_entries: dict[bytes, bytes | None] = field(default_factory=dict)
    """`layout.index_key` of a local index's entry → stored bytes (dynamo.codec), or None to delete."""
    collections: dict[bytes, int] = field(default_factory=dict)
    """Hash of a partition key → size of its item collection in DynamoDB's bytes; 0: it is gone."""
    changes: list[tuple[int, int, bytes]] = field(default_factory=list)
    """(position, number among the changes of that entry, change row)."""
    rows: dict[bytes, bytes | None] = field(default_factory=dict)
    """Rows of other kinds, by their whole keys (`layout`): value, or None to delete."""
    meta: dict[bytes, bytes | None] = field(default_factory=dict)
    """What apply itself rests on, such as the table's schema, by a short name."""
    operation_ids: OperationIdRow | None = None
    forget_operation_ids_before: int = 0
    """Operation id rows that end before this position may go; a few go with each write."""
    forget_changes_to: int = 0
    """Change rows up to this position may go; some go with each write."""

    def put(self, key: bytes, stored: bytes) -> None:
        """Set an item row."""
        self.items[key] = stored

    def delete(self, key: bytes) -> None:
        """Delete an item row, if it is there."""
        self.items[key] = None

    def set_schema(self, definition: bytes) -> None:
        """Set the table's description that apply works by."""
        self.meta[SCHEMA] = definition

    def add_operation_ids(self, first_position: int, stamp_ms: int, ids: Sequence[int]) -> None:
        """Set the ids of this batch's entries; once per batch. Without any id nothing is kept."""
        if any(ids):
            self.operation_ids = OperationIdRow(first_position, stamp_ms, tuple(ids))


class Space(NamedTuple):
    """What a store takes, in bytes."""

    file: int
    live: int
    """Of that, what holds rows; the rest is free for new ones."""


class StoreCopy(Protocol):
    """A compact copy of a store as it was at one moment, in the store's own form. Reads and writes go on meanwhile."""

    @property
    def applied(self) -> Applied:
        """How far the log was applied at that moment."""
        ...

    def read(self, size: int) -> bytes:
        """The next `size` bytes, fewer only at the end; blocks. Raises StoreError, also when it was closed, or
        its store was, which may happen at any time."""
        ...

    def close(self) -> None:
        """End it, finished or not. Closing the store does so, too."""
        ...


class Store(Protocol):
    """The applied state of one partition replica. Reads see whole writes only. Errors are StoreErrors."""

    def get(self, key: bytes) -> bytes | None:
        """An item's stored bytes, header included, by its row key."""
        ...

    def collection_size(self, hash_: bytes) -> int:
        """What `WriteBatch.collections` set: DynamoDB's bytes of an item collection with its index entries, or 0."""
        ...

    def scan(
        self, start: bytes, end: bytes, *, reverse: bool = False, index: int = 0
    ) -> Generator[tuple[bytes, bytes], None, None]:
        """Rows with start <= key < end in order of key, or in reverse; an empty `end` is the end of the partition.

        Rows of the table, or of the local index with this number, from 1: index row keys → entries.
        One view, as of the first row. To be used for a slice of a few milliseconds and then closed (exhausted, or by
        `contextlib.closing`): while it is open the store cannot reuse space.
        """
        ...

    def row(self, key: bytes) -> bytes | None:
        """What `WriteBatch.rows` set."""
        ...

    def rows(self, low: bytes, high: bytes) -> Generator[tuple[bytes, bytes], None, None]:
        """Rows of any kind with low <= whole key < high, in order. One view, to be closed soon, as `scan`'s."""
        ...

    def meta(self, name: bytes) -> bytes | None:
        """What `WriteBatch.meta` set."""
        ...

    def schema(self) -> bytes | None:
        """What `WriteBatch.set_schema` set."""
        ...

    def applied(self) -> Applied:
        """How far the log is applied; from memory."""
        ...

    def write(self, batch: WriteBatch) -> None:
        """Do all of `batch` or, on any error, nothing. Raises ValueError if it would move the applied position back."""
        ...

    def row_sum(self) -> int:
        """The sum of the rows' hashes (`row_sums`): equal on all replicas that have applied equally much; from
        memory."""
        ...

    def begin_walk(self) -> RowWalk:
        """A walk over all rows, in slices, in the place of any other; it is void once the store is replaced or
        closed."""
        ...

    def walk_slice(self, walk: RowWalk, rows_max: int) -> Callable[[], None]:
        """The next slice of a walk: call this, and after that `walk.end`, where `write` is called; what it returns
        looks at the rows, and may do so in a thread."""
        ...

    def operation_ids(self) -> Iterator[OperationIdRow]:
        """All operation id rows kept, in order of position."""
        ...

    def sync(self) -> None:
        """Make everything durable. Raises StoreBroken: then the store is not to be trusted after a restart."""
        ...

    def space(self) -> Space:
        """What the store takes."""
        ...

    def copy(self) -> StoreCopy:
        """A copy of the store as it is now. Call it where `write` is called."""
        ...

    def close(self) -> None:
        """Close without syncing. No scan may be open."""
        ...


class Restoration(Protocol):
    """A store that is made from a copy of the same partition's, whichever replica's that was. All calls block."""

    def write(self, data: bytes) -> None:
        """The next bytes of the copy. Raises StoreError."""
        ...

    def open(self) -> Store:
        """All is written: the store, not yet in its place. Raises StoreBroken if this is no copy of the partition."""
        ...

    def open_empty(self) -> Store:
        """Instead of `write` and `open`: a store that has applied nothing yet."""
        ...

    def place(self, into: Store) -> None:
        """Put the opened store in the place of the replica's present one, `into`, which from now on is it.

        Call it where `write` is called, while no scan and no sync of either is under way.
        """
        ...

    def discard(self) -> None:
        """Give up; the replica's present store stays as it is."""
        ...


class Stores(Protocol):
    """The stores of a node's replicas."""

    def open(self, partition: int, replica: int) -> Store:
        """The store of a replica, empty if there was none. Raises StoreBroken."""
        ...

    def existing(self) -> list[tuple[int, int]]:
        """(partition, replica) of every store that is there."""
        ...

    def restore(self, partition: int, replica: int) -> Restoration:
        """Begin to make a replica's store from a copy."""
        ...

    def retire(self, partition: int, replica: int) -> None:
        """Move a closed store, which was dropped by order, to the trash; no error if there is none."""
        ...

    def discard(self, partition: int, replica: int) -> None:
        """Throw a closed store away, to be made again from the log; no error if there is none."""
        ...
