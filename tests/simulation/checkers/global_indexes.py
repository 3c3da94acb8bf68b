"""Global indexes hold what their tables say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from dynamo import codec
from dynamo.indexes import IndexProjection
from dynamo.table import Table
from storagenode.hosted import HostedReplica
from storagenode.index_feed import image_of
from tests.simulation.checkers.replicas import replicas_of, topology_of
from tests.simulation.cluster import SimulatedCluster


def wrong_indexes(cluster: SimulatedCluster) -> Iterator[str]:
    """Differences between global indexes and their tables, by the replicas that are furthest. To be asked once nothing
    is written any more."""
    tables: dict[int, list[HostedReplica]] = {}
    for members in replicas_of(cluster).values():
        furthest = max(members, key=lambda hosted: hosted.partition.applied.position)
        tables.setdefault(furthest.table_id, []).append(furthest)
    for partitions in tables.values():
        schema = partitions[0].partition.applied_schema
        for index in schema.global_indexes if schema is not None else ():
            assert schema is not None
            wanted, found = _wanted(schema, index.table, partitions), _rows(tables.get(index.table, []))
            for key in sorted(wanted.keys() | found.keys()):
                if wanted.get(key) != found.get(key):
                    kind = "lacks" if key not in found else "has too much" if key not in wanted else "differs"
                    yield f"index {index.name} {kind} at {key.hex()}"


def unfinished_indexes(cluster: SimulatedCluster) -> Iterator[str]:
    """Indexes that the newest topology has and that are not made or filled yet."""
    for record in topology_of(cluster).tables.values():
        for index in record.table.global_indexes:
            if index.backfilling or record.table.status != "ACTIVE":
                yield f"index {index.name} of table {record.table.name} is not made: the table is {record.table.status}"


def _wanted(schema: Table, index_table: int, partitions: list[HostedReplica]) -> dict[bytes, bytes]:
    """Row key and projected item of all that the index should hold."""
    index = next(index for index in schema.global_indexes if index.table == index_table)
    projection, rows = IndexProjection(schema, index), {}
    for hosted in partitions:
        with closing(hosted.store.scan(b"", b"")) as found:
            for key, stored in found:
                entry = projection.entry(key, *image_of(key, stored))
                if entry is not None:
                    rows[entry.key] = entry.body
    return rows


def _rows(partitions: list[HostedReplica]) -> dict[bytes, bytes]:
    rows = {}
    for hosted in partitions:
        with closing(hosted.store.scan(b"", b"")) as found:
            for key, stored in found:
                codec.verify(key, stored)
                rows[key] = codec.body_of(stored)
    return rows
