"""Auto-admin's durable state: one synced transaction per change.

A record's key is a letter for its kind and its id; its value is a CRC-32 of key and body, then the body, a record of
proto/common.proto. The key "catalog" holds format, cluster id, epoch, version and the next ids as JSON.
"""

from __future__ import annotations

import fcntl
import os
import zlib
from collections.abc import Iterator
from dataclasses import asdict
from typing import Protocol

import lmdb
import msgspec

from autoadmin.catalog import Catalog, Change, Counters
from cluster import convert
from cluster.topology import CatalogUpdate, Topology
from cluster.wire import common_pb2

FORMAT = 1
MAP_BYTES = 1 << 30
_CATALOG = b"catalog"
_TABLE, _PARTITION, _NODE = b"t", b"p", b"n"
_CHECKSUM_BYTES = 4


class StateError(Exception):
    """The state cannot be used: in use, damaged, or another cluster's. The text is one plain sentence."""


class StateStore(Protocol):
    """Where the catalog survives a restart. Calls block."""

    def load(self) -> Catalog | None:
        """The catalog as of the last change, or None when there was none. Raises StateError."""
        ...

    def save(self, change: Change) -> None:
        """Make a change durable, all or nothing. Raises when it cannot; then nothing has changed."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class _Head(msgspec.Struct, frozen=True):
    """The record of the catalog as a whole."""

    format: int
    cluster_id: str
    epoch: int
    version: int
    next_table: int
    next_partition: int
    next_replica: int


class LmdbState:
    """The state in an LMDB environment of its own, which one process holds at a time."""

    def __init__(self, directory: str) -> None:
        """Open or make it. Raises StateError when another process has it, or it is damaged."""
        os.makedirs(directory, exist_ok=True)
        self._directory = directory
        self._lock = os.open(f"{directory}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise StateError(f"The data directory {directory} is in use by another auto-admin.") from None
        try:
            self._environment = lmdb.open(f"{directory}/state", map_size=MAP_BYTES, lib_version=1)
        except lmdb.Error as error:
            os.close(self._lock)
            raise _damaged(directory, error) from error
        _sync_directory(directory)

    def load(self) -> Catalog | None:
        """The catalog as of the last change. Raises StateError when a record is damaged."""
        try:
            with self._environment.begin() as transaction:
                content = transaction.get(_CATALOG)
                if content is None:
                    return None
                head = msgspec.json.decode(self._checked(_CATALOG, content), type=_Head)
                records = [(key, self._checked(key, value)) for key, value in transaction.cursor() if key != _CATALOG]
        except lmdb.Error as error:
            raise _damaged(self._directory, error) from error
        if head.format != FORMAT:
            raise StateError(f"{self._directory} is of format {head.format}; this auto-admin reads format {FORMAT}.")
        update = CatalogUpdate(
            head.cluster_id,
            head.epoch,
            0,
            head.version,
            tables=tuple(
                convert.table_from_wire(common_pb2.TableRecord.FromString(body)) for body in _of(records, _TABLE)
            ),
            partitions=tuple(
                convert.partition_from_wire(common_pb2.PartitionRecord.FromString(body))
                for body in _of(records, _PARTITION)
            ),
            nodes=tuple(convert.node_from_wire(common_pb2.NodeRecord.FromString(body)) for body in _of(records, _NODE)),
        )
        counters = Counters(head.next_table, head.next_partition, head.next_replica)
        return Catalog(Topology().with_update(update), counters)

    def save(self, change: Change) -> None:
        """Write the change in one transaction, which is on the disk when this returns."""
        update = change.update
        counters = {f"next_{kind}": count for kind, count in asdict(change.counters).items()}
        head = _Head(FORMAT, update.cluster_id, update.epoch, update.version, **counters)
        with self._environment.begin(write=True) as transaction:
            if update.from_version == 0:
                transaction.drop(self._environment.open_db(None, transaction), delete=False)
            for key in _removed(update):
                transaction.delete(key)
            for key, body in _written(update):
                transaction.put(key, _with_checksum(key, body))
            transaction.put(_CATALOG, _with_checksum(_CATALOG, msgspec.json.encode(head)))

    def close(self) -> None:
        """Close the environment and let another process have it."""
        self._environment.close()
        os.close(self._lock)

    def _checked(self, key: bytes, value: bytes) -> bytes:
        body = value[_CHECKSUM_BYTES:]
        if _with_checksum(key, body) != value:
            raise _damaged(self._directory, f"the record {key!r} is not what was written")
        return body


def _damaged(directory: str, reason: object) -> StateError:
    return StateError(
        f"The state in {directory} is damaged ({reason}): move the folder {directory}/state away, and auto-admin takes "
        "the newest catalog that the storage nodes hold."
    )


class MemoryState:
    """The state of a cluster that keeps nothing, and the tests' twin of LmdbState."""

    def __init__(self) -> None:
        self._catalog: Catalog | None = None

    def load(self) -> Catalog | None:
        """The catalog as of the last change."""
        return self._catalog

    def save(self, change: Change) -> None:
        """Keep the catalog as it is after the change."""
        before = self._catalog or Catalog(Topology(), Counters())
        self._catalog = before.after(change)

    def close(self) -> None:
        """Nothing to let go of."""


def _of(records: list[tuple[bytes, bytes]], kind: bytes) -> list[bytes]:
    return [body for key, body in records if key[:1] == kind]


def _key(kind: bytes, id: int) -> bytes:  # noqa: A002
    return kind + id.to_bytes(8, "big")


def _removed(update: CatalogUpdate) -> Iterator[bytes]:
    for kind, ids in (
        (_TABLE, update.removed_tables),
        (_PARTITION, update.removed_partitions),
        (_NODE, update.removed_nodes),
    ):
        yield from (_key(kind, id) for id in ids)  # noqa: A001


def _written(update: CatalogUpdate) -> Iterator[tuple[bytes, bytes]]:
    for record in update.tables:
        yield _key(_TABLE, record.table.id), convert.table_to_wire(record.table, record.version).SerializeToString()
    for partition in update.partitions:
        yield _key(_PARTITION, partition.id), convert.partition_to_wire(partition).SerializeToString()
    for node in update.nodes:
        yield _key(_NODE, node.id), convert.node_to_wire(node).SerializeToString()


def _with_checksum(key: bytes, body: bytes) -> bytes:
    return zlib.crc32(body, zlib.crc32(key)).to_bytes(_CHECKSUM_BYTES, "little") + body


def _sync_directory(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
