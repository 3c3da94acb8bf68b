"""Performs what the planner plans and the callers ask for: one change of the catalog after the other, each durable on a
majority of auto-admin's members before anyone hears of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from autoadmin.actions import Action
from autoadmin.catalog import Catalog, Change, Counters, first_change
from autoadmin.member import LeadershipLost, Member, NotLeader
from autoadmin.performing import perform
from autoadmin.planner import Rules, plan_repairs, plan_tables
from autoadmin.plans.situation import Situation
from autoadmin.view import View
from cluster.clock import Clock
from cluster.convert import update_to_wire
from cluster.topology import Topology, UpdateRefused
from cluster.wire import node_pb2
from dynamo.errors import ApiError

REPAIR_SECONDS = 0.5
"""How often repairs are planned at the most: that looks at every partition, and nothing waits for it."""

REPAIR_PAUSES = 10
"""And never more than one part in so many of the time."""

_log = logging.getLogger(__name__)

DEFAULT_RULES = Rules()

Make = Callable[[Catalog], Change | None]
"""Computes a change of the newest catalog; None when there is nothing to change. May raise ApiError."""


class Control:
    """Holds the catalog and the view, and moves both. To `Member` it is the machine that the log drives."""

    def __init__(self, cluster_id: str, clock: Clock, rules: Rules = DEFAULT_RULES) -> None:
        self._cluster_id = cluster_id
        self._clock = clock
        self._member: Member | None = None
        self._serving = False
        self._role_listeners: list[Callable[[], None]] = []
        self._rules = rules
        self._repairs_due = 0.0
        self._catalog = Catalog(Topology(cluster_id), Counters())
        self._turn = asyncio.Lock()
        self._work = asyncio.Event()
        self._listeners: dict[Callable[[], None], None] = {}  # in order, so that a simulation repeats itself
        self._messages: dict[tuple[int, int], bytes] = {}  # differences of the newest version, by where they start
        self.view = View()

    @property
    def topology(self) -> Topology:
        """The newest catalog and topology, of version 0 before there is any."""
        return self._catalog.topology

    @property
    def catalog(self) -> Catalog:
        """The newest catalog that this member has applied."""
        return self._catalog

    async def change(self, make: Make) -> Topology:
        """Make a change durable and known; the topology after it. Not cut off half-way when the caller is cancelled.

        Raises NotLeader, with nothing done, and LeadershipLost, when the change may come about or not.
        """
        outcome = await asyncio.shield(asyncio.ensure_future(self._outcome(make)))
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def _outcome(self, make: Make) -> Topology | Exception:
        """The topology, or why there is none: that is no failure of its own once nobody waits for it."""
        try:
            return await self._change(make)
        except Exception as error:
            return error

    async def _change(self, make: Make) -> Topology:
        async with self._turn:
            member = self._member
            if member is None or not member.serving:
                raise NotLeader
            try:
                change = make(self._catalog)
            except ApiError:
                self._check_newest()
                raise
            if change is not None:
                await member.propose(change)
            else:
                self._check_newest()
            return self.topology

    def _check_newest(self) -> None:
        """A refusal, or that nothing is to be done, rests on the catalog alone. Raises NotLeader if that may be old."""
        if not self.newest:
            raise NotLeader

    # --- what the log drives ---

    def replicate_by(self, member: Member) -> None:
        """From now on changes go through `member`."""
        self._member = member

    @property
    def serving(self) -> bool:
        """Whether this member leads, and has a catalog."""
        return self._serving and self._catalog.topology.version > 0

    @property
    def newest(self) -> bool:
        """Whether no newer catalog can have been agreed on: this member leads, and its lease runs."""
        return self._member is not None and self._member.may_read

    def on_role(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever this member begins or ceases to serve, or hears of another leader."""
        self._role_listeners.append(listener)

    def apply(self, change: Change) -> bool:
        """Machine: carry out a committed change; False if it is void, as it is then on every member."""
        before = self._catalog
        try:
            after = before.after(change)
        except UpdateRefused as error:
            _log.error("a change of the catalog is void: %s", error)
            return False
        if after.topology is before.topology:
            return False
        self._catalog = after
        self._messages.clear()
        self._announce()
        return True

    def restore(self, catalog: Catalog) -> None:
        """Machine: take this catalog, whatever there was."""
        self._catalog = catalog
        self._messages.clear()
        self._announce()

    def role_changed(self) -> None:
        """Machine: another role, or another leader."""
        serving = self._member is not None and self._member.serving
        if serving != self._serving:
            self._serving = serving
            self.view = View()  # whoever leads hears it all anew
            self._work.set()  # what a crash, or the last leader, left unfinished
        for listener in list(self._role_listeners):
            listener()
        self._announce()

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

    def situation(self, draining: int = 0) -> Situation:
        """What plans rest on, now; as it would be if the node `draining` were to be emptied."""
        topology = self.topology
        if (place := topology.nodes.get(draining)) is not None:
            topology = replace(topology, nodes={**topology.nodes, draining: replace(place, draining=True)})
        return Situation.of(topology, self.view, self._clock.boottime(), self._rules)

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
        """Return once the topology fulfils `condition`. Raises NotLeader once this member does not lead."""
        changed = asyncio.Event()
        self.listen(changed.set)
        try:
            while not condition(self.topology):
                if not self._serving:
                    raise NotLeader
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
            if not self._serving:
                continue
            if not self.topology.version:  # a new cluster; to watchers version 0 tells of nothing
                await self._make(lambda catalog: None if catalog.topology.version else first_change(self._cluster_id))
            for action in self._plan():
                await self._make(lambda catalog, action=action: perform(action, catalog))  # type: ignore[misc]

    async def _make(self, make: Make) -> None:
        try:
            await self.change(make)
        except (NotLeader, LeadershipLost) as error:
            _log.info("a planned change was not made: %r", error)
        except Exception:  # the next report brings the next try
            _log.exception("a planned change could not be made")

    def _plan(self) -> list[Action]:
        now = self._clock.boottime()
        actions = plan_tables(self.topology, self.view)
        if now >= self._repairs_due:
            actions += plan_repairs(self.topology, self.view, now, self._rules)
            after = self._clock.boottime()
            self._repairs_due = after + max(REPAIR_SECONDS, REPAIR_PAUSES * (after - now))
        return actions
