"""Creating, changing and deleting tables, as routers ask for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from autoadmin.adoption import Adoption
from autoadmin.catalog import (
    Catalog,
    Change,
    Placement,
    added_indexes,
    check_new_table,
    with_changed_table,
    with_new_table,
    without_table,
)
from autoadmin.executor import Control
from autoadmin.member import LeadershipLost, NotLeader
from autoadmin.planner import partition_count, place_tables
from cluster.convert import table_to_wire
from cluster.settings import AutoAdminSettings
from cluster.topology import CatalogTable, Topology
from cluster.wire import admin_pb2
from dynamo.errors import ApiError, internal
from dynamo.table import Index, Table, decode_table

_log = logging.getLogger(__name__)

Reply = admin_pb2.TableReply


class Tables:
    """The three calls. Each answers with the table's record, or with the type and text of a DynamoDB error.

    They raise NotLeader and LeadershipLost, as `Control.change` does."""

    def __init__(self, control: Control, adoption: Adoption, settings: AutoAdminSettings) -> None:
        self._control = control
        self._adoption = adoption
        self._settings = settings

    async def create(self, message: bytes) -> bytes:
        """Admin/CreateTable. Answers once the table is ACTIVE; still CREATING when that takes too long."""
        return await self._answer(message, self._create)

    async def update(self, message: bytes) -> bytes:
        """Admin/UpdateTable."""
        return await self._answer(message, self._update)

    async def delete(self, message: bytes) -> bytes:
        """Admin/DeleteTable. Answers with the last description, in status DELETING."""
        return await self._answer(message, self._delete)

    async def _answer(self, message: bytes, work: Callable[[admin_pb2.TableRequest], Awaitable[Reply]]) -> bytes:
        request = admin_pb2.TableRequest.FromString(message)
        try:
            self._check(request)
            reply = await work(request)
        except ApiError as error:
            reply = self._error(error)
        except (NotLeader, LeadershipLost):
            raise
        except Exception:  # the disk is full, say: the caller hears that it failed, the log hears why
            _log.exception("the catalog could not be changed for table %s", request.name)
            reply = self._error(internal())
        return reply.SerializeToString()

    def _check(self, request: admin_pb2.TableRequest) -> None:
        if request.cluster_id != self._settings.cluster_id:
            raise internal(f"This auto-admin is of cluster {self._settings.cluster_id}, not of {request.cluster_id}.")
        if self._adoption.needed:
            raise internal("Auto-admin lost its catalog and is about to take over the storage nodes' copy.")

    def _error(self, error: ApiError) -> Reply:
        epoch, version = self._control.topology.at
        return Reply(epoch=epoch, version=version, error_type=error.type, error_message=error.message)

    async def _create(self, request: admin_pb2.TableRequest) -> Reply:
        wanted = decode_table(request.definition)

        def make(catalog: Catalog) -> Change | None:
            if wanted.internal and catalog.topology.internal_table(wanted.internal) is not None:
                return None  # another router was first
            known = catalog.topology.table_named(wanted.name)
            if known is not None and wanted.table_id and known.table_id == wanted.table_id:
                return None  # made by this very call, which was begun with another leader
            check_new_table(catalog.topology, wanted)
            placements, *of_indexes = self._place(catalog, wanted, wanted.global_indexes, with_table=True)
            return with_new_table(catalog, wanted, placements, of_indexes)

        topology = await self._control.change(make)
        made = topology.internal_table(wanted.internal) if wanted.internal else topology.table_named(wanted.name)
        assert made is not None
        _log.info("table %s is made, with id %d", made.name or made.internal, made.id)
        await self._until_active(made)
        record = self._control.topology.tables.get(made.id)
        if record is None:
            raise internal("The table was deleted while it was being made.")
        return self._reply(record, self._control.topology)

    def _place(
        self, catalog: Catalog, table: Table, indexes: Sequence[Index], *, with_table: bool = False
    ) -> list[tuple[Placement, ...]]:
        """Places for the partitions of the table, if asked for, and of its indexes."""
        on_demand, billing = self._settings.partitions_per_table, table.billing
        counts = [partition_count(billing, index.throughput, on_demand) for index in indexes]
        if with_table:
            counts.insert(0, partition_count(billing, table.throughput, on_demand))
        return place_tables(catalog.topology, self._control.live(), counts, self._settings.leaders)

    async def _until_active(self, made: Table) -> None:
        def decided(topology: Topology) -> bool:
            table = topology.table(made.id)
            return table is None or table.status == "ACTIVE"

        try:
            async with asyncio.timeout(self._settings.create_timeout):
                await self._control.until(decided)
        except TimeoutError:
            _log.warning("table %s is not led everywhere after %g s", made.name, self._settings.create_timeout)

    async def _update(self, request: admin_pb2.TableRequest) -> Reply:
        wanted = decode_table(request.definition)

        def make(catalog: Catalog) -> Change:
            added = added_indexes(catalog.topology, request.name, wanted)
            placements = self._place(catalog, wanted, added) if added else []
            return with_changed_table(
                catalog, request.name, wanted, request.schema_version, request.table_version, placements
            )

        topology = await self._control.change(make)
        changed = topology.table_named(request.name)
        assert changed is not None
        return self._reply(topology.tables[changed.id], topology)

    async def _delete(self, request: admin_pb2.TableRequest) -> Reply:
        gone: list[Table] = []

        def make(catalog: Catalog) -> Change:
            change = without_table(catalog, request.name)
            gone.extend(catalog.topology.tables[table].table for table in change.update.removed_tables)
            return change

        topology = await self._control.change(make)
        _log.info("table %s is deleted", request.name)
        last = msgspec.structs.replace(gone[0], status="DELETING")
        return self._reply(CatalogTable(last, topology.version), topology)

    def _reply(self, record: CatalogTable, topology: Topology) -> Reply:
        epoch, version = topology.at
        return Reply(table=table_to_wire(record.table, record.version), epoch=epoch, version=version)
