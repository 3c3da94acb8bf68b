"""What the answers to transactions say of capacity and item collections. Table units are doubled in transactions, those
of indexes are not (dynoxide's captures of 2026)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from dynamo.capacity import transactional_read_units, transactional_write_units
from dynamo.table import Table
from dynamo.values import dump
from router.consumed import collection, consumed, units_by_index
from router.transactions import Done, Member, Placed, Replayed

Kind = Literal["ReadCapacityUnits", "WriteCapacityUnits"]


@dataclass(slots=True)
class _Units:
    """What one table charges."""

    own: float = 0.0
    local: Counter[str] = field(default_factory=Counter)
    of_global: Counter[str] = field(default_factory=Counter)


def write_capacity(members: Sequence[Member], outcome: Done | Replayed, detail: str | None) -> bytes:
    """`,"ConsumedCapacity":[…]` of TransactWriteItems, empty unless it was asked for. A replay is charged as a read."""
    if isinstance(outcome, Replayed):
        return read_capacity(members, outcome.sizes, detail)
    if detail in (None, "NONE"):
        return b""
    units: dict[int, _Units] = {}
    for member, write in zip(members, outcome.writes, strict=True):
        of_table = units.setdefault(member.table.id, _Units())
        of_table.own += transactional_write_units(write.old_size, write.new_size)
        of_table.local.update(units_by_index(member.table.local_indexes, write.local_index_units))
        of_table.of_global.update(units_by_index(member.table.global_indexes, write.global_index_units))
    return _member(members, units, "WriteCapacityUnits", detail)


def read_capacity(members: Sequence[Placed], sizes: Sequence[int], detail: str | None) -> bytes:
    """`,"ConsumedCapacity":[…]` of reading items of these sizes in a transaction."""
    if detail in (None, "NONE"):
        return b""
    units: dict[int, _Units] = {}
    for member, size in zip(members, sizes, strict=True):
        units.setdefault(member.table.id, _Units()).own += transactional_read_units(size)
    return _member(members, units, "ReadCapacityUnits", detail)


def _member(members: Sequence[Placed], units: Mapping[int, _Units], kind: Kind, detail: str | None) -> bytes:
    tables: dict[int, Table] = {member.table.id: member.table for member in members}
    shown = [_shown(table, units[table_id], kind, str(detail)) for table_id, table in tables.items()]
    return b',"ConsumedCapacity":' + orjson.dumps(shown)


def _shown(table: Table, units: _Units, kind: Kind, detail: str) -> dict[str, Any]:
    capacity = consumed(table, units.own, detail, local_indexes=units.local, global_indexes=units.of_global)
    capacity[kind] = capacity["CapacityUnits"]
    if "Table" in capacity:
        capacity["Table"][kind] = units.own
    return capacity


def collections(members: Sequence[Member], outcome: Done | Replayed, wanted: str | None) -> bytes:
    """`,"ItemCollectionMetrics":{…}`: for SIZE, of the tables with local indexes that were written to."""
    if wanted != "SIZE" or isinstance(outcome, Replayed):
        return b""
    shown: dict[str, dict[bytes, Any]] = {}
    for member, write in zip(members, outcome.writes, strict=True):
        if member.table.local_indexes and not member.action.HasField("check"):
            metrics = collection(member.table, member.key, write.collection_size)
            shown.setdefault(member.table.name, {})[dump(metrics["ItemCollectionKey"])] = metrics
    if not shown:
        return b""
    return b',"ItemCollectionMetrics":' + orjson.dumps(
        {name: list(of_table.values()) for name, of_table in shown.items()}
    )
