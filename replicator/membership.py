"""Which regions take part in which global tables: told among the regions, and brought about in this one.

Every region tells every other one what it knows, again and again, and takes over what is newer (`dynamo.regions`). A
region that is to join is asked by the one that added it; a region that was removed deletes its own table. What takes
time has its own step here, each of which can be done any number of times, by any number of replicators.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec

from cluster.clock import Clock
from cluster.wire import regions_pb2
from dynamo.errors import ApiError
from dynamo.regions import (
    PRESENT,
    is_same_table,
    joined,
    next_since,
    replica_of,
    with_entries,
    with_entry,
    with_state,
)
from dynamo.table import Replica, Table, decode_table, encode_table
from replicator.catalog import RegionCatalog
from replicator.exchange import Heard, Told
from replicator.peers import PeerError, Peers
from replicator.shared_settings import with_newer_settings

LOST_SECONDS: Final = 60.0
"""A region that answers, and for so long has no table where it should, has lost it. Its entry is not one of a region
that is to delete its table: should it turn up again, it is the region's own."""
EXCHANGE_SECONDS: Final = 3.0
"""How long a region may take to answer: the others are asked after it."""
FORGET_SECONDS: Final = 30.0
"""A removed region that cannot be reached is shown as being deleted for so long."""

_log = logging.getLogger(__name__)


