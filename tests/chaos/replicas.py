"""Whether the replicas of a stopped cluster hold the same rows."""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import closing
from pathlib import Path

from cluster.local_disk import LocalDisk
from storagenode.storage import layout
from storagenode.storage.lmdb_store import LmdbStores
from storagenode.storage.store import Store


def differing_replicas(data: Path, partitions: Container[int] | None = None) -> Iterator[str]:
    """Partitions, of these or of all, whose replicas are not three, or whose rows differ. `data`: of a cluster that was
    stopped cleanly, when everything had been applied everywhere."""
    found: dict[int, list[dict[bytes, bytes]]] = {}
    for partition, store in _stores(data):
        if partitions is None or partition in partitions:
            with closing(store.scan(b"", b"")) as rows:
                found.setdefault(partition, []).append(dict(rows))
    for partition, replicas in sorted(found.items()):
        if len(replicas) != 3:
            yield f"partition {partition} has {len(replicas)} replicas"
        first = replicas[0]
        for other in replicas[1:]:
            keys = [key for key in first.keys() | other.keys() if first.get(key) != other.get(key)]
            if keys:
                yield f"partition {partition}: {len(keys)} rows differ, such as {min(keys).hex()}"
    if not found:
        yield "there are no replicas at all"


def marks_left(data: Path) -> Iterator[str]:
    """Items that transactions still hold. `data`: as above."""
    for partition, store in _stores(data):
        with closing(store.rows(layout.PENDING, layout.prefix_end(layout.PENDING))) as rows:
            yield from (f"partition {partition}: {key.hex()} is marked" for key, _ in rows)


def _stores(data: Path) -> Iterator[tuple[int, Store]]:
    for node in sorted((data / "nodes").iterdir()):
        stores = LmdbStores(LocalDisk(), str(node / "partitions"), str(node / "trash"), lambda: 0.0)
        for partition, replica in stores.existing():
            with closing(stores.open(partition, replica)) as store:
                yield partition, store
