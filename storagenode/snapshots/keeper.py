"""Takes snapshots of a node's replicas, one at a time, and trims the log by them (design §6).

A snapshot, in order: the store is synced; a compact copy of it as it is at one moment is written, chunk by chunk, each
synced, at the node's pace; its manifest makes it one; the log learns of it; only then does the one before go.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, Protocol

from cluster.clock import Clock
from cluster.executor import Executor
from cluster.settings import StorageNodeSettings
from replication.messages import Entry
from storagenode.flusher import Flusher
from storagenode.hosted import HostedReplica
from storagenode.log.errors import LogCorrupt
from storagenode.log.node_log import NodeLog
from storagenode.partition import Partition
from storagenode.snapshots.folder import Snapshot, SnapshotCorrupt, SnapshotFolder, SnapshotWriter
from storagenode.snapshots.manifest import CHUNK_BYTES, Manifest
from storagenode.snapshots.pace import Busy, Pace
from storagenode.snapshots.trimming import (
    KEEP_FOR_ALL,
    KEEP_FOR_LIVE,
    SegmentAges,
    first_needed,
    outgrown,
    pinning,
)
from storagenode.snapshots.walking import require_whole
from storagenode.storage.store import Restoration, Store, StoreBroken, StoreCopy, StoreError, Stores

CHECK_SECONDS: Final = 0.2
IDLE_CHECKS: Final = 25
"""Without a new segment only every so many checks look at the replicas."""
ASK_SECONDS: Final = 1.0
"""How often followers that needed a snapshot are asked whether they have it."""
SYNC_SECONDS: Final = 3600.0
LIVE_SECONDS: Final = 5.0
"""A node that answered a beat within this time is live."""
RETRY_SECONDS: Final = 30.0
"""After a snapshot failed, as on a full disk."""
RETRY_WANTED_SECONDS: Final = 2.0
"""So soon if a follower waits for it."""
COMPACT_BYTES: Final = 16 << 20
"""Less than this is not worth a new file."""
CATCH_UP_ROUNDS: Final = 1000
CATCH_UP_BYTES: Final = 1 << 20

_log = logging.getLogger(__name__)


class KeeperHost(Protocol):
    """What the keeper needs of its node."""

    clock: Clock
    log: NodeLog
    flusher: Flusher

    def hosted(self, partition: int) -> HostedReplica | None:
        """This node's replica of the partition."""
        ...

    def hosted_all(self) -> Iterator[HostedReplica]:
        """Every replica on this node."""
        ...

    def last_heard(self, node: int) -> float:
        """When that node last answered a beat."""
        ...

    async def read_log(self, partition: int, first_position: int, max_bytes: int) -> tuple[Entry, ...]:
        """Entries from the node's log, read in a thread."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        ...


class SnapshotKeeper:
    """`bulk` is held by whoever copies or replaces a store: one at a time. `pace` is everybody's."""

    def __init__(
        self,
        host: KeeperHost,
        folder: SnapshotFolder,
        stores: Stores,
        executor: Executor,
        settings: StorageNodeSettings,
    ) -> None:
        self.bulk = asyncio.Lock()
        busy = Busy(host.clock, lambda: host.flusher.flushes)
        self.pace = Pace(settings.snapshot_bytes_per_second, host.clock, host.sleep, self.hurries, busy)
        self.taken = 0
        self.last_taken_at: float | None = None
        self.compacted = 0
        self.sending: dict[int, int] = {}
        """Partition → position of its snapshot that a follower is fetching; kept by `source.py`."""
        self.close_idle: Callable[[], None] = _nothing
        """Takes out of `sending` what nobody has asked for lately; set by `source.py`."""
        self._host = host
        self._folder = folder
        self._stores = stores
        self._executor = executor
        self._settings = settings
        self._ages = SegmentAges()
        self._wanted: dict[int, None] = {}
        self._logged_at: dict[int, int] = {}
        self._not_before: dict[int, float] = {}
        self._synced_at: dict[int, float] = {}
        self._seen_segment = 0
        self._logged_held: dict[int, int] = {}
        self._damaged_segment = 0
        self.damaged_segments = 0
        self._asked_at = float("-inf")

    # --- when ---

    def want(self, hosted: HostedReplica) -> None:
        """Somebody needs a newer snapshot of this replica than there is."""
        self._wanted[hosted.partition_id] = None

    def let_go(self, error: LogCorrupt) -> None:
        """A segment of the log is damaged: snapshots take its place, so that it can go, and nobody waits for it."""
        if error.segment > self._damaged_segment:
            self._damaged_segment = error.segment
            self.damaged_segments += 1
            _log.error(
                "log segment %016x is damaged at byte %d (%s): it goes as soon as snapshots stand for it",
                error.segment,
                error.offset,
                error.reason,
            )

    def logged_since(self, partition: int) -> int:
        """Bytes that were written to the log for this partition since its last snapshot, or since the start."""
        return self._host.log.appended_bytes(partition) - self._logged_at.get(partition, 0)

    async def run(self) -> None:
        """Look after snapshots and log until cancelled. Raises StoreBroken when a store cannot be synced."""
        checks = 0
        while True:
            await self._host.sleep(CHECK_SECONDS)
            self._ask_installing()
            checks += 1
            if self._wanted or self._host.log.current_segment != self._seen_segment or checks >= IDLE_CHECKS:
                checks, self._seen_segment = 0, self._host.log.current_segment
                await self.look()

    async def look(self) -> None:
        """Take every snapshot that is due, and trim."""
        log = self._host.log
        self.close_idle()
        self._ages.look(log.oldest_segment, log.current_segment, self._host.clock.boottime())
        self._let_log_replicas_go()
        self.trim()
        while (hosted := self._due()) is not None:
            await self.take(hosted)
            self.trim()
        await self._sync_one()

    def _due(self) -> HostedReplica | None:
        now, log = self._host.clock.boottime(), self._host.log
        ready = [
            hosted
            for hosted in self._host.hosted_all()
            if _has_state(hosted) and self._may_try(hosted.partition_id, now)
        ]
        for hosted in ready:
            logged = self.logged_since(hosted.partition_id)
            if hosted.partition_id in self._wanted or outgrown(hosted, logged, self._settings.snapshot_log_bytes):
                return hosted
            if log.oldest_segment <= self._damaged_segment and self._rests_on_damage(hosted):
                return hosted
        if self._fullness() > KEEP_FOR_ALL and (pins := pinning(ready, log)):
            return pins[0]
        return None

    def _may_try(self, partition: int, now: float) -> bool:
        """Whether it is not too soon after a failure. A follower that waits for the snapshot is not kept for long, nor
        are clients that a log beyond its bound keeps from writing."""
        sooner = RETRY_SECONDS - RETRY_WANTED_SECONDS if partition in self._wanted or self.hurries() else 0.0
        return self._not_before.get(partition, now) - sooner <= now

    def _rests_on_damage(self, hosted: HostedReplica) -> bool:
        """Whether a snapshot of this replica would let the damaged segment go."""
        covered = self._host.log.snapshot_position(hosted.partition_id)
        segment = self._host.log.segment_needed(hosted.partition_id, covered + 1)
        applied = hosted.partition.applied.position
        return segment is not None and segment <= self._damaged_segment and applied > covered

    def hurries(self) -> bool:
        """Whether the log is so large that all is done to trim it."""
        return self._fullness() > KEEP_FOR_LIVE

    def _fullness(self) -> float:
        return self._host.log.size / self._settings.log_bytes_max

    # --- trimming ---

    def trim(self) -> None:
        """Let go of the segments that nobody needs, once the flush under way is done."""
        self._host.flusher.trim_before(self._floor(), self._floor, self._trimmed)

    def _floor(self) -> int:
        """The oldest segment that is still needed."""
        log, now, fullness = self._host.log, self._host.clock.boottime(), self._fullness()
        floor = log.current_segment
        if fullness <= KEEP_FOR_LIVE:
            floor = min(floor, self._ages.first_since(now - self._settings.log_keep_seconds, floor))
        replicas = {hosted.partition_id: hosted for hosted in self._host.hosted_all()}
        own_floor = self._damaged_segment + 1
        for partition in log.partitions():
            hosted = replicas.get(partition)
            if hosted is None:  # it is being opened or dropped
                needed = log.snapshot_position(partition) + 1
            else:
                counts = None if fullness > KEEP_FOR_LIVE else (self._is_live if fullness > KEEP_FOR_ALL else _any)
                needed = first_needed(hosted, log, self.sending.get(partition), counts)
            segment = log.segment_needed(partition, needed)
            floor = floor if segment is None else min(floor, segment)
            own = needed if hosted is None else first_needed(hosted, log, None, None)
            own_segment = log.segment_needed(partition, own)
            own_floor = own_floor if own_segment is None else min(own_floor, own_segment)
        return max(floor, own_floor)

    def _let_log_replicas_go(self) -> None:
        """What every live full replica has, a log replica need not keep: their states stand for it."""
        log = self._host.log
        for hosted in self._host.hosted_all():
            replica = hosted.replica
            if not replica.log_only or replica.held <= max(replica.first_position - 1, self._covered(hosted)):
                continue
            epoch = replica.epoch_at(replica.held)
            if epoch is not None and replica.held <= replica.durable:
                self._logged_held[hosted.partition_id] = replica.held
                log.append_snapshot(hosted.partition_id, epoch, replica.held)

    def _covered(self, hosted: HostedReplica) -> int:
        return max(self._logged_held.get(hosted.partition_id, 0), self._host.log.snapshot_position(hosted.partition_id))

    def _is_live(self, node: int) -> bool:
        return self._host.clock.boottime() - self._host.last_heard(node) < LIVE_SECONDS

    def _trimmed(self, first_positions: dict[int, int]) -> None:
        for partition, first in first_positions.items():
            hosted = self._host.hosted(partition)
            if hosted is not None and first > hosted.replica.first_position:
                hosted.replica.trimmed(first)

    def _ask_installing(self) -> None:
        now = self._host.clock.boottime()
        if now - self._asked_at < ASK_SECONDS:
            return
        self._asked_at = now
        for hosted in self._host.hosted_all():
            if hosted.replica.installing_peers:
                hosted.perform(hosted.replica.ask_installing())
            if hosted.replica.role == "leader" and any(member.log_only for member in hosted.replica.membership.members):
                hosted.perform(hosted.replica.tell_held(now))

    # --- taking ---

    async def take(self, hosted: HostedReplica) -> None:
        """Take a snapshot of this replica, and replace a file that is mostly empty. Raises StoreBroken."""
        async with self.bulk:
            partition = hosted.partition_id
            self._wanted.pop(partition, None)
            if not _has_state(hosted):
                return
            await self._sync(hosted)
            try:
                snapshot = await self._take(hosted)
                if snapshot is not None and _is_wasteful(hosted.store):
                    await self._compact(hosted, snapshot)
            except SnapshotCorrupt as error:
                _log.error("a snapshot that was just taken: %s", error)
                await self._executor.run(partial(self._folder.remove, error.snapshot))
            except (OSError, StoreError) as error:
                _log.error("no snapshot of partition %d could be taken: %s", partition, error)
                self._not_before[partition] = self._host.clock.boottime() + RETRY_SECONDS

    async def _take(self, hosted: HostedReplica) -> Snapshot | None:
        partition, replica = hosted.partition_id, hosted.replica.replica
        logged = self._host.log.appended_bytes(partition)
        if not _has_state(hosted):
            return None
        copy = hosted.store.copy()
        try:
            same = [each for each in self._folder.all(partition, replica) if each.position == copy.applied.position]
            if copy.applied.position == 0:
                return None
            newest = same[0] if same else self._folder.add(replica, await self._write(hosted, copy))
        finally:
            copy.close()
        if hosted.dropped:
            await self._executor.run(partial(self._folder.remove_all, partition, replica))
            return None
        self._logged_at[partition] = logged
        if newest.position > self._host.log.snapshot_position(partition):
            self._host.log.append_snapshot(partition, newest.manifest.epoch, newest.position)
            await self.flushed()
        await self._executor.run(partial(self._folder.remove_older, newest))
        self.taken += 1
        self.last_taken_at = self._host.clock.boottime()
        return newest

    async def give_up(self, snapshot: Snapshot) -> None:
        """A snapshot is damaged: away with it."""
        async with self.bulk:
            if snapshot in self._folder.all(snapshot.partition, snapshot.replica):
                await self._executor.run(partial(self._folder.remove, snapshot))

    async def _write(self, hosted: HostedReplica, copy: StoreCopy) -> Manifest:
        applied = copy.applied
        membership = hosted.replica.membership_at(applied.position)
        partition, replica = hosted.partition_id, hosted.replica.replica
        writer = await self._executor.run(partial(self._folder.begin, partition, replica, applied.position))
        try:
            while size := await self._executor.run(partial(_copy_chunk, copy, writer)):
                await self.pace.take(size)
            manifest = Manifest(
                partition, replica, applied.position, applied.epoch, membership.version, membership.encode(), 0, ()
            )
            return await self._executor.run(partial(writer.finish, manifest))
        except (OSError, StoreError):
            with contextlib.suppress(OSError):
                await self._executor.run(writer.abort)
            raise
        finally:
            writer.close()

    async def flushed(self) -> None:
        """Wait until everything handed to the log so far is durable."""
        durable = asyncio.Event()
        self._host.flusher.after_flush(durable.set)
        await durable.wait()

    # --- stores ---

    async def _sync_one(self) -> None:
        """Once an hour each store is synced, so that a file system that fails is noticed before it is needed."""
        now = self._host.clock.boottime()
        for hosted in self._host.hosted_all():
            if now - self._synced_at.setdefault(hosted.partition_id, now) > SYNC_SECONDS:
                async with self.bulk:
                    if not hosted.dropped:
                        await self._sync(hosted)
                return

    async def _sync(self, hosted: HostedReplica) -> None:
        self._synced_at[hosted.partition_id] = self._host.clock.boottime()
        try:
            await self._executor.run(hosted.store.sync)
        except StoreBroken as error:
            if hosted.dropped:
                return
            hosted.store.close()
            await self._executor.run(partial(self._stores.discard, hosted.partition_id, hosted.replica.replica))
            raise StoreBroken(
                f"the store of partition {hosted.partition_id} could not be made durable ({error}) and was thrown "
                "away: start the node again, and it is made anew from its snapshot and the log"
            ) from error

    async def restore(self, hosted: HostedReplica, snapshot: Snapshot) -> tuple[Restoration, Store]:
        """Make a store from a snapshot, at the node's pace, and look at all its rows. Raises OSError, StoreError,
        SnapshotCorrupt: the file is not what was written, and RowsDamaged: what was written into it was damaged."""
        restoration = await self._executor.run(
            partial(self._stores.restore, hosted.partition_id, hosted.replica.replica)
        )
        reader = await self._executor.run(partial(self._folder.read, snapshot))
        try:
            for number in range(snapshot.manifest.chunks):
                chunk = await self._executor.run(partial(reader.chunk, number))
                await self._executor.run(partial(restoration.write, chunk))
                await self.pace.take(len(chunk))
            store = await self._executor.run(restoration.open)
            await require_whole(store, self._executor, self.pace.take)
            return restoration, store
        except BaseException:  # cancelled as well: a store that is left open cannot be made again
            restoration.discard()
            raise
        finally:
            reader.close()

    async def _compact(self, hosted: HostedReplica, snapshot: Snapshot) -> None:
        """Put the compact copy in the place of the store's file, once it has caught up."""
        restoration, store = await self.restore(hosted, snapshot)
        if await self._catch_up(hosted, store):
            before = hosted.store.space().file
            restoration.place(hosted.store)
            self.compacted += 1
            after = hosted.store.space().file
            _log.info("partition %d: a file of %d bytes became one of %d", hosted.partition_id, before, after)
        else:
            await self._executor.run(restoration.discard)

    async def _catch_up(self, hosted: HostedReplica, store: Store) -> bool:
        """Apply to `store` what the replica has applied meanwhile; whether it is the same, at this very moment."""
        shadow = Partition(store)
        for _ in range(CATCH_UP_ROUNDS):
            if hosted.dropped:
                return False
            applied = hosted.partition.applied.position
            if shadow.applied.position == applied:
                return True
            entries = await self._host.read_log(hosted.partition_id, shadow.applied.position + 1, CATCH_UP_BYTES)
            if due := [entry for entry in entries if entry.position <= applied]:
                shadow.apply(due)
        return False


def _has_state(hosted: HostedReplica) -> bool:
    """Whether the replica's state is its own and is to stay: not while another one's is fetched for it."""
    replica = hosted.replica
    return not (hosted.dropped or replica.log_only or replica.lacks_state or replica.wanted_snapshot is not None)


def _nothing() -> None:
    """Nobody sends snapshots."""


def _any(_node: int) -> bool:
    return True


def _copy_chunk(copy: StoreCopy, writer: SnapshotWriter) -> int:
    chunk = copy.read(CHUNK_BYTES)
    if chunk:
        writer.write(chunk)
    return len(chunk)


def _is_wasteful(store: Store) -> bool:
    """Whether a store's file is over twice what it holds."""
    space = store.space()
    return space.file > 2 * space.live and space.file - space.live > COMPACT_BYTES
