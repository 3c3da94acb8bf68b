"""A storage node: its replicas, log, peers and session with auto-admin, wired together. Start here to read the package.

`start` brings back what the disk holds and begins to listen; `run` serves until `stop`. Nothing runs outside of
`run`, so that
a crash is its cancellation.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from cluster import convert
from cluster.clock import Clock
from cluster.disk import Disk
from cluster.executor import Executor
from cluster.random_source import RandomSource
from cluster.requests.executor import Executor as RequestExecutor
from cluster.settings import StorageNodeSettings
from cluster.topology import CatalogUpdate, NodePlace, Topology, UpdateRefused
from cluster.transport import Handlers, Server, Stream, Transport
from cluster.wire import common_pb2, node_pb2, storage_pb2
from replication.effects import Fetch
from replication.lease import NEVER
from replication.messages import Entry, Message
from replication.timing import Timing
from storagenode.admin_session import AdminSession
from storagenode.catalog_copy import load_catalog, save_catalog
from storagenode.elections import Elections
from storagenode.flusher import FULL_PAUSE_SECONDS, Flusher
from storagenode.hosted import HostedReplica
from storagenode.identity import Identity, start_identity
from storagenode.links import METHOD as PEER_METHOD
from storagenode.links import PeerLink
from storagenode.log.errors import LogCorrupt, LogError, LogTrimmed
from storagenode.log.node_log import FULL_ERRORS, NodeLog
from storagenode.membership_driver import MembershipDriver
from storagenode.peers import Peers
from storagenode.propagation import NodeCatalog, Propagation
from storagenode.regions import Regions
from storagenode.repair import Repairs
from storagenode.replicas import Replicas
from storagenode.reports import dropped_replicas, replica_report
from storagenode.requests import Connection, Responder
from storagenode.scrub import METHOD as SUMS_METHOD
from storagenode.scrub import Scrub
from storagenode.settling import Settling
from storagenode.snapshots.folder import SnapshotFolder
from storagenode.snapshots.installer import Installer
from storagenode.snapshots.keeper import SnapshotKeeper
from storagenode.snapshots.source import METHOD as SNAPSHOT_METHOD
from storagenode.snapshots.source import SnapshotSource
from storagenode.starting import open_log, when_there_is_room
from storagenode.storage import marks
from storagenode.storage.store import Stores
from storagenode.stream_trimming import StreamTrimming
from storagenode.ttl import TimeToLive
from storagenode.usage import Usages

STOP_SECONDS = 2.0
"""How long a clean stop waits for other replicas to take over."""
_STOP_STEP_SECONDS = 0.02
HEARD_SECONDS = 1.0
"""A node that has answered no beat for longer is not reported as heard."""
READ_AGAIN_SECONDS = 0.5
"""Between two tries to read from the log what a follower lacks."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Seams:
    """What a node is given of the world. `log_executor` has one thread, for the log alone."""

    clock: Clock
    disk: Disk
    stores: Stores
    transport: Transport
    random: RandomSource
    log_executor: Executor
    executor: Executor


class _Stopped(Exception):  # noqa: N818
    """Ends `run` after a clean stop."""