class Membership:
    """What this region does about its global tables.

    `items(table)`: how many items a table has here. `filled(table, replica)`: whether the region has what was here
    before it came. `cut_off(table, replica)`: whether it was too far behind."""

    def __init__(
        self,
        region: str,
        catalog: RegionCatalog,
        peers: Peers,
        clock: Clock,
        *,
        items: Callable[[Table], Awaitable[int]],
        filled: Callable[[Table, Replica], bool],
        cut_off: Callable[[Table, Replica], bool],
    ) -> None:
        self._region = region
        self._catalog = catalog
        self._peers = peers
        self._clock = clock
        self._items = items
        self._filled = filled
        self._cut_off = cut_off
        self._since: dict[tuple[str, str, int], float] = {}
        self._troubles: dict[str, str] = {}
        self._heard = Heard()
        self._told_at: tuple[tuple[int, int], Told] | None = None

    # --- asked by other regions ---

    async def exchange(self, request: regions_pb2.ExchangeRequest) -> regions_pb2.ExchangeReply:
        """Regions/Exchange."""
        if request.to_region != self._region:
            return regions_pb2.ExchangeReply(error=f"This is region {self._region}, not {request.to_region}")
        if not self._catalog.known:
            return regions_pb2.ExchangeReply()
        theirs = self._heard.asked(request)
        if theirs is None:
            return self._heard.reply(request, self._told(), not_known=True)
        error = ""
        try:
            await self._take_over(request.region, theirs)
        except ApiError as failure:
            error = failure.message
        return self._heard.reply(request, self._told(), error=error)

    async def join(self, request: regions_pb2.JoinRequest) -> regions_pb2.JoinReply:
        """Regions/Join."""
        told = decode_table(request.definition)
        entry = replica_of(told, self._region)
        if request.to_region != self._region or entry is None or entry.state not in PRESENT:
            return regions_pb2.JoinReply(refused=True, error=f"Region {self._region} is not asked to join")
        await self._catalog.refresh()
        if not self._catalog.known:
            return regions_pb2.JoinReply(error=f"Region {self._region} has no catalog yet")
        here = self._catalog.table(told.name)
        table = joined(told, self._region, entry)
        if here is not None:
            if can_be_adopted(here, told):
                return await self._adopt(here, table)
            return _joined_before(here, entry)
        now = self._clock.wall()
        streams = tuple(msgspec.structs.replace(stream, enabled=now) for stream in table.streams)
        try:
            await self._catalog.create(msgspec.structs.replace(table, created=now, streams=streams))
        except ApiError as error:
            return regions_pb2.JoinReply(error=error.message)
        _log.info("table %s is made here, as %s asked", told.name, request.region)
        return regions_pb2.JoinReply()

    async def _adopt(self, here: Table, table: Table) -> regions_pb2.JoinReply:
        """Make an empty table of this region a replica, as version 2017.11.29 has it."""
        if await self._items(here):
            return regions_pb2.JoinReply(refused=True, error=f"The table {here.name} in {self._region} is not empty")

        def change(newest: Table) -> Table:
            if not can_be_adopted(newest, table):
                return newest
            own = replica_of(table, self._region)
            assert own is not None
            # Numbers that stand for regions already go on doing so.
            alone = msgspec.structs.replace(
                newest,
                region=self._region,
                origins=newest.origins or (self._region, self._region),
                replicas=(own,),
                global_version=table.global_version,
            )
            return with_entries(alone, table.replicas)

        try:
            await self._catalog.update(here.name, change)
        except ApiError as error:
            return regions_pb2.JoinReply(error=error.message)
        return regions_pb2.JoinReply()

    # --- asked for by nobody ---

    async def round(self) -> None:
        """Tell all regions, hear from them, and take the next step with every table."""
        await self._catalog.refresh()
        if not self._catalog.known:
            return
        for region in self._peers.regions:
            theirs = await self._exchange_with(region)
            for table in self._catalog.global_tables():
                try:
                    await self._step(table, region, theirs)
                except ApiError as error:
                    _log.info("table %s: %s", table.name, error.message)
                except PeerError as error:
                    _log.debug("table %s: %s", table.name, error)
        for table in self._catalog.global_tables():
            await self._leave(table)

    async def _exchange_with(self, region: str) -> Mapping[str, Table] | None:
        """What another region has; None if it cannot tell."""
        told = self._told()
        request = self._heard.request(self._region, region, told)
        try:
            reply = await self._peers.call(region, "Exchange", request, regions_pb2.ExchangeReply, EXCHANGE_SECONDS)
        except PeerError:
            return None
        if reply.error:
            _log.info("region %s: %s", region, reply.error)
        theirs = self._heard.answered(region, told, reply)
        if theirs is None:
            return None
        try:
            await self._take_over(region, theirs)
        except ApiError as error:
            _log.info("what region %s told cannot be taken over: %s", region, error.message)
        return theirs

    def _told(self) -> Told:
        """This region's tables, as they are told."""
        at = self._catalog.topology.at
        if self._told_at is None or self._told_at[0] != at:
            self._told_at = (at, Told(self._catalog.global_tables()))
        return self._told_at[1]

    async def _take_over(self, region: str, theirs: Mapping[str, Table]) -> None:
        """Take over what is newer of the tables that both regions have."""
        for name, told in theirs.items():
            here = self._catalog.table(name)
            if here is None or not here.region or here.status != "ACTIVE" or told.region != region:
                continue
            if not is_same_table(here, told):
                continue
            if _take_over(here, told) != here:
                await self._catalog.update(name, lambda table, told=told: _take_over(table, told))  # type: ignore[misc]

    async def _step(self, table: Table, region: str, theirs: Mapping[str, Table] | None) -> None:
        """The next step with one region of one table."""
        entry = replica_of(table, region)
        if entry is None or table.status != "ACTIVE":
            return
        there = None if theirs is None else theirs.get(table.name)
        if there is not None and not is_same_table(table, there):
            there = None
        its_own = None if there is None else replica_of(there, region)
        is_there = its_own is not None and its_own.since == entry.since
        match entry.state:
            case "CREATING" if is_there:
                await self._set_state(table, entry, "FILLING")
            case "CREATING" if entry.by == self._region and theirs is not None:
                await self._ask_to_join(table, entry)
            case "FILLING" if is_there and self._filled(table, entry):
                await self._set_state(table, entry, "ACTIVE")
            case "FILLING" | "ACTIVE" if self._cut_off(table, entry):
                await self._replace(table, entry, "CUT_OFF")
            case "FILLING" | "ACTIVE" if theirs is not None:
                await self._look_for_lost(table, entry, lost=there is None)
            case "DELETING":
                gone = theirs is not None and not is_there and (its_own is None or its_own.state not in PRESENT)
                if (gone and there is None) or self._waited(table, entry, FORGET_SECONDS):
                    await self._set_state(table, entry, "REMOVED")

    async def _ask_to_join(self, table: Table, entry: Replica) -> None:
        request = regions_pb2.JoinRequest(region=self._region, to_region=entry.region, definition=encode_table(table))
        reply = await self._peers.call(entry.region, "Join", request, regions_pb2.JoinReply)
        if reply.refused:
            _log.error("table %s has no replica in %s: %s", table.name, entry.region, reply.error)
            await self._replace(table, entry, "CREATION_FAILED")
        elif reply.error:
            _log.info("table %s has no replica in %s yet: %s", table.name, entry.region, reply.error)

    async def _look_for_lost(self, table: Table, entry: Replica, *, lost: bool) -> None:
        key = (table.name, entry.region, entry.since)
        if not lost:
            self._since.pop(key, None)
        elif self._waited(table, entry, LOST_SECONDS):
            _log.error("region %s has no table %s any more: it is no replica from now on", entry.region, table.name)
            await self._replace(table, entry, "CUT_OFF")

    async def _leave(self, table: Table) -> None:
        """Delete the table here if this region was removed from it."""
        own = replica_of(table, self._region)
        if own is None or own.state not in ("DELETING", "REMOVED") or table.status != "ACTIVE":
            return
        try:
            await self._catalog.delete(table.name)
        except ApiError as error:
            if self._troubles.get(table.name) != error.message:
                _log.warning("table %s cannot be deleted: %s", table.name, error.message)
            self._troubles[table.name] = error.message
            return
        _log.info("table %s is deleted: this region is no replica of it any more", table.name)

    def _waited(self, table: Table, entry: Replica, seconds: float) -> bool:
        """Whether an entry has been as it is for so long, as this process has seen it."""
        now = self._clock.boottime()
        return now - self._since.setdefault((table.name, entry.region, entry.since), now) >= seconds

    async def _set_state(self, table: Table, entry: Replica, state: str) -> None:
        await self._catalog.update(
            table.name, lambda newest: with_state(newest, entry.region, entry.since, state) if newest.region else newest
        )

    async def _replace(self, table: Table, entry: Replica, state: str) -> None:
        """A new entry for a region, which all regions will hear of."""
        now_ms = int(self._clock.wall() * 1000)

        def change(newest: Table) -> Table:
            known = replica_of(newest, entry.region)
            if known is None or known.since != entry.since:
                return newest
            replaced = msgspec.structs.replace(entry, since=next_since(newest, now_ms), state=state, by=self._region)
            return with_entry(newest, replaced)

        await self._catalog.update(table.name, change)


def can_be_adopted(here: Table, told: Table) -> bool:
    """Whether a table of this region's own can become a replica: of version 2017.11.29, if it is alike."""
    own = replica_of(here, here.region) if here.region else None
    return (
        told.global_version == "2017.11.29"
        and (not here.region or (own is not None and own.state == "CUT_OFF"))
        and here.keys == told.keys
        and here.stream is not None
        and here.stream.view == "NEW_AND_OLD_IMAGES"
    )


def _take_over(here: Table, told: Table) -> Table:
    return with_newer_settings(with_entries(here, told.replicas), told)


def _joined_before(here: Table, entry: Replica) -> regions_pb2.JoinReply:
    own = replica_of(here, entry.region) if here.region else None
    if own is not None and own.since == entry.since:
        return regions_pb2.JoinReply()
    if own is not None and own.state in ("DELETING", "REMOVED"):
        return regions_pb2.JoinReply(error=f"The table's former replica in {entry.region} is being deleted")
    return regions_pb2.JoinReply(refused=True, error=f"Region {entry.region} has a table {here.name} of its own")
