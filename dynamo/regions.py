"""Global tables: which of two writes wins, and which regions take part.

The winner is the greater `(stamp, region)`, wherever the two writes meet, so that all regions end with the same item.
Membership is a map from region to its newest entry; of two maps every entry with the later `since` counts, and of two
of the same time the one that takes the region out. So regions that tell each other what they know end with the same
map, in whatever order they hear of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from dynamo.table import Replica, Table

OWN: Final = 0
"""The number of this region's own writes."""
RETURNED: Final = 1
"""The number of own writes that came back from elsewhere, after this region had lost them. They are not sent again."""
FIRST_OTHER: Final = 2

AHEAD_MS_MAX: Final = 60_000
"""A change that is further ahead of the clock is not applied: a clock is wrong somewhere (design §11)."""

PRESENT: Final = ("CREATING", "FILLING", "ACTIVE")
"""States of a region that gets every change."""


_RANKS: Final = {"CUT_OFF": 1, "CREATION_FAILED": 1, "DELETING": 2, "REMOVED": 2}
"""Of entries of the same time the higher one counts; those of regions that are present have 0."""


class Version(NamedTuple):
    """What a write is known by, and compared by: of two the greater one wins."""

    stamp: int
    region: str


def region_of(table: Table, number: int) -> str:
    """The region that an item header's number stands for; "" in a table that is not global."""
    return table.origins[number] if number < len(table.origins) else table.region


def number_of(table: Table, region: str) -> int | None:
    """The number for writes of a region that came from elsewhere; None: this region has not heard of it yet."""
    if region == table.region:
        return RETURNED
    found = [number for number, name in enumerate(table.origins) if name == region and number >= FIRST_OTHER]
    return found[-1] if found else None


def replica_of(table: Table, region: str) -> Replica | None:
    """The region's entry."""
    return next((replica for replica in table.replicas if replica.region == region), None)


def readers_of(table: Table) -> tuple[Replica, ...]:
    """The other regions that are to get this region's changes."""
    own = replica_of(table, table.region)
    if own is None or own.state not in PRESENT:
        return ()
    return tuple(replica for replica in table.replicas if replica.state in PRESENT and replica.region != table.region)


def is_global(table: Table | None) -> bool:
    """Whether the table keeps what regions need: stamps with origins, and tombstones."""
    return table is not None and bool(table.region)


def made_global(table: Table, region: str, since: int) -> Table:
    """The table as the only replica of a global table. One that is global already stays as it is."""
    if is_global(table):
        return table
    own = Replica(region, OWN, since, "ACTIVE", region)
    return msgspec.structs.replace(table, region=region, origins=(region, region), replicas=(own,))


def next_since(table: Table, now_ms: int) -> int:
    """A time for the next change of membership that counts against all before."""
    return max((now_ms, *(replica.since + 1 for replica in table.replicas)))


def with_entry(table: Table, entry: Replica) -> Table:
    """The table as its region has it after it heard of `entry`, whose number and state are the teller's.

    Entries that are not newer change nothing. A region that joins gets a new number; so does one that is only known as
    removed, since items of its may come from others.
    """
    known = replica_of(table, entry.region)
    if known is not None and _age(known) >= _age(entry):
        return table
    if entry.region == table.region and entry.state in PRESENT:
        return _left_meanwhile(table)
    if entry.region == table.region:
        number, origins = OWN, table.origins
    elif entry.state not in PRESENT and known is not None:
        number, origins = known.number, table.origins
    else:
        number, origins = len(table.origins), (*table.origins, entry.region)
    state = entry.state
    if state in ("FILLING", "ACTIVE") and entry.region != table.region:
        state = "FILLING"  # it is there, but has nothing from this region yet
    changed = Replica(entry.region, number, entry.since, state, entry.by)
    others = tuple(replica for replica in table.replicas if replica.region != entry.region)
    replicas = tuple(sorted((*others, changed), key=lambda replica: replica.region))
    return msgspec.structs.replace(table, origins=origins, replicas=replicas)


def _left_meanwhile(table: Table) -> Table:
    """The table of a region that was removed and added again before it heard of either: what is here is of the earlier
    life and has to go before the region can join."""
    return msgspec.structs.replace(
        table,
        replicas=tuple(
            msgspec.structs.replace(replica, state="DELETING")
            if replica.region == table.region and replica.state in PRESENT
            else replica
            for replica in table.replicas
        ),
    )


def _age(entry: Replica) -> tuple[int, int]:
    return entry.since, _RANKS.get(entry.state, 0)


def with_entries(table: Table, entries: Iterable[Replica]) -> Table:
    """The table after another region told of all its entries."""
    for entry in entries:
        table = with_entry(table, entry)
    return table


def is_same_table(here: Table, told: Table) -> bool:
    """Whether another region's table of this name is a replica of the same global table: one of the two knows the other
    one's present life. Tables that were made apart from each other have only the name in common."""
    return _knows(here, told) or _knows(told, here)


def _knows(table: Table, other: Table) -> bool:
    known, own = replica_of(table, other.region), replica_of(other, other.region)
    return known is not None and own is not None and known.since == own.since


def with_state(table: Table, region: str, since: int, state: str) -> Table:
    """The table with another state of the entry that was made at `since`; an entry that has moved on stays."""
    replicas = tuple(
        msgspec.structs.replace(replica, state=state)
        if replica.region == region and replica.since == since
        else replica
        for replica in table.replicas
    )
    return msgspec.structs.replace(table, replicas=replicas)


def joined(told: Table, region: str, entry: Replica) -> Table:
    """The table with which `region` joins, from the definition that another region tells and the joining entry in it.

    It begins empty, with numbers of its own.
    """
    made = msgspec.structs.replace(
        told,
        id=0,
        schema_version=1,
        status="CREATING",
        region=region,
        origins=(region, region),
        replicas=(Replica(region, OWN, entry.since, "ACTIVE", entry.by),),
        tags={},
        resource_policy="",
        deletion_protection=False,
        on_demand_switches=(),
        global_indexes=tuple(
            msgspec.structs.replace(index, table=0, status="CREATING", backfilling=False)
            for index in told.global_indexes
            if index.status != "DELETING"
        ),
        streams=told.streams[-1:] if told.stream is not None else (),
    )
    return with_entries(made, [replica for replica in told.replicas if replica.region != region])
