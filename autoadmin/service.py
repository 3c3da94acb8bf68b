"""Auto-admin on the network: nodes' sessions, routers' watches, and the calls that change tables.

Only the member that leads serves these; the others say so, and who does, as far as they know.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from autoadmin.adoption import Adoption
from autoadmin.catalog import with_node
from autoadmin.executor import Control
from autoadmin.follower import Follower
from autoadmin.gathering import Gathering
from autoadmin.member import LeadershipLost, Member, NotLeader
from autoadmin.nodes import Nodes
from autoadmin.peers import METHOD as MEMBER_METHOD
from autoadmin.planner import Rules
from autoadmin.state import StateStore
from autoadmin.summary import Summary, summary
from autoadmin.tables import Tables
from autoadmin.users import Users
from cluster.clock import Clock
from cluster.convert import node_from_wire, update_to_wire
from cluster.executor import Executor
from cluster.random_source import RandomSource, SystemRandom
from cluster.settings import AutoAdminSettings
from cluster.topology import Topology
from cluster.transport import Handlers, Server, Stream, StreamHandler, Transport, TransportError, UnaryHandler
from cluster.wire import admin_pb2, common_pb2, node_pb2

DECIDE_SECONDS = 1.0
"""How long a caller waits while no leader is known, before it is sent on."""
STRANGERS_MAX = 1_000  # peers of other clusters that are told of in the log

_log = logging.getLogger(__name__)


class AutoAdmin:
    """The service. It decides where everything lives; nothing that reads or writes items waits for it."""

    def __init__(
        self,
        settings: AutoAdminSettings,
        store: StateStore,
        transport: Transport,
        executor: Executor,
        clock: Clock,
        random: RandomSource | None = None,
    ) -> None:
        self._settings = settings
        self._transport = transport
        rules = Rules(settings.replace_after, settings.rebuilds_at_once, settings.leaders)
        self._control = Control(settings.cluster_id, clock, rules)
        self._member = Member(settings, store, transport, executor, clock, random or SystemRandom(), self._control)
        self._gathering = Gathering(self._member, self._control)
        self._control.replicate_by(self._member)
        self._control.on_role(self._role_changed)
        self._adoption = Adoption(self._control, transport, clock)
        self._tables = Tables(self._control, self._adoption, settings)
        self._users = Users(self._control, self._adoption, settings.cluster_id)
        self._nodes = Nodes(self._control, self._adoption, settings.cluster_id)
        self._sessions: dict[int, Stream] = {}  # by node; the newest counts
        self._routers: dict[Stream, common_pb2.RouterRecord] = {}
        self._streams: dict[Stream, None] = {}
        self._decided = asyncio.Event()
        self._control.listen(self._decided.set)
        self._strangers: set[tuple[str, str]] = set()
        self._told_removed: set[int] = set()
        self._server: Server | None = None
        self._planning: asyncio.Task[None] | None = None

    @property
    def region(self) -> str:
        """The region whose cluster it looks after."""
        return self._settings.region

    @property
    def address(self) -> str:
        """Where it listens; empty before `start`."""
        return self._server.address if self._server else ""

    @property
    def topology(self) -> Topology:
        """Catalog and topology as they are now. Only after `start`."""
        return self._control.topology

    @property
    def live_nodes(self) -> int:
        """Storage nodes that report."""
        return len(self._control.live())

    @property
    def summary(self) -> Summary:
        """How partitions and nodes fare."""
        return summary(self._control.situation())

    @property
    def routers(self) -> list[common_pb2.RouterRecord]:
        """Routers that watch the catalog."""
        return list(self._routers.values())

    @property
    def member(self) -> admin_pb2.MemberRecord:
        """This member as it sees itself."""
        return self._gathering.status()

    @property
    def serving(self) -> bool:
        """Whether this member leads, and has a catalog."""
        return self._control.serving

    @property
    def follows(self) -> bool:
        """Whether another member leads that this one follows."""
        return self._member.core is not None and self._member.core.leader not in (0, self._member.record.replica)

    async def start(self) -> None:
        """Load the state and serve; where this is the only member, return once it leads.

        Raises StateError, and OSError when the port is taken.
        """
        await self._gathering.load()
        self._server = await self._transport.serve(self._settings.listen, self._handlers())
        self._planning = asyncio.create_task(self._control.run())
        self._member.start()
        self._gathering.start()
        if not self._settings.others:
            await self._until(lambda: self.serving)

    async def run(self) -> None:
        """Return never; raises what this member cannot go on with."""
        await asyncio.shield(self._member.failure)

    async def stop(self) -> None:
        """Let another member lead, end every stream and stop listening."""
        if self._planning is not None:
            self._planning.cancel()
        await self._member.stop()
        if self._server is not None:
            await self._server.stop()

    # --- who leads ---

    def _role_changed(self) -> None:
        if not self._control.serving:
            self._adoption.forget()
            for stream in list(self._streams):
                stream.close()

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._decided.clear()
            await self._decided.wait()

    async def _leads(self) -> bool:
        """Whether this member leads; waits a little while that is not decided."""
        try:
            async with asyncio.timeout(DECIDE_SECONDS):
                await self._until(lambda: self.serving or bool(self._member.leader_address))
        except TimeoutError:
            pass
        return self.serving

    def _elsewhere(self) -> common_pb2.CatalogUpdate:
        """What is said in place of the catalog by a member that does not lead."""
        return common_pb2.CatalogUpdate(
            cluster_id=self._settings.cluster_id, not_leader=True, leader=self._member.leader_address
        )

    def _handlers(self) -> Handlers:
        return Handlers(
            unary={
                "Admin/CreateTable": partial(self._changed, self._tables.create),
                "Admin/UpdateTable": partial(self._changed, self._tables.update),
                "Admin/DeleteTable": partial(self._changed, self._tables.delete),
                "Admin/PutUser": partial(self._changed, self._users.put),
                "Admin/DeleteUser": partial(self._changed, self._users.delete),
                "Admin/Nodes": partial(self._changed, self._nodes.answer),
                "Admin/Refresh": self._refresh,
                "Admin/Status": self._status,
                MEMBER_METHOD: self._gathering.answer,
            },
            streams={
                "Node/Session": partial(self._served, self._session),
                "Admin/Watch": partial(self._served, self._watch),
            },
        )

    async def _changed(self, change: UnaryHandler, message: bytes) -> bytes:
        """A call that changes a table, or the word that another member leads."""
        if await self._leads():
            try:
                return await change(message)
            except NotLeader:
                _log.info("leadership was lost before a table was changed")
            except LeadershipLost:
                lost = admin_pb2.TableReply(not_leader=True, in_doubt=True, leader=self._member.leader_address)
                return lost.SerializeToString()
        return admin_pb2.TableReply(not_leader=True, leader=self._member.leader_address).SerializeToString()

    async def _served(self, serve: StreamHandler, stream: Stream) -> None:
        """Serve a stream for as long as this member leads; else say so, and end it."""
        if await self._leads():
            self._streams[stream] = None
            try:
                await serve(stream)
            except (NotLeader, LeadershipLost):
                _log.debug("a stream ends, as this member leads no longer")
            finally:
                self._streams.pop(stream, None)
        else:
            with suppress(TransportError):
                await stream.send(self._elsewhere().SerializeToString())

    # --- storage nodes ---

    async def _session(self, stream: Stream) -> None:
        """A node's session: reports come up, the whole catalog and then every change go down."""
        message = await stream.receive()
        if message is None:
            return
        first = node_pb2.Report.FromString(message)
        if self._is_stranger(first.cluster_id, f"storage node {first.node.name} at {first.node.address}"):
            return
        node = first.node.node
        if node in self._control.topology.former_nodes:
            await self._tell_removed(first, stream)
            return
        if (older := self._sessions.get(node)) is not None:
            older.close()
        self._sessions[node] = stream
        follower = Follower(self._control, stream, 0, 0)
        pushing: asyncio.Task[None] | None = None
        try:
            await self._take_report(first)
            _log.info("storage node %s (%s) is here", first.node.name, first.node.zone, extra={"node": node})
            pushing = asyncio.create_task(follower.run())
            while (message := await stream.receive()) is not None:
                report = node_pb2.Report.FromString(message)
                if self._sessions.get(node) is stream:
                    await self._take_report(report)
                if report.catalog_version == 0:  # it could not take what was sent: the whole once more
                    follower.restart(0, 0)
        finally:
            if pushing is not None:
                pushing.cancel()
            if self._sessions.get(node) is stream:
                del self._sessions[node]
                self._control.lost(node)
                _log.info("storage node %s is gone", first.node.name, extra={"node": node})

    async def _tell_removed(self, report: node_pb2.Report, stream: Stream) -> None:
        """A node that was removed hears of it, and is not heard, for as long as it holds the stream."""
        if report.node.node not in self._told_removed:
            self._told_removed.add(report.node.node)
            _log.warning("storage node %s is refused: it was removed from the cluster", report.node.name)
        with suppress(TransportError):
            await stream.send(self._control.difference(0, 0))
            while await stream.receive() is not None:
                pass

    async def _take_report(self, report: node_pb2.Report) -> None:
        self._control.heard(report)
        await self._adoption.consider()
        if not self._adoption.needed:
            place = node_from_wire(report.node)
            await self._control.change(lambda catalog: with_node(catalog, place))

    # --- routers ---

    async def _watch(self, stream: Stream) -> None:
        """A watch: what the watcher lacks, then every change. It may say again what it holds at any time."""
        follower: Follower | None = None
        pushing: asyncio.Task[None] | None = None
        try:
            while (message := await stream.receive()) is not None:
                request = admin_pb2.WatchRequest.FromString(message)
                if self._is_stranger(request.cluster_id, f"watcher {request.router.name}"):
                    return
                if request.HasField("router"):
                    self._routers[stream] = request.router
                if follower is None:
                    follower = Follower(self._control, stream, request.epoch, request.version)
                    pushing = asyncio.create_task(self._tell(follower))
                else:
                    follower.restart(request.epoch, request.version)
        finally:
            if pushing is not None:
                pushing.cancel()
            self._routers.pop(stream, None)

    async def _tell(self, follower: Follower) -> None:
        """Push the catalog to a router, but not one that names no storage node: if this auto-admin has lost its disk, a
        router that took its empty catalog would deny that there are tables, until a copy is adopted."""
        with suppress(NotLeader):
            await self._control.until(lambda topology: bool(topology.nodes))
            await follower.run()

    async def _refresh(self, message: bytes) -> bytes:
        request = admin_pb2.WatchRequest.FromString(message)
        if self._is_stranger(request.cluster_id, "a caller of Admin/Refresh"):
            return common_pb2.CatalogUpdate(cluster_id=self._settings.cluster_id).SerializeToString()
        if not await self._leads() or not self._member.may_read:
            return self._elsewhere().SerializeToString()
        return self._control.difference(request.epoch, request.version)

    async def _status(self, message: bytes) -> bytes:
        request = admin_pb2.StatusRequest.FromString(message)
        if self._is_stranger(request.cluster_id, "a caller of Admin/Status"):
            return admin_pb2.StatusReply().SerializeToString()
        live = self._control.live()
        return admin_pb2.StatusReply(
            catalog=update_to_wire(self._control.topology.full()),
            nodes=[seen.report for node, seen in sorted(self._control.view.nodes.items()) if node in live],
            routers=self.routers,
            pid=os.getpid(),
            member=self.member,
        ).SerializeToString()

    def _is_stranger(self, cluster_id: str, who: str) -> bool:
        """Whether a peer is of another cluster; then the log says so, once for each, as they try again for ever."""
        own = self._settings.cluster_id
        if cluster_id == own:
            return False
        if (cluster_id, who) not in self._strangers and len(self._strangers) < STRANGERS_MAX:
            self._strangers.add((cluster_id, who))
            _log.error("%s is refused: it is of cluster %s, and this auto-admin of %s", who, cluster_id, own)
        return True
