"""Gives a follower the leader's snapshot, chunk by chunk, whenever it asks for the next one."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from cluster.clock import Clock
from cluster.executor import Executor
from cluster.wire import replication_pb2
from storagenode.hosted import HostedReplica
from storagenode.snapshots.folder import Snapshot, SnapshotCorrupt, SnapshotFolder, SnapshotReader
from storagenode.snapshots.keeper import SnapshotKeeper
from storagenode.snapshots.manifest import encode_manifest

METHOD: Final = "Peer/Snapshot"
IDLE_SECONDS: Final = 60.0
"""What nobody asked for, for so long, is closed, and the log that follows it need not stay for it."""
IDLE_FULL_SECONDS: Final = 10.0
"""The same while the log is so large that writes may soon be refused."""

_Reply = replication_pb2.SnapshotReply
_log = logging.getLogger(__name__)


class SourceHost(Protocol):
    """What the source needs of its node."""

    @property
    def clock(self) -> Clock:
        """The node's clock."""
        ...

    def hosted(self, partition: int) -> HostedReplica | None:
        """This node's replica of the partition."""
        ...


@dataclass(slots=True)
class _Sending:
    reader: SnapshotReader
    manifest: bytes
    asked_at: float


class SnapshotSource:
    """Answers "Peer/Snapshot" calls."""

    def __init__(
        self,
        host: SourceHost,
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
        self._sending: dict[int, _Sending] = {}
        keeper.close_idle = self._close_idle
        self.sent_bytes = 0

    async def serve(self, message: bytes) -> bytes:
        """One call."""
        request = replication_pb2.SnapshotRequest.FromString(message)
        self._close_idle()
        hosted = self._host.hosted(request.partition)
        meant = request.cluster_id == self._cluster_id and request.to_node == self._node
        if hosted is None or not meant or hosted.damage.reason or _waits_for_state(hosted):
            return _Reply(state=_Reply.NONE).SerializeToString()
        reply = await self._answer(hosted, request)
        if reply.data:
            self.sent_bytes += len(reply.data)
            await self._keeper.pace.take(len(reply.data))
        return reply.SerializeToString()

    async def _answer(self, hosted: HostedReplica, request: replication_pb2.SnapshotRequest) -> _Reply:
        sending = self._sending.get(request.partition)
        if sending is None or sending.manifest != request.manifest:
            sending = await self._begin(hosted, request.position)
            if sending is None:
                self._keeper.want(hosted)
                return _Reply(state=_Reply.PREPARING)
        sending.asked_at = self._host.clock.boottime()
        anew = sending.manifest != request.manifest
        chunk = 0 if anew else request.chunk
        if chunk >= sending.reader.snapshot.manifest.chunks:
            return _Reply(state=_Reply.NONE)
        try:
            data = await self._executor.run(partial(sending.reader.chunk, chunk))
        except (SnapshotCorrupt, OSError) as error:
            _log.error("a snapshot is made anew for a follower: %s", error)
            self._close(request.partition)
            await self._keeper.give_up(sending.reader.snapshot)
            self._keeper.want(hosted)
            return _Reply(state=_Reply.PREPARING)
        return _Reply(state=_Reply.CHUNK, manifest=sending.manifest if anew else b"", chunk=chunk, data=data)

    async def _begin(self, hosted: HostedReplica, position: int) -> _Sending | None:
        """The newest snapshot, if it covers `position` and can be opened."""
        newest: Snapshot | None = self._folder.newest(hosted.partition_id, hosted.replica.replica)
        if newest is None or newest.position < position:
            return None
        try:
            reader = await self._executor.run(partial(self._folder.read, newest))
        except FileNotFoundError:
            return None  # another one has taken its place, or will
        except OSError as error:
            _log.error("a snapshot cannot be opened for a follower: %s", error)
            return None
        self._close(hosted.partition_id)
        sending = _Sending(reader, encode_manifest(newest.manifest), self._host.clock.boottime())
        self._sending[hosted.partition_id] = sending
        self._keeper.sending[hosted.partition_id] = newest.position
        return sending

    def _close_idle(self) -> None:
        now = self._host.clock.boottime()
        patience = IDLE_FULL_SECONDS if self._keeper.hurries() else IDLE_SECONDS
        for partition in [p for p, sending in self._sending.items() if now - sending.asked_at > patience]:
            self._close(partition)

    def _close(self, partition: int) -> None:
        self._keeper.sending.pop(partition, None)
        if (sending := self._sending.pop(partition, None)) is not None:
            with contextlib.suppress(OSError):
                sending.reader.close()


def _waits_for_state(hosted: HostedReplica) -> bool:
    """Whether it has no state to give, or needs another's itself: two that waited for each other would wait long."""
    return hosted.replica.lacks_state or hosted.replica.wanted_snapshot is not None
