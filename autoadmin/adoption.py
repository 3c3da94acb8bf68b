"""When auto-admin has lost its disk, the newest copy of the catalog that a storage node holds becomes the catalog.

A node reports the version of its copy, and copies come from auto-admin only; so a version above the catalog's own means
that some of the catalog was lost. Only a leader within its lease may say so: one that was replaced without its knowing
sees newer copies, too. It takes the loss of all members' disks, as a group of members is only founded by members that
are all empty (founding.py). The copy becomes the catalog by a change like any other, so that one of them wins.

No table is changed then until a copy is adopted, in a new epoch. A table is ACTIVE only once its partitions are led, so
two of the three nodes of each hold a copy with it: all nodes that the newest copy names are waited for, but not for
ever.
"""

from __future__ import annotations

import asyncio
import logging

from google.protobuf.message import DecodeError

from autoadmin.catalog import Catalog, Change, adopted
from autoadmin.executor import Control
from cluster.clock import Clock
from cluster.convert import update_from_wire
from cluster.topology import Topology, UpdateRefused
from cluster.transport import Transport, TransportError
from cluster.wire import common_pb2, node_pb2

WAIT_SECONDS = 5.0
"""How long the nodes that the newest copy names are waited for."""
ASK_SECONDS = 2.0

_log = logging.getLogger(__name__)


class Adoption:
    """Watches for copies newer than the catalog, and adopts the newest."""

    def __init__(self, control: Control, transport: Transport, clock: Clock) -> None:
        self._control = control
        self._transport = transport
        self._clock = clock
        self._since: float | None = None
        self._busy = False
        self._copies: dict[int, Topology] = {}

    @property
    def needed(self) -> bool:
        """Whether a node holds a newer copy than the catalog: then the catalog must not be changed."""
        own = self._control.topology.at
        return self._control.newest and any(seen.catalog_at > own for seen in self._control.view.nodes.values())

    def forget(self) -> None:
        """Another member leads."""
        self._copies.clear()
        self._since = None

    async def consider(self) -> None:
        """Adopt a copy if one is needed and all are here that are waited for. Called after each report."""
        if self._busy or not self.needed:
            return
        self._busy = True
        try:
            await self._collect()
            if self._complete():
                await self._adopt(max(self._copies.values(), key=lambda copy: copy.at))
        finally:
            self._busy = False

    async def _collect(self) -> None:
        """Fetch the copies that are newer than what is held of them already."""
        if self._since is None:
            self._since = self._clock.boottime()
            _log.error(
                "storage nodes hold a newer catalog than auto-admin: its state was lost; adopting the newest copy"
            )
        own = self._control.topology.at
        nodes = {
            node: seen.report.node.address
            for node, seen in self._control.view.nodes.items()
            if seen.catalog_at > own and (node not in self._copies or self._copies[node].at < seen.catalog_at)
        }
        copies = await asyncio.gather(*(self._fetch(address) for address in nodes.values()))
        self._copies.update(
            (node, copy) for node, copy in zip(nodes, copies, strict=True) if copy is not None and copy.at > own
        )

    async def _fetch(self, address: str) -> Topology | None:
        cluster_id = self._control.topology.cluster_id
        request = node_pb2.CatalogRequest(cluster_id=cluster_id).SerializeToString()
        try:
            answer = await self._transport.call(address, "Node/Catalog", request, ASK_SECONDS)
            update = update_from_wire(common_pb2.CatalogUpdate.FromString(answer))
            return Topology(cluster_id).with_update(update)
        except (TransportError, DecodeError, UpdateRefused, ValueError) as error:
            _log.warning("the copy of the catalog at %s could not be had: %s", address, error)
            return None

    def _complete(self) -> bool:
        if not self._copies or self._since is None:
            return False
        newest = max(self._copies.values(), key=lambda copy: copy.at)
        all_here = set(newest.nodes) <= set(self._control.view.nodes)
        return all_here or self._clock.boottime() - self._since >= WAIT_SECONDS

    async def _adopt(self, copy: Topology) -> None:
        def make(catalog: Catalog) -> Change | None:
            return adopted(copy) if copy.at > catalog.topology.at else None

        topology = await self._control.change(make)
        _log.warning("adopted catalog %d.%d as %d.%d", *copy.at, *topology.at)
        self.forget()
