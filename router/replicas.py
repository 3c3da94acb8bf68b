"""UpdateTable's ReplicaUpdates, and what descriptions tell of a global table's replicas.

Regions are added and removed in the catalog of the region that is asked; its replicator brings that about. Texts: as
public reports of answers by DynamoDB have them, where there are any. All checks raise ApiError.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from dynamo.errors import ApiError, validation
from dynamo.regions import PRESENT, made_global, next_since, replica_of, with_entry
from dynamo.table import Replica, Table
from router import table_checks as checks
from router.stream_definitions import changed_streams
from router.table_checks import INVALID

ACTIONS: Final = ("Create", "Update", "Delete", "Disassociate")
OVERRIDES: Final = (
    "KMSMasterKeyId",
    "ProvisionedThroughputOverride",
    "OnDemandThroughputOverride",
    "GlobalSecondaryIndexes",
    "TableClassOverride",
)
SOURCE_MS: Final = 86_400_000
"""How long a region that others were added from cannot be removed."""
VIEW: Final = "NEW_AND_OLD_IMAGES"

_SHOWN: Final = {"CREATING": "CREATING", "FILLING": "CREATING", "ACTIVE": "ACTIVE", "DELETING": "DELETING"}
_SHARED: Final = (
    "attribute_types",
    "billing",
    "throughput",
    "on_demand_read",
    "on_demand_write",
    "warm_read",
    "warm_write",
    "sse_key",
    "ttl_attribute",
    "global_version",
)


def check_replica_updates(updates: Sequence[Mapping[str, Any]], region: str) -> None:
    """What can be said without the table; `region` is the own one."""
    named = []
    for update in updates:
        given = [action for action in ACTIONS if update.get(action) is not None]
        if len(given) != 1:
            raise validation(
                f"{INVALID}Exactly one of Create, Update or Delete must be specified in each ReplicaUpdate"
            )
        if given == ["Disassociate"]:
            raise checks.not_supported("Disassociate")
        wanted = update[given[0]]
        checks.refuse(wanted, OVERRIDES)
        if given == ["Update"]:
            raise validation(f"{INVALID}Replica update for region {wanted['RegionName']} has no changes")
        named.append(wanted["RegionName"])
    for name in named:
        if name == region:
            raise validation(
                "Cannot add, delete, or update the local region through ReplicaUpdates. Use CreateTable, DeleteTable, "
                "or UpdateTable as required."
            )
        if named.count(name) > 1:
            raise validation(f"{INVALID}Only one replica update per region is allowed simultaneously. Region: {name}")


def with_replica_updates(
    table: Table, updates: Sequence[Mapping[str, Any]], region: str, regions: Collection[str], now: float
) -> Table:
    """The table once its replicas are as the request asks. `regions` are those that there are."""
    for update in updates:
        if (wanted := update.get("Create")) is not None:
            table = with_replica(table, wanted["RegionName"], region, regions, now)
        elif (wanted := update.get("Delete")) is not None:
            table = without_replica(table, wanted["RegionName"], region, now)
    return table


def with_replica(table: Table, added: str, region: str, regions: Collection[str], now: float) -> Table:
    """The table with a replica that is to be made in another region."""
    if added not in regions:
        raise validation(f"{INVALID}Region {added} is not a region that replicas can be in")
    if is_replica(table, added):
        raise validation(
            f"Failed to create a the new replica of table with name: '{table.name}' because one or more replicas "
            "already existed as tables."
        )
    table = _with_stream(table, now)
    table = made_global(table, region, int(now * 1000))
    if not table.global_version:
        table = msgspec.structs.replace(table, global_version="2019.11.21")
    return with_entry(table, Replica(added, 0, next_since(table, int(now * 1000)), "CREATING", region))


def _with_stream(table: Table, now: float) -> Table:
    """Global tables have streams of both images: without one it begins, with another it is an error."""
    if table.stream is None:
        specification = {"StreamEnabled": True, "StreamViewType": VIEW}
        return msgspec.structs.replace(table, streams=changed_streams(table, specification, now))
    if table.stream.view != VIEW:
        raise validation(
            f"{INVALID}Table {table.name} must have its stream enabled with the view type {VIEW} to have replicas"
        )
    return table


def without_replica(table: Table, removed: str, region: str, now: float, state: str = "DELETING") -> Table:
    """The table without a region's replica, which is then deleted there; with the state CUT_OFF it stays as a table of
    its own."""
    if not is_replica(table, removed):
        raise replica_not_found()
    check_no_source(table, removed, now)
    entry = Replica(removed, 0, next_since(table, int(now * 1000)), state, region)  # type: ignore[arg-type]
    return with_entry(table, entry)


def check_no_source(table: Table, removed: str, now: float) -> None:
    """A region from which others were added lately cannot be removed while they are there."""
    since = int(now * 1000) - SOURCE_MS
    if table.global_version == "2019.11.21" and any(
        replica.by == removed and replica.region != removed and replica.state in PRESENT and replica.since > since
        for replica in table.replicas
    ):
        raise validation(
            "Replica cannot be deleted because it has acted as a source region for new replica(s) being added to the "
            "table in the last 24 hours."
        )


def replica_not_found() -> ApiError:
    """For a region that is no replica."""
    return validation("Replica specified in the Replica Update or Replica Delete action of the request was not found.")


def is_replica(table: Table, region: str) -> bool:
    """Whether the region takes part, or is about to."""
    entry = replica_of(table, region)
    return entry is not None and entry.state in PRESENT


def others(table: Table) -> list[Replica]:
    """The replicas in other regions, those that go included; none of a table that is no replica any more."""
    own = replica_of(table, table.region) if table.region else None
    if own is None or own.state not in _SHOWN:
        return []
    return [replica for replica in table.replicas if replica.region != table.region and replica.state in _SHOWN]


def leaving(table: Table, now: float) -> Table:
    """The table as its own region is about to leave it: the others hear of it before it is deleted."""
    check_no_source(table, table.region, now)
    return with_entry(table, Replica(table.region, 0, next_since(table, int(now * 1000)), "DELETING", table.region))


def with_shared_changes(before: Table, after: Table, now: float) -> Table:
    """The table with a mark for other regions where what all share was changed."""
    if not after.region or not before.region:
        return after
    indexes = [(index.name, index.keys, index.projection, index.throughput) for index in before.global_indexes]
    changed = [(index.name, index.keys, index.projection, index.throughput) for index in after.global_indexes]
    if indexes == changed and all(getattr(before, name) == getattr(after, name) for name in _SHARED):
        return after
    return msgspec.structs.replace(after, settings_changed=max(int(now * 1000), before.settings_changed + 1))


def describe_replicas(table: Table) -> dict[str, Any]:
    """What a table's description tells of its replicas: the other regions'."""
    found = [
        {"RegionName": replica.region, "ReplicaStatus": status_of(replica)} | _indexes(table)
        for replica in others(table)
    ]
    failed = [
        {
            "RegionName": replica.region,
            "ReplicaStatus": "CREATION_FAILED",
            "ReplicaStatusDescription": "Failed to create a the new replica: a table of this name exists there",
        }
        for replica in table.replicas
        if replica.state == "CREATION_FAILED"
    ]
    if table.global_version != "2019.11.21" or not (found or failed):
        return {}
    return {
        "GlobalTableVersion": table.global_version,
        "Replicas": found + failed,
        "MultiRegionConsistency": "EVENTUAL",
    }


def status_of(replica: Replica) -> str:
    """The ReplicaStatus."""
    return _SHOWN[replica.state]


def _indexes(table: Table) -> dict[str, Any]:
    if not table.global_indexes:
        return {}
    return {"GlobalSecondaryIndexes": [{"IndexName": index.name} for index in table.global_indexes]}