class StorageNode:
    """One node. The attributes are read by its parts, and by tests."""

    identity: Identity
    log: NodeLog
    flusher: Flusher
    peers: Peers
    replicas: Replicas
    elections: Elections
    session: AdminSession
    snapshots: SnapshotKeeper
    source: SnapshotSource
    installer: Installer
    repairs: Repairs
    scrub: Scrub

    def __init__(self, settings: StorageNodeSettings, seams: Seams) -> None:
        self.settings = settings
        self.clock = seams.clock
        self.transport = seams.transport
        self.topology = Topology()
        self.timing = Timing(
            beat=settings.beat_interval,
            lease=settings.lease,
            election_min=settings.election_timeout_min,
            election_max=settings.election_timeout_max,
        )
        self._seams = seams
        self._server: Server | None = None
        self._group: asyncio.TaskGroup | None = None
        self._stopping = asyncio.Event()
        self._catalog_unsaved = asyncio.Event()
        self._catalog_saved = asyncio.Event()
        self._catalog_saved.set()
        self._catalog_gap = False
        self._metrics_address = ""
        self.disk_free = settings.disk_reserve_bytes
        self.elections_won = 0
        self.requests = 0
        self.usages = Usages()
        self.calls = RequestExecutor(seams.transport, NodeCatalog(self), seams.clock, settings.cluster_id)
        self.propagation = Propagation(self, self.calls)
        self.settling = Settling(self, self.calls)
        self.regions = Regions(self, settings.region_retention)

    @property
    def address(self) -> str:
        """Where others call the node; empty before `start`."""
        return "" if self._server is None else self.settings.advertise or self._server.address

    # --- life ---

    async def start(self, metrics_address: str = "") -> None:
        """Bring back what the disk holds, and listen. Raises IdentityError, LogError, StoreError, OSError."""
        self._metrics_address = metrics_address
        executor = self._seams.executor
        await when_there_is_room(self._recover, self._undo_start, executor, self.sleep, self.settings.data)
        handlers = Handlers(
            unary={
                "Node/Catalog": self._answer_catalog,
                "Node/Status": self._answer_status,
                SNAPSHOT_METHOD: self._serve_snapshot,
                SUMS_METHOD: self._serve_sums,
            },
            streams={"Storage/Requests": self._serve_requests, PEER_METHOD: self._serve_peer},
        )
        self._server = await self.transport.serve(self.settings.listen, handlers)

    def _undo_start(self) -> None:
        for name in ("replicas", "log"):
            if (opened := self.__dict__.pop(name, None)) is not None:
                opened.close()

    def _recover(self) -> None:
        settings, seams = self.settings, self._seams
        disk, data = seams.disk, settings.data
        self.identity = start_identity(disk, data, settings.cluster_id, seams.random)
        self.log, recovered, stop = open_log(disk, settings, self.identity, seams.stores)
        self.topology = load_catalog(disk, data)
        random = Random(seams.random.below(1 << 62))
        self.flusher = Flusher(self.log, seams.log_executor, self.clock, self.sleep)
        self.peers = Peers(self, self.identity, self.timing, random)
        self.elections = Elections(self, self.peers, self.timing)
        self.session = AdminSession(self, self.transport, settings.auto_admins, settings.report_interval)
        folder = SnapshotFolder(disk, f"{data}/snapshots")
        folder.open()
        self.snapshots = SnapshotKeeper(self, folder, seams.stores, seams.executor, settings)
        self.source = SnapshotSource(
            self, settings.cluster_id, self.identity.node, folder, self.snapshots, seams.executor
        )
        self.installer = Installer(
            self, settings.cluster_id, self.identity.node, folder, self.snapshots, seams.executor
        )
        self.repairs = Repairs(self, folder, seams.stores, self.snapshots, self.installer, seams.executor)
        self.scrub = Scrub(self, self.identity.node, self.repairs, self.snapshots, seams.executor, settings)
        self.replicas = Replicas(
            self, self.identity.node, seams.stores, folder, seams.executor, self.peers, self.timing, random
        )
        self.replicas.before_drop = self._catalog_saved.wait
        for found in recovered.replicas.values():
            self.replicas.recover(found, self.topology)
        _log.info("node %s starts after %s with %d replicas", settings.name, stop.value, len(recovered.replicas))

    async def run(self) -> None:
        """Serve until `stop`. Raises an ExceptionGroup when something that the node rests on has failed."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for work in (
                    self.flusher.run(),
                    self.elections.run_beats(),
                    self.elections.run_deadlines(),
                    self.session.run(),
                    self._save_catalog(),
                    self._watch_disk(),
                    self._become_steady(),
                    self.propagation.run(),
                    self.propagation.run_notes(),
                    StreamTrimming(self, self.settings.stream_retention).run(),
                    TimeToLive(self, self.settings.ttl_sweep_interval).run(),
                    self.settling.run(),
                    MembershipDriver(self).run(),
                    self.regions.run(),
                    self.snapshots.run(),
                    self.scrub.run(),
                    self.scrub.run_comparing(),
                ):
                    group.create_task(work)
                self._follow(self.topology.full())
                await self._stopping.wait()
                await self._hand_over_all()
                await self.flusher.stop()
                raise _Stopped
        except* _Stopped:
            await self._close()
        finally:
            self.propagation.stop()
            self.calls.abandon()

    def stop(self) -> None:
        """Let others lead, then end `run` cleanly."""
        self._stopping.set()

    async def _hand_over_all(self) -> None:
        """Leaders are handed to replicas that are complete, so that nobody has to wait for a lease to end."""
        led = [hosted for hosted in self.replicas if hosted.replica.role == "leader"]
        for hosted in led:
            self.hand_over(hosted)
        waited = 0.0
        # Only for those: what other nodes that stop too hand to this one meanwhile would never end.
        while waited < STOP_SECONDS and any(hosted.replica.role == "leader" for hosted in led):
            await self.sleep(_STOP_STEP_SECONDS)
            waited += _STOP_STEP_SECONDS

    def hand_over(self, hosted: HostedReplica, avoiding: frozenset[int] = frozenset()) -> int:
        """Let the other replica lead that answered last; its id, 0 if there is none."""
        avoided = avoiding.union(hosted.replica.installing_peers)
        others = [other for other in hosted.others_heard(self.peers.leads) if other not in avoided]
        if hosted.replica.role != "leader" or not others:
            return 0
        hosted.perform(hosted.replica.hand_over(others[0], self.clock.boottime()))
        return others[0]

    def hand_over_to(self, hosted: HostedReplica, to: int) -> None:
        """Let replica `to` lead."""
        if hosted.replica.role == "leader":
            hosted.perform(hosted.replica.hand_over(to, self.clock.boottime()))

    def preferred_leader(self, partition: int) -> int:
        """The replica that should lead, as the catalog says; 0: any."""
        found = self.topology.partition(partition)
        return 0 if found is None else found.preferred_leader

    async def _close(self) -> None:
        if self._server is not None:
            await self._server.stop()
        await self._seams.executor.run(self._close_files)

    def _close_files(self) -> None:
        while self.log.pending():
            batch = self.log.take()
            self.log.write(batch)
            self.log.written(batch)
        self.replicas.sync()
        self.abandon()
        marks.mark_clean(self._seams.disk, self.settings.data)

    def abandon(self) -> None:
        """Close all files as they are, as a killed process would."""
        self.replicas.close()
        self.log.close()

    # --- what its parts ask of it ---

    @property
    def short_of_space(self) -> bool:
        """Whether the disk has less room than its reserve, or the log more than its bound.

        Reads, deletes and repairs go on, the rest is refused.
        """
        return (
            self.flusher.short_of_space
            or self.disk_free < self.settings.disk_reserve_bytes
            or self.log.size > self.settings.log_bytes_max
        )

    @property
    def item_collection_bytes_max(self) -> int:
        """What the items of one partition key may come to, in tables with local indexes."""
        return self.settings.item_collection_bytes_max

    def hosted(self, partition: int) -> HostedReplica | None:
        """This node's replica of the partition."""
        return self.replicas.get(partition)

    def hosted_all(self) -> Iterator[HostedReplica]:
        """Every replica on this node."""
        return iter(self.replicas)

    def send(self, hosted: HostedReplica, message: Message) -> None:
        """Bring a vote or an order to the replica that it names; it may get lost."""
        link = self.peers.link(hosted.nodes.get(message.to, 0))
        if link is not None:
            link.send(hosted, message)

    def wake(self, hosted: HostedReplica, peer: int) -> None:
        """There are entries for replica `peer`."""
        link = self.peers.link(hosted.nodes.get(peer, 0))
        if link is not None:
            link.wake(hosted, peer)

    def members_changed(self, hosted: HostedReplica) -> None:
        """Tell auto-admin, and new voters at once that they are to confirm the leader's lease."""
        self.session.changed()
        if hosted.replica.role == "leader":
            self.peers.beat()

    def committed(self, hosted: HostedReplica) -> None:
        """The next beats tell how far the leader's log is committed."""
        for member in hosted.replica.membership.members:
            node = hosted.node_of(member.replica)
            if node in self.peers.leads:
                self.peers.leads[node].commit_moved(hosted.partition_id, hosted.replica.commit)

    def role_changed(self, hosted: HostedReplica) -> None:
        """Tell auto-admin, and let no new leader wait for its first beat: strong reads need its lease."""
        self.session.changed()
        if hosted.replica.role == "leader":
            self.elections_won += hosted.replica.epoch != hosted.led_epoch
            hosted.led_epoch = hosted.replica.epoch
            self.peers.beat()

    def changed(self, hosted: HostedReplica) -> None:
        """Let the indexes of the table, and its other regions, have what is new."""
        self.propagation.wake(hosted)
        self.regions.wake(hosted)

    def report_soon(self) -> None:
        """Tell auto-admin what it waits for."""
        self.session.changed()

    def install(self, hosted: HostedReplica) -> None:
        """Get a snapshot for the replica from its leader."""
        self.installer.install(hosted)

    def damaged(self, hosted: HostedReplica, reason: str, *, hidden: bool) -> None:
        """Have the replica repaired."""
        self.repairs.damaged(hosted, reason, hidden=hidden)

    def log_damaged(self, hosted: HostedReplica, error: LogCorrupt) -> None:
        """Have the replica brought back by another one."""
        self.repairs.log_damaged(hosted, error)

    def last_heard(self, node: int) -> float:
        """When that node last answered a beat."""
        beats = self.peers.leads.get(node)
        return NEVER if beats is None else beats.last_answer_at

    def address_of(self, node: int) -> str | None:
        """Where that node listens."""
        link = self.peers.link(node)
        return None if link is None else link.address

    def watch(self, hosted: HostedReplica) -> None:
        """The replica's deadline may have changed."""
        self.elections.watch(hosted)

    def start_work(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `work` beside everything else; its failure stops the node."""
        assert self._group is not None, "nothing runs outside of run()"
        return self._group.create_task(work)

    def start_link(self, link: PeerLink) -> Callable[[], None]:
        """Run a link; call what this returns to end it."""
        task = self.start_work(link.run())
        return lambda: _cancel(task)

    def fetch(self, link: PeerLink, hosted: HostedReplica, fetch: Fetch) -> None:
        """Read old entries for a follower that is far behind."""
        self.start_work(self._fetch(link, hosted, fetch))

    async def _fetch(self, link: PeerLink, hosted: HostedReplica, fetch: Fetch) -> None:
        try:
            entries = await self.read_log(hosted.partition_id, fetch.first_position, fetch.max_bytes)
            trimmed = False
        except LogTrimmed:
            entries, trimmed = (), True  # the core knows by now, and sends the lowest that there is
        except (LogError, KeyError) as error:
            if isinstance(error, LogCorrupt):
                self.snapshots.let_go(error)
            else:
                _log.error("entries for a follower cannot be read: %s", error)
            entries, trimmed = (), False
        link.fetched(hosted, hosted.replica.fetched(fetch.peer, entries))
        if not (entries or trimmed):
            await self.sleep(READ_AGAIN_SECONDS)  # nothing else may ever wake the follower's lane
        if hosted.replica.has_for(fetch.peer):
            link.wake(hosted, fetch.peer)

    async def read_log(self, partition: int, first_position: int, max_bytes: int) -> tuple[Entry, ...]:
        """Entries from the node's log, read in a thread."""
        return await self._seams.executor.run(partial(self.log.read, partition, first_position, max_bytes))

    async def breathe(self) -> None:
        """Let others run between two slices of a scan."""
        await asyncio.sleep(0)

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)

    # --- the catalog ---

    def take_catalog(self, update: common_pb2.CatalogUpdate) -> None:
        """A change of catalog and topology, from auto-admin."""
        change = convert.update_from_wire(update)
        try:
            topology = self.topology.with_update(change)
        except UpdateRefused as error:
            _log.warning("catalog update refused: %s", error)
            self._catalog_gap = True
            self.session.changed()
            return
        self._catalog_gap = False
        if topology is self.topology:
            return
        self.topology = topology
        self._catalog_unsaved.set()
        self._catalog_saved.clear()
        self._follow(change)
        self.session.changed()

    def _follow(self, change: CatalogUpdate) -> None:
        for place in change.nodes:
            if place.removed:
                self._forget(place)
            else:
                self.peers.know(place)
        for node in change.removed_nodes:
            self.peers.forget(node)
        for partition in change.partitions:
            self.replicas.follow(partition, self.topology)
        for record in change.tables:
            for partition in self.topology.partitions_of(record.table.id):
                if (hosted := self.replicas.get(partition.id)) is not None:
                    hosted.want_schema(record.table)

    def _forget(self, place: NodePlace) -> None:
        """A node that was removed from the cluster."""
        self.peers.forget(place.id)
        if place.id == self.identity.node:
            _log.error(
                "node %s was removed from the cluster: stop it; with an empty data directory it joins as a new node",
                place.name,
            )

    async def _save_catalog(self) -> None:
        while True:
            await self._catalog_unsaved.wait()
            self._catalog_unsaved.clear()
            save = partial(save_catalog, self._seams.disk, self.settings.data, self.topology)
            try:
                await self._seams.executor.run(save)
            except OSError as error:
                if error.errno not in FULL_ERRORS:
                    raise
                # The copy of before will do meanwhile: what the node holds stands in its log.
                _log.warning("the catalog's copy cannot be replaced, as the disk is full")
                self._catalog_unsaved.set()
                await self.sleep(FULL_PAUSE_SECONDS)
            if not self._catalog_unsaved.is_set():
                self._catalog_saved.set()

    async def _become_steady(self) -> None:
        await self.sleep(marks.STEADY_SECONDS)
        with suppress(OSError):  # a full disk: the next life may not trust its stores, and makes them anew
            await self._seams.executor.run(partial(marks.mark_steady, self._seams.disk, self.settings.data))

    async def _watch_disk(self) -> None:
        while True:
            self.disk_free = self._seams.disk.free(self.settings.data)
            await self.sleep(self.settings.report_interval)

    def report(self) -> node_pb2.Report:
        """The node's state as it is now."""
        return node_pb2.Report(
            cluster_id=self.identity.cluster_id,
            node=convert.node_to_wire(self._place()),
            incarnation=self.identity.incarnation,
            catalog_epoch=0 if self._catalog_gap else self.topology.epoch,
            catalog_version=0 if self._catalog_gap else self.topology.version,
            pid=os.getpid(),
            disk_free=self.disk_free,
            replicas=[replica_report(hosted, self.propagation.filled(hosted)) for hosted in self.replicas],
            dropped_replicas=dropped_replicas(self.topology, self.identity.node, self.replicas.holds),
            heard_nodes=self._heard(),
        )

    def _heard(self) -> list[int]:
        """Other nodes that have lately answered a beat."""
        since = self.clock.boottime() - HEARD_SECONDS
        return sorted(node for node, beats in self.peers.leads.items() if beats.last_answer_at > since)

    def _place(self) -> NodePlace:
        settings = self.settings
        return NodePlace(
            id=self.identity.node,
            name=settings.name,
            region=settings.region,
            zone=settings.zone,
            address=self.address,
            metrics=self._metrics_address,
        )

    # --- what it serves ---

    async def _answer_catalog(self, message: bytes) -> bytes:
        request = node_pb2.CatalogRequest.FromString(message)
        if request.cluster_id != self.identity.cluster_id:
            return b""
        return convert.update_to_wire(self.topology.full()).SerializeToString()

    async def _answer_status(self, message: bytes) -> bytes:
        request = node_pb2.CatalogRequest.FromString(message)
        return self.report().SerializeToString() if request.cluster_id == self.identity.cluster_id else b""

    async def _serve_snapshot(self, message: bytes) -> bytes:
        return await self.source.serve(message)

    async def _serve_sums(self, message: bytes) -> bytes:
        return await self.scrub.serve(message)

    async def _serve_peer(self, stream: Stream) -> None:
        await self.peers.serve(stream)

    async def _serve_requests(self, stream: Stream) -> None:
        await Connection(stream, self.clock, self.settings.slow_request_seconds).serve(self._take_requests)

    def _take_requests(self, batch: storage_pb2.RequestBatch, connection: Connection) -> None:
        if batch.cluster_id != self.identity.cluster_id:
            for request in batch.requests:
                Responder(connection, request).refuse(_WRONG_CLUSTER)
            return
        self.requests += len(batch.requests)
        gathered: dict[HostedReplica, None] = {}
        for request in batch.requests:
            responder = Responder(connection, request)
            hosted = self.replicas.get(request.partition)
            if hosted is None:
                responder.refuse(_NO_SUCH_PARTITION)
            elif hosted.handle(request, responder):
                gathered[hosted] = None
        for hosted in gathered:
            hosted.propose_gathered()


_WRONG_CLUSTER = common_pb2.Refusal(reason=common_pb2.Refusal.WRONG_CLUSTER)
_NO_SUCH_PARTITION = common_pb2.Refusal(reason=common_pb2.Refusal.NO_SUCH_PARTITION)


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
