"""Partitions of one global table in several regions, driven without a network."""

from __future__ import annotations

import msgspec

from cluster.wire import storage_pb2
from dynamo import codec
from dynamo.regions import joined, made_global, next_since, replica_of, with_entry, with_state
from dynamo.table import Replica, Table
from replication.messages import NORMAL, Entry
from storagenode.partition import Answer, Propose
from storagenode.storage import layout
from tests.unit.partition_samples import NOW_MS, TABLE, Leader

EAST, WEST, SOUTH = "us-east-1", "us-west-2", "sa-east-1"


def global_table(*regions: str, table: Table = TABLE) -> dict[str, Table]:
    """The table as each region knows it, once all have joined."""
    first = made_global(table, regions[0], 1)
    for region in regions[1:]:
        first = with_entry(first, Replica(region, 0, next_since(first, 1), "CREATING", regions[0]))
    tables = {regions[0]: first}
    for region in regions[1:]:
        entry = replica_of(first, region)
        assert entry is not None
        tables[region] = joined(first, region, entry)
    return {region: _active(made, region) for region, made in tables.items()}


def _active(table: Table, region: str) -> Table:
    for replica in table.replicas:
        table = with_state(table, replica.region, replica.since, "ACTIVE")
    return msgspec.structs.replace(table, id=7, status="ACTIVE", region=region)


def append(leader: Leader, payload: bytes) -> int:
    """An entry that no request led to, applied at once; its position."""
    leader.position += 1
    leader.log.append(Entry(1, leader.position, payload, NORMAL))
    leader.apply()
    return leader.position


def row(
    key: bytes,
    body: bytes | None,
    stamp: int,
    region: str,
    position: int = 0,
) -> storage_pb2.RegionalRow:
    """A change as another region tells it."""
    return storage_pb2.RegionalRow(
        key=key,
        body=body or b"",
        deleted=body is None,
        size=len(body or b""),
        stamp=stamp,
        region=region,
        position=position,
    )


def take(
    leader: Leader,
    rows: list[storage_pb2.RegionalRow],
    position: int = 0,
    *,
    life: int = 1,
    source: int = 1,
    wall_ms: int = NOW_MS,
) -> storage_pb2.WriteReply | storage_pb2.Failure:
    """Let a partition take another region's changes; its answer."""
    write = storage_pb2.RegionalWrite(life=life, source=source, position=position, rows=rows, read_ms=wall_ms)
    decision = leader.decide(storage_pb2.Request(regional_write=write), wall_ms)
    assert isinstance(decision, Propose | Answer)
    leader.apply()
    assert isinstance(decision.reply, storage_pb2.WriteReply | storage_pb2.Failure)
    return decision.reply


def tombstones(leader: Leader) -> dict[bytes, codec.ItemHeader]:
    """The headers of all tombstones, by row key."""
    found = leader.store.rows(layout.TOMBSTONE, layout.prefix_end(layout.TOMBSTONE))
    return {key[1:]: codec.header_of(stored) for key, stored in found}
