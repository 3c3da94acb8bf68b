"""What all regions of a global table share: time to live, global indexes, billing. The last change counts."""

from __future__ import annotations

import msgspec

from dynamo.table import Index, Table


def with_newer_settings(here: Table, told: Table) -> Table:
    """The table with what another region has, if that was changed later."""
    if told.settings_changed <= here.settings_changed:
        return here
    return msgspec.structs.replace(
        here,
        settings_changed=told.settings_changed,
        attribute_types=told.attribute_types,
        ttl_attribute=told.ttl_attribute,
        ttl_changed=told.ttl_changed,
        billing=told.billing,
        on_demand_since=told.on_demand_since,
        throughput=told.throughput,
        on_demand_read=told.on_demand_read,
        on_demand_write=told.on_demand_write,
        warm_read=told.warm_read,
        warm_write=told.warm_write,
        sse_key=told.sse_key,
        global_version=told.global_version,
        global_indexes=_indexes(here, told),
    )


def _indexes(here: Table, told: Table) -> tuple[Index, ...]:
    """The other region's indexes; those that are here keep their tables and how far they are filled."""
    known = {index.name: index for index in here.global_indexes}
    found = []
    for index in told.global_indexes:
        if index.status == "DELETING":
            continue
        old = known.get(index.name)
        if old is None or (old.keys, old.projection) != (index.keys, index.projection):
            found.append(msgspec.structs.replace(index, table=0, status="CREATING", backfilling=False))
        else:
            found.append(
                msgspec.structs.replace(index, table=old.table, status=old.status, backfilling=old.backfilling)
            )
    return tuple(found)
