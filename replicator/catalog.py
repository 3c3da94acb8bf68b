"""The region's own catalog as the replicator sees it: looked at again and again, and changed through auto-admin."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from google.protobuf.message import DecodeError
from msgspec import MsgspecError

from cluster.convert import update_from_wire
from cluster.topology import Topology, UpdateRefused
from cluster.transport import Transport, TransportError
from cluster.wire import admin_pb2, common_pb2, node_pb2
from dynamo.errors import ApiError, unavailable
from dynamo.table import Table, encode_table

LOOK_SECONDS: Final = 2.0
CHANGE_SECONDS: Final = 15.0
ATTEMPTS_MAX: Final = 20
PAUSE_SECONDS: Final = 0.05

_log = logging.getLogger(__name__)


class RegionCatalog:
    """`auto_admins` and `seeds` (storage nodes, asked while no auto-admin answers) are addresses."""

    def __init__(self, transport: Transport, cluster_id: str, auto_admins: Sequence[str], seeds: Sequence[str]) -> None:
        self._transport = transport
        self._cluster_id = cluster_id
        self._auto_admins = list(auto_admins)
        self._seeds = list(seeds)
        self._topology = Topology(cluster_id)
        self._looking = asyncio.Lock()

    @property
    def topology(self) -> Topology:
        """The newest view."""
        return self._topology

    @property
    def known(self) -> bool:
        """Whether there is a view that names storage nodes: an auto-admin that has lost its disk has none."""
        return bool(self._topology.nodes)

    async def refresh(self) -> None:
        """Look for a newer view. Never raises for a peer's sake."""
        async with self._looking:
            if not await self._ask_auto_admins():
                await self._ask_nodes()

    def global_tables(self) -> list[Table]:
        """All global tables, in order of their names."""
        topology = self._topology
        tables = [topology.table_named(name) for name in topology.table_names()]
        return [table for table in tables if table is not None and table.region]

    def table(self, name: str) -> Table | None:
        """The table of this name, whatever its status."""
        return self._topology.table_named(name)

    # --- changes ---

    async def create(self, table: Table) -> None:
        """Have a table made. Raises ApiError."""
        await self._change("CreateTable", admin_pb2.TableRequest(name=table.name, definition=encode_table(table)))

    async def delete(self, name: str) -> None:
        """Have a table dropped. Raises ApiError."""
        await self._change("DeleteTable", admin_pb2.TableRequest(name=name))

    async def update(self, name: str, change: Callable[[Table], Table]) -> Table | None:
        """Have the table changed as `change` makes it, computed anew when someone else's change comes first. None if
        there is no such table. Raises ApiError, theirs or auto-admin's."""
        for _ in range(ATTEMPTS_MAX):
            table = self.table(name)
            if table is None:
                return None
            record = self._topology.tables[table.id]
            changed = change(record.table)
            if changed == record.table:
                return changed
            request = admin_pb2.TableRequest(
                name=name,
                definition=encode_table(changed),
                schema_version=record.table.schema_version,
                table_version=record.version,
            )
            try:
                await self._change("UpdateTable", request)
            except ApiError as error:
                if error.type != "Conflict":
                    raise
                await asyncio.sleep(PAUSE_SECONDS)  # the member that is asked may be a moment behind
                await self.refresh()
                continue
            return self.table(name)
        raise unavailable(f"Table {name} was changed by others time and again")

    async def _change(self, method: str, request: admin_pb2.TableRequest) -> None:
        request.cluster_id = self._cluster_id
        message = request.SerializeToString()
        addresses = list(self._auto_admins)
        asked = 0
        while addresses and asked < len(self._auto_admins) + ATTEMPTS_MAX:
            address, asked = addresses.pop(0), asked + 1
            try:
                answer = await self._transport.call(address, f"Admin/{method}", message, CHANGE_SECONDS)
                reply = admin_pb2.TableReply.FromString(answer)
            except (TransportError, OSError, DecodeError) as error:
                _log.debug("auto-admin %s did not answer %s: %s", address, method, error)
                continue
            if reply.not_leader:
                if reply.leader and reply.leader in addresses:
                    addresses.remove(reply.leader)
                    addresses.insert(0, reply.leader)
                continue
            self._prefer(address)
            if reply.error_type:
                raise ApiError(reply.error_type, reply.error_message)
            await self.refresh()
            return
        raise unavailable("No auto-admin answers")

    def _prefer(self, address: str) -> None:
        self._auto_admins.remove(address)
        self._auto_admins.insert(0, address)

    # --- looking ---

    async def _ask_auto_admins(self) -> bool:
        request = admin_pb2.WatchRequest(
            cluster_id=self._cluster_id, epoch=self._topology.epoch, version=self._topology.version
        )
        for address in list(self._auto_admins):
            if await self._take(address, "Admin/Refresh", request.SerializeToString()):
                return True
        return False

    async def _ask_nodes(self) -> bool:
        request = node_pb2.CatalogRequest(cluster_id=self._cluster_id).SerializeToString()
        for address in list(self._seeds):
            if await self._take(address, "Node/Catalog", request):
                return True
        return False

    async def _take(self, address: str, method: str, message: bytes) -> bool:
        """Ask one peer and take its view if it is newer; whether it answered with one."""
        try:
            answer = await self._transport.call(address, method, message, LOOK_SECONDS)
            update = update_from_wire(common_pb2.CatalogUpdate.FromString(answer))
            after = self._topology.with_update(update)
        except (TransportError, OSError, DecodeError, MsgspecError, UpdateRefused) as error:
            _log.debug("no catalog from %s: %s", address, error)
            return False
        if not after.nodes:
            return False
        self._topology = after
        return True
