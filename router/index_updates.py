"""UpdateTable's GlobalSecondaryIndexUpdates: one index created or deleted in a call, others' throughput changed.

Texts: as public reports of answers by DynamoDB have them. All checks raise ApiError.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from dynamo.errors import ApiError, limit_exceeded, resource_in_use, resource_not_found, validation
from dynamo.table import Index, ScalarType, Table, Throughput
from router import table_checks as checks
from router.index_checks import GLOBAL_INDEXES_MAX, check_global_keys, check_projected, check_projection
from router.index_definitions import index_of
from router.index_description import index_warm_units
from router.table_checks import INVALID
from router.throughput_changes import changed_throughput

ACTIONS = ("Create", "Update", "Delete")


def check_updates(updates: list[dict[str, Any]]) -> None:
    """What can be said without the table."""
    names = []
    for update in updates:
        given = [action for action in ACTIONS if update.get(action) is not None]
        if len(given) != 1:
            raise validation(
                f"{INVALID}Exactly one of Create, Update or Delete must be specified in each GlobalSecondaryIndexUpdate"
            )
        names.append(update[given[0]]["IndexName"])
    for name in names:
        if names.count(name) > 1:
            raise validation(
                f"{INVALID}Only one global secondary index update per index is allowed simultaneously. Index: {name}"
            )
    if sum("Update" not in update for update in updates) > 1:
        raise _only_one()


def with_updated_indexes(table: Table, body: Mapping[str, Any], now: float) -> Table:
    """The table once its indexes are as the request asks; its billing mode is already the new one."""
    updates: list[dict[str, Any]] = body.get("GlobalSecondaryIndexUpdates") or []
    for update in updates:
        if (wanted := update.get("Create")) is not None:
            table = _with_index(table, wanted, body.get("AttributeDefinitions") or [])
        elif (wanted := update.get("Delete")) is not None:
            table = _without_index(table, wanted["IndexName"])
        else:
            table = _with_changed_index(table, update["Update"], now)
    return _with_billing(table)


def being_updated(before: Table, after: Table) -> Table:
    """The table as the answer to its update shows it: indexes that go are still there."""
    kept = {index.name for index in after.global_indexes}
    going = [
        msgspec.structs.replace(index, status="DELETING") for index in before.global_indexes if index.name not in kept
    ]
    return msgspec.structs.replace(after, status="UPDATING", global_indexes=(*after.global_indexes, *going))


# --- create ---


def _with_index(table: Table, wanted: dict[str, Any], definitions: list[dict[str, Any]]) -> Table:
    name, keys = wanted["IndexName"], wanted["KeySchema"]
    names = [definition["AttributeName"] for definition in definitions]
    checks.check_index_keys_are_defined([element["AttributeName"] for element in keys], names)
    check_global_keys(keys)
    check_projection(wanted["Projection"])
    _check_units_given(table, name, wanted)
    if any(index.name == name for index in (*table.local_indexes, *table.global_indexes)):
        raise validation(f"{INVALID}Attempting to create an index which already exists")
    _check_none_under_way(table)
    if len(table.global_indexes) >= GLOBAL_INDEXES_MAX:
        raise validation(f"{INVALID}GlobalSecondaryIndex count exceeds the per-table limit of {GLOBAL_INDEXES_MAX}")
    index = msgspec.structs.replace(index_of(wanted), status="CREATING")
    check_projected([len(each.non_key_attributes) for each in (*table.local_indexes, *table.global_indexes, index)])
    indexes = (*table.global_indexes, index)
    types = {definition["AttributeName"]: definition["AttributeType"] for definition in definitions}
    return _with_indexes(table, indexes, types | table.attribute_types)


def _check_units_given(table: Table, name: str, wanted: Mapping[str, Any]) -> None:
    throughput = wanted.get("ProvisionedThroughput")
    checks.check_throughput_bounds(throughput)
    if table.billing == "PAY_PER_REQUEST":
        if throughput:
            raise validation(
                f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index: {name} when "
                "BillingMode is PAY_PER_REQUEST"
            )
    elif not throughput:
        raise validation(f"{INVALID}Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: {name}")


def _check_none_under_way(table: Table) -> None:
    if any(index.status in ("CREATING", "DELETING") for index in table.global_indexes):
        raise _only_one()


def _only_one() -> ApiError:
    return limit_exceeded(
        "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table"
    )


# --- delete ---


def _without_index(table: Table, name: str) -> Table:
    _existing(table, name)
    # One that is still being filled may be given up.
    if any(index.status == "CREATING" and index.name != name for index in table.global_indexes):
        raise _only_one()
    return _with_indexes(
        table, tuple(index for index in table.global_indexes if index.name != name), table.attribute_types
    )


def _with_indexes(table: Table, indexes: tuple[Index, ...], types: Mapping[str, ScalarType]) -> Table:
    """The table with these global indexes. Definitions of attributes that no key uses any more go (case 24)."""
    used = _used(table, indexes)
    return msgspec.structs.replace(
        table,
        global_indexes=indexes,
        attribute_types={name: kind for name, kind in _in_order(table.attribute_types, types) if name in used},
    )


def _used(table: Table, indexes: Iterable[Index]) -> set[str]:
    names = set(table.keys.attributes)
    for index in (*table.local_indexes, *indexes):
        names.update(index.keys.attributes)
    return names


def _in_order(known: Mapping[str, ScalarType], types: Mapping[str, ScalarType]) -> list[tuple[str, ScalarType]]:
    """Definitions, those that the table had before first."""
    return [(name, types[name]) for name in known] + [(name, kind) for name, kind in types.items() if name not in known]


def _existing(table: Table, name: str) -> Index:
    found = next((index for index in table.global_indexes if index.name == name), None)
    if found is None:
        raise resource_not_found()
    return found


# --- update ---


def _with_changed_index(table: Table, wanted: dict[str, Any], now: float) -> Table:
    index = _existing(table, wanted["IndexName"])
    if index.status == "CREATING":
        raise resource_in_use(
            f"Attempt to change a resource which is still in use: Index is being created: {index.name}"
        )
    changed = _with_ceilings(table, _with_units(table, index, wanted, now), wanted)
    changed = _with_warm_throughput(table, changed, wanted)
    indexes = tuple(changed if each is index else each for each in table.global_indexes)
    return msgspec.structs.replace(table, global_indexes=indexes)


def _with_units(table: Table, index: Index, wanted: dict[str, Any], now: float) -> Index:
    units = wanted.get("ProvisionedThroughput")
    if not units:
        return index
    _check_units_given(table, index.name, wanted)
    read, write = units["ReadCapacityUnits"], units["WriteCapacityUnits"]
    current = index.throughput
    first = current == Throughput()
    throughput = Throughput(read, write) if first else changed_throughput(current, read, write, now)
    return msgspec.structs.replace(index, throughput=throughput)


def _with_ceilings(table: Table, index: Index, wanted: dict[str, Any]) -> Index:
    ceilings = wanted.get("OnDemandThroughput") or {}
    provisioned = "" if table.billing == "PAY_PER_REQUEST" else "the table BillingMode is PROVISIONED"
    checks.check_on_demand_ceilings(ceilings, provisioned=provisioned, lowest=-1)
    return msgspec.structs.replace(
        index,
        on_demand_read=ceilings.get("MaxReadRequestUnits", index.on_demand_read),
        on_demand_write=ceilings.get("MaxWriteRequestUnits", index.on_demand_write),
    )


def _with_warm_throughput(table: Table, index: Index, wanted: dict[str, Any]) -> Index:
    warm = wanted.get("WarmThroughput") or {}
    checks.check_warm_throughput(warm, index_warm_units(table, index))
    return msgspec.structs.replace(
        index,
        warm_read=warm.get("ReadUnitsPerSecond", index.warm_read),
        warm_write=warm.get("WriteUnitsPerSecond", index.warm_write),
    )


def _with_billing(table: Table) -> Table:
    """Indexes follow their table's billing mode."""
    if table.billing == "PAY_PER_REQUEST":
        indexes = tuple(
            msgspec.structs.replace(index, throughput=Throughput()) if index.throughput != Throughput() else index
            for index in table.global_indexes
        )
    else:
        for index in table.global_indexes:
            if index.throughput == Throughput():
                raise validation(f"{INVALID}ProvisionedThroughput is not specified for index: {index.name}")
        indexes = tuple(
            msgspec.structs.replace(index, on_demand_read=-1, on_demand_write=-1) for index in table.global_indexes
        )
    return msgspec.structs.replace(table, global_indexes=indexes)
