"""Performs what the planner plans and the callers ask for: one change of the catalog after the other, each durable
before anyone hears of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from autoadmin.actions import Action, ActivateIndexes, ActivateTables, ForgetReplicas
from autoadmin.catalog import Catalog, Change, first_change, with_active_indexes, with_active_tables, without_replicas
from autoadmin.planner import plan
from autoadmin.state import StateError, StateStore
from autoadmin.view import View
from cluster.clock import Clock
from cluster.convert import update_to_wire
from cluster.executor import Executor
from cluster.topology import Topology
from cluster.wire import node_pb2

_log = logging.getLogger(__name__)

Make = Callable[[Catalog], Change | None]
"""Computes a change of the newest catalog; None when there is nothing to change. May raise ApiError."""


class Control:
    """Holds the catalog and the view, and moves both."""

    def __init__(self, cluster_id: str, store: StateStore, executor: Executor, clock: Clock) -> None:
        self._cluster_id = cluster_id
        self._store = store
        self._executor = executor
        self._clock = clock
        self._catalog: Catalog | None = None
        self._turn = asyncio.Lock()
        self._work = asyncio.Event()
        self._listeners: dict[Callable[[], None], None] = {}  # in order, so that a simulation repeats itself
        self._messages: dict[tuple[int, int], bytes] = {}  # differences of the newest version, by where they start
        self.view = View()

    @property
    def topology(self) -> Topology:
        """The newest durable catalog and topology."""
        return self.catalog.topology

    @property
    def catalog(self) -> Catalog:
        """The newest durable catalog. Only after `load`."""
        assert self._catalog is not None
        return self._catalog

    async def load(self) -> None:
        """Read the durable state, or start a new one. Raises StateError."""
        catalog = await self._executor.run(self._store.load)
        if catalog is None:
            change = first_change(self._cluster_id)
            await self._executor.run(lambda: self._store.save(change))
            catalog = Catalog(Topology().with_update(change.update), change.counters)
        if catalog.topology.cluster_id != self._cluster_id:
            raise StateError(
                f"The data directory belongs to cluster {catalog.topology.cluster_id}, "
                f"and this auto-admin was started for cluster {self._cluster_id}."
            )
        self._catalog = catalog
        self._work.set()  # what a crash left unfinished

    async def change(self, make: Make) -> Topology:
        """Make a change durable and known; the topology after it. Not cut off half-way when the caller is cancelled."""
        return await asyncio.shield(asyncio.ensure_future(self._change(make)))

    async def _change(self, make: Make) -> Topology:
        async with self._turn:
            change = make(self.catalog)
            if change is not None:
                after = self.catalog.after(change)
                await self._executor.run(lambda: self._store.save(change))
                self._catalog = after
                self._messages.clear()
                self._announce()
            return self.topology

    # --- what is heard ---

    def heard(self, report: node_pb2.Report) -> None:
        """A node's report."""
        self.view = self.view.with_report(report, self._clock.boottime())
        self._work.set()

    def lost(self, node: int) -> None:
        """A node's session has ended."""
        self.view = self.view.without(node)

    def live(self) -> frozenset[int]:
        """Nodes that may be given new replicas now."""
        return self.view.live(self._clock.boottime())

    # --- what is told ---

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` after every change from now on."""
        self._listeners[listener] = None

    def forget(self, listener: Callable[[], None]) -> None:
        """Call it no more."""
        self._listeners.pop(listener, None)

    def difference(self, epoch: int, version: int) -> bytes:
        """The CatalogUpdate for a holder of (`epoch`, `version`), serialized."""
        message = self._messages.get((epoch, version))
        if message is None:
            update = self.topology.difference(epoch, version)
            message = self._messages[epoch, version] = update_to_wire(update).SerializeToString()
        return message

    async def until(self, condition: Callable[[Topology], bool]) -> None:
        """Return once the topology fulfils `condition`."""
        changed = asyncio.Event()
        self.listen(changed.set)
        try:
            while not condition(self.topology):
                changed.clear()
                await changed.wait()
        finally:
            self.forget(changed.set)

    def _announce(self) -> None:
        for listener in list(self._listeners):
            listener()

    # --- what is planned ---

    async def run(self) -> None:
        """Plan and act whenever something was heard or changed, until cancelled."""
        self.listen(self._work.set)
        while True:
            await self._work.wait()
            self._work.clear()
            for action in plan(self.topology, self.view, self._clock.boottime()):
                try:
                    await self.change(lambda catalog, action=action: _perform(action, catalog))  # type: ignore[misc]
                except Exception:  # the next report brings the next try
                    _log.exception("a planned change could not be made")


def _perform(action: Action, catalog: Catalog) -> Change | None:
    """The change that an action asks for; None when the catalog has moved since it was planned."""
    if catalog.topology.at != action.planned_on:
        return None
    match action:
        case ActivateTables(_, tables):
            return with_active_tables(catalog, tables)
        case ForgetReplicas(_, replicas):
            return without_replicas(catalog, replicas)
        case ActivateIndexes(_, indexes):
            return with_active_indexes(catalog, indexes)
