"""Brings a replica back that its leader's log cannot help: fetches a snapshot, and puts its state in place.

What is fetched becomes this node's own snapshot first. Then the log says that it covers what came before; only then is
the store replaced. So a crash at any moment leaves what the next start needs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from typing import Any, Final, Protocol

from cluster.executor import Executor
from cluster.transport import Transport, TransportError
from cluster.wire import replication_pb2
from replication.membership import Membership
from storagenode.hosted import HostedReplica
from storagenode.snapshots.folder import Snapshot, SnapshotCorrupt, SnapshotFolder, SnapshotWriter
from storagenode.snapshots.keeper import SnapshotKeeper
from storagenode.snapshots.manifest import Manifest, decode_manifest
from storagenode.snapshots.source import METHOD
from storagenode.snapshots.walking import RowsDamaged
from storagenode.storage.store import Restoration, StoreError

CALL_SECONDS: Final = 5.0
AGAIN_SECONDS: Final = 0.5
"""Before the next call, when the source has nothing yet or cannot be reached."""
FETCHES_MAX: Final = 4
SILENT_TRIES_MAX: Final = 40
"""So often in a row a certain replica's node may have nothing yet, or not answer, before it is given up."""
RETRY_SECONDS: Final = 5.0
"""After this node failed, as on a full disk."""

_Reply = replication_pb2.SnapshotReply
_log = logging.getLogger(__name__)


class InstallerHost(Protocol):
    """What the installer needs of its node."""

    @property
    def transport(self) -> Transport:
        """The node's network."""
        ...

    def address_of(self, node: int) -> str | None:
        """Where that node listens."""
        ...

    def start_work(self, work: Coroutine[Any, Any, None]) -> object:
        """Run `work` beside everything else; its failure stops the node."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        ...


class _Incoming:
    """A snapshot that is being fetched."""

    def __init__(self, manifest: Manifest, encoded: bytes, writer: SnapshotWriter) -> None:
        self.manifest = manifest
        self.encoded = encoded
        self.writer = writer

    @property
    def whole(self) -> bool:
        return self.writer.chunks == self.manifest.chunks


class Installer:
    """One fetch per partition, a few at a time per node."""

    def __init__(
        self,
        host: InstallerHost,
        cluster_id: str,
        node: int,
        folder: SnapshotFolder,
        keeper: SnapshotKeeper,
        executor: Executor,
    ) -> None:
        self._host = host
        self._cluster_id = cluster_id
        self._node = node
        self._folder = folder
        self._keeper = keeper
        self._executor = executor
        self._slots = asyncio.Semaphore(FETCHES_MAX)
        self._busy: set[int] = set()
        self._sources: dict[int, int] = {}  # partition → the replica that mends it, instead of the leader
        self._refused: set[int] = set()  # partitions whose source turned out to have nothing whole
        self.installed = 0
        self.fetched_bytes = 0

    def install(self, hosted: HostedReplica) -> None:
        """This replica needs a snapshot; nothing to do if it is being seen to."""
        if hosted.partition_id not in self._busy:
            self._busy.add(hosted.partition_id)
            _log.warning("partition %d needs a snapshot from its leader", hosted.partition_id)
            self._host.start_work(self._work(hosted))

    async def mend(self, hosted: HostedReplica, source: int) -> bool:
        """Replace the state of a damaged replica, which wants one, by that of another replica, whoever leads; whether
        that replica may hold what it takes. `hosted.damage` tells whether it is done."""
        partition = hosted.partition_id
        while partition in self._busy:
            await self._host.sleep(AGAIN_SECONDS)
        self._busy.add(partition)
        self._sources[partition] = source
        self._refused.discard(partition)
        try:
            await self._work(hosted)
        finally:
            del self._sources[partition]
        return partition not in self._refused

    async def _work(self, hosted: HostedReplica) -> None:
        try:
            async with self._slots:
                await self._bring_back(hosted)
        finally:
            self._busy.discard(hosted.partition_id)

    async def _bring_back(self, hosted: HostedReplica) -> None:
        try:
            snapshot = await self._fetch(hosted)
            if snapshot is not None:
                await self._put_in_place(hosted, snapshot)
        except OSError as error:
            _log.error("the snapshot of partition %d could not be kept: %s", hosted.partition_id, error)
            await self._host.sleep(RETRY_SECONDS)

    # --- fetching ---

    async def _fetch(self, hosted: HostedReplica) -> Snapshot | None:
        """A durable snapshot that is of use; None if none is needed any more, or nobody leads."""
        incoming: _Incoming | None = None
        silent = 0
        try:
            while self._source_of(hosted) is not None:
                reply = await self._call(hosted, incoming)
                if reply is None or reply.state != _Reply.CHUNK:
                    silent += 1
                    if self._gives_up(hosted, reply, silent):
                        break
                    await self._host.sleep(AGAIN_SECONDS)
                    continue
                silent = 0
                if reply.manifest:
                    incoming = await self._begin(hosted, reply.manifest, incoming)
                if incoming is not None:
                    await self._take(incoming, reply)
                    if incoming.whole:
                        made = await self._executor.run(partial(incoming.writer.finish, incoming.manifest))
                        return self._folder.add(hosted.replica.replica, made)
            if incoming is not None:
                await self._executor.run(incoming.writer.abort)
        finally:
            if incoming is not None:
                incoming.writer.close()
        return None

    def _gives_up(self, hosted: HostedReplica, reply: _Reply | None, silent: int) -> bool:
        """Whether a certain replica, asked instead of the leader, is of no help."""
        if hosted.partition_id not in self._sources:
            return False
        if reply is not None and reply.state == _Reply.NONE:
            self._refused.add(hosted.partition_id)
            return True
        return silent > SILENT_TRIES_MAX

    def _source_of(self, hosted: HostedReplica) -> tuple[int, str] | None:
        """The leader's node and address, or those of the replica that mends this one, if a snapshot from there is still
        wanted."""
        replica = hosted.replica
        node = hosted.nodes.get(self._sources.get(hosted.partition_id, replica.leader), 0)
        address = self._host.address_of(node)
        if hosted.dropped or replica.wanted_snapshot is None or address is None:
            return None
        return node, address

    async def _call(self, hosted: HostedReplica, incoming: _Incoming | None) -> _Reply | None:
        source = self._source_of(hosted)
        assert source is not None
        request = replication_pb2.SnapshotRequest(
            cluster_id=self._cluster_id,
            from_node=self._node,
            to_node=source[0],
            partition=hosted.partition_id,
            position=hosted.replica.wanted_snapshot or 0,
            manifest=b"" if incoming is None else incoming.encoded,
            chunk=0 if incoming is None else incoming.writer.chunks,
        )
        try:
            answer = await self._host.transport.call(source[1], METHOD, request.SerializeToString(), CALL_SECONDS)
        except TransportError as error:
            _log.warning("a snapshot's next chunk did not come: %s", error)
            return None
        return _Reply.FromString(answer)

    async def _begin(self, hosted: HostedReplica, encoded: bytes, before: _Incoming | None) -> _Incoming | None:
        """The source has another snapshot than the one that was begun: begin anew."""
        if before is not None:
            await self._executor.run(before.writer.abort)
        manifest, wanted = decode_manifest(encoded), hosted.replica.wanted_snapshot
        if manifest is None or wanted is None or manifest.position < wanted:
            return None
        if manifest.partition != hosted.partition_id:
            return None
        writer = await self._executor.run(
            partial(self._folder.begin, hosted.partition_id, hosted.replica.replica, manifest.position)
        )
        return _Incoming(manifest, encoded, writer)

    async def _take(self, incoming: _Incoming, reply: _Reply) -> None:
        """The next chunk, if it is the one and unharmed; else it is asked for again."""
        number = incoming.writer.chunks
        if reply.chunk != number or not incoming.manifest.is_chunk(number, reply.data):
            await self._host.sleep(AGAIN_SECONDS)
            return
        await self._executor.run(partial(incoming.writer.write, reply.data))
        self.fetched_bytes += len(reply.data)
        await self._keeper.pace.take(len(reply.data))

    # --- putting in place ---

    async def _put_in_place(self, hosted: HostedReplica, snapshot: Snapshot) -> None:
        async with self._keeper.bulk:
            restoration = await self._restored(hosted, snapshot)
            if restoration is None:
                await self._executor.run(partial(self._folder.remove, snapshot))
                return
            manifest = snapshot.manifest
            membership = Membership.decode(manifest.membership)
            hosted.perform(hosted.replica.install(snapshot.position, manifest.epoch, membership))
            try:
                await self._keeper.flushed()
            except BaseException:
                restoration.discard()
                raise
            if hosted.dropped:
                await self._executor.run(restoration.discard)
                return
            restoration.place(hosted.store)
            hosted.state_replaced()
            hosted.perform(hosted.replica.installed())
            self.installed += 1
            await self._executor.run(partial(self._folder.remove_older, snapshot))
        _log.info("partition %d is at position %d by a snapshot", hosted.partition_id, snapshot.position)

    async def _restored(self, hosted: HostedReplica, snapshot: Snapshot) -> Restoration | None:
        """A store made of the snapshot, whole and of use; None if there is none. The replica knows nothing of it yet:
        what is damaged must not become its state."""
        while _is_of_use(hosted, snapshot):
            try:
                restoration, _ = await self._keeper.restore(hosted, snapshot)
            except (SnapshotCorrupt, RowsDamaged) as error:
                _log.error("the snapshot of partition %d is of no use: %s", hosted.partition_id, error)
                if isinstance(error, RowsDamaged):
                    self._refused.add(hosted.partition_id)
                return None
            except (OSError, StoreError) as error:
                _log.error("the state of partition %d could not be put in place: %s", hosted.partition_id, error)
                await self._host.sleep(RETRY_SECONDS)
                continue
            if _is_of_use(hosted, snapshot):
                return restoration
            await self._executor.run(restoration.discard)
        return None


def _is_of_use(hosted: HostedReplica, snapshot: Snapshot) -> bool:
    wanted = hosted.replica.wanted_snapshot
    return not hosted.dropped and wanted is not None and snapshot.position >= wanted
