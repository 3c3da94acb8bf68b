"""A leader's side of the regions of its global tables: answers their replicators, notes how far they have come, fills
regions that join, and cuts off those that are too far behind.

Nothing is decided here on items: `regional` does that for what comes in, `regional_reads` says what goes out.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from cluster.clock import Clock
from cluster.wire import common_pb2, storage_pb2
from dynamo.codec import CorruptItem, make_stamp
from dynamo.regions import OWN, RETURNED, is_global, readers_of
from storagenode import regional_reads as reads
from storagenode.change_readers import region_fill, region_reader
from storagenode.hosted import HostedReplica
from storagenode.index_commands import encode_read
from storagenode.regional_commands import encode_clock, encode_cut_off, encode_tombstones
from storagenode.requests import Responder

NOTE_SECONDS: Final = 0.5
"""How often at the most the log learns how far a region has come: as much is sent again after a crash."""
HOLD_SECONDS: Final = 3.0
"""A process that reads for a region, and was not heard of for so long, is replaced by another that asks."""
WAIT_MS_MAX: Final = 1_000
"""How long a request waits for a change. Replicators are more patient with silent nodes than routers are."""
LOOK_SECONDS_MAX: Final = 60.0
LOOKS_PER_RETENTION: Final = 20

_log = logging.getLogger(__name__)


class RegionsHost(Protocol):
    """What this needs of its node."""

    clock: Clock

    def hosted_all(self) -> Iterator[HostedReplica]:
        """Every replica on this node."""
        ...

    def start_work(self, work: Coroutine[Any, Any, None]) -> object:
        """Run `work` beside everything else; its failure stops the node."""
        ...

    async def breathe(self) -> None:
        """Let others run."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        ...


@dataclass(slots=True, eq=False)
class _Waiting:
    """A request that waits for a change."""

    request: storage_pb2.ReadChanges
    responder: Responder
    answered: bool = False


@dataclass(slots=True)
class _Led:
    """A partition in one term of this node's leadership. By region's number: who reads and until when, how far it says
    the region has come, when that was noted last, and the position of the last touch."""

    epoch: int
    readers: dict[int, tuple[int, float]] = field(default_factory=dict)
    confirmed: dict[int, int] = field(default_factory=dict)
    noted: dict[int, tuple[int, float]] = field(default_factory=dict)
    touched: dict[int, int] = field(default_factory=dict)
    waiting: list[_Waiting] = field(default_factory=list)
    tombstones_through: bytes = b""
    clock_at: int = 0


class Regions:
    """All partitions of a node. `retention`: seconds for which changes are kept for a region that does not take
    them."""

    def __init__(self, host: RegionsHost, retention: float) -> None:
        self._host = host
        self._retention = retention
        self._led: dict[HostedReplica, _Led] = {}

    # --- requests ---

    def handle(self, hosted: HostedReplica, request: storage_pb2.Request, responder: Responder) -> None:
        """Answer a request of `hosted.REGION_KINDS`. Raises CorruptItem."""
        if not hosted.serving or not hosted.replica.may_read(self._host.clock.boottime()):
            responder.refuse(hosted.not_serving())
            return
        kind = request.WhichOneof("operation")
        table = hosted.partition.applied_schema
        if table is None or not is_global(table) or table.schema_version != request.schema_version:
            responder.refuse(hosted.not_serving())
            return
        match kind:
            case "read_changes":
                self._read_changes(hosted, request.read_changes, responder)
            case "read_region":
                responder.region(self._state(hosted, request.read_region))
            case "drop_tombstones":
                responder.write(self._drop_tombstones(hosted, request.drop_tombstones))
            case "digest":
                responder.digest(reads.digest_of(hosted.store, table, request.digest))
            case _:
                now_ms = int(self._host.clock.wall() * 1000)
                responder.range(reads.range_of(hosted.store, table, request.read_range, now_ms))

    def _of(self, hosted: HostedReplica) -> _Led:
        led = self._led.get(hosted)
        if led is None or led.epoch != hosted.replica.epoch:
            if led is not None:
                self._release(led, hosted)
            led = self._led[hosted] = _Led(hosted.replica.epoch)
        return led

    def _read_changes(self, hosted: HostedReplica, request: storage_pb2.ReadChanges, responder: Responder) -> None:
        led, now, number = self._of(hosted), self._host.clock.boottime(), request.number
        reader, until = led.readers.get(number, (0, 0.0))
        if reader not in (0, request.reader) and until > now:
            # Who stands by has to know as well: a region is filled once it is so by all partitions.
            filled = reads.is_filled(hosted.partition.readers, number, led.confirmed.get(number, 0))
            responder.changes(storage_pb2.ChangesReply(busy=True, next=request.after, filled=filled))
            return
        led.readers[number] = (request.reader, now + HOLD_SECONDS)
        led.confirmed[number] = max(request.confirmed, led.confirmed.get(number, 0))
        self._note(hosted, led, number, request.confirmed, now)
        waiting = _Waiting(request, responder)
        if not self._answer(hosted, led, waiting, at_once=not request.wait_ms):
            led.waiting.append(waiting)
            seconds = min(request.wait_ms, WAIT_MS_MAX) / 1000
            self._host.start_work(self._end_wait(hosted, led, waiting, seconds))

    async def _end_wait(self, hosted: HostedReplica, led: _Led, waiting: _Waiting, seconds: float) -> None:
        await self._host.sleep(seconds)
        if not waiting.answered:
            led.waiting.remove(waiting)
            self._try_answer(hosted, led, waiting, at_once=True)

    def _answer(self, hosted: HostedReplica, led: _Led, waiting: _Waiting, *, at_once: bool) -> bool:
        """Answer a request if there is a change, or `at_once`; whether it was answered. Raises CorruptItem."""
        readers, table, request = hosted.partition.readers, hosted.partition.applied_schema, waiting.request
        number = request.number
        cursor = readers.positions.get(region_reader(number))
        if cursor is None or table is None or not hosted.serving:
            waiting.answered = True
            if number in readers.cut_off:
                waiting.responder.changes(storage_pb2.ChangesReply(cut_off=True))
            else:
                waiting.responder.refuse(hosted.not_serving())
            return True
        after = max(request.after, cursor)
        found = reads.changes_after(hosted.store, table, number, after)
        if not found.rows and not found.more:
            self._fill(hosted, led, number, after)
            if not at_once:
                return False
        waiting.answered = True
        waiting.responder.changes(
            storage_pb2.ChangesReply(
                rows=found.rows,
                next=max(found.next, after),
                more=found.more,
                cursor=cursor,
                filled=reads.is_filled(readers, number, max(cursor, request.confirmed)),
            )
        )
        return True

    def _try_answer(self, hosted: HostedReplica, led: _Led, waiting: _Waiting, *, at_once: bool) -> bool:
        waiting.responder.received_at = self._host.clock.boottime()  # to wait for a change is not to be slow
        try:
            return self._answer(hosted, led, waiting, at_once=at_once)
        except CorruptItem as error:
            _log.error("partition %d cannot tell its changes: %s", hosted.partition_id, error)
            waiting.answered = True
            waiting.responder.refuse(common_pb2.Refusal(reason=common_pb2.Refusal.NOT_READY, detail=str(error)))
            return True

    def wake(self, hosted: HostedReplica) -> None:
        """Something was applied, or the partition's role has changed."""
        led = self._led.get(hosted)
        if led is None:
            return
        if led.epoch != hosted.replica.epoch or not hosted.serving:
            del self._led[hosted]
            self._release(led, hosted)
            return
        if led.waiting:
            waiting, led.waiting = led.waiting, []
            led.waiting += [each for each in waiting if not self._try_answer(hosted, led, each, at_once=False)]

    def _release(self, led: _Led, hosted: HostedReplica) -> None:
        for waiting in led.waiting:
            waiting.answered = True
            waiting.responder.refuse(hosted.not_serving())
        led.waiting.clear()

    # --- progress ---

    def _note(self, hosted: HostedReplica, led: _Led, number: int, confirmed: int, now: float) -> None:
        """Tell the log how far the region has come, if that lets a change row go."""
        name = region_reader(number)
        known = hosted.partition.readers.positions.get(name)
        at, since = led.noted.get(number, (0, 0.0))
        applied = hosted.partition.applied.position
        if known is None or not known < confirmed <= applied or at > applied or now - since < NOTE_SECONDS:
            return
        if reads.has_change(hosted.store, known, confirmed):
            led.noted[number] = (hosted.propose(encode_read({name: confirmed})), now)

    def _fill(self, hosted: HostedReplica, led: _Led, number: int, after: int) -> None:
        """Touch the next items for a region that has read everything else."""
        fill = hosted.partition.readers.fills.get(region_fill(number))
        if fill is None or fill.done or fill.position > after:
            return
        if led.touched.get(number, 0) <= hosted.partition.applied.position:
            led.touched[number] = hosted.propose(reads.next_fill(hosted.store, number, fill.through))

    def _state(self, hosted: HostedReplica, request: storage_pb2.ReadRegion) -> storage_pb2.RegionReply:
        led, partition = self._of(hosted), hosted.partition
        now_ms = int(self._host.clock.wall() * 1000)
        stamp = make_stamp(min(request.settle_ms, now_ms), 0)
        if request.settle_ms and stamp > partition.applied.stamp and led.clock_at <= partition.applied.position:
            partition.saw(stamp)
            led.clock_at = hosted.propose(encode_clock(stamp))
        return reads.state_of(hosted.store, partition.readers, request.number, request.taken)

    def _drop_tombstones(self, hosted: HostedReplica, request: storage_pb2.DropTombstones) -> storage_pb2.WriteReply:
        led, table = self._of(hosted), hosted.partition.applied_schema
        assert table is not None
        numbers = None
        if not request.orphans:
            present = {replica.number for replica in readers_of(table)}
            numbers = frozenset({OWN, RETURNED} | present)
        found, led.tombstones_through = reads.old_tombstones(
            hosted.store, led.tombstones_through, request.stamp, numbers
        )
        if found:
            hosted.propose(encode_tombstones(found))
        return storage_pb2.WriteReply(dropped=len(found), more=bool(led.tombstones_through))

    # --- the bound ---

    async def run(self) -> None:
        """Cut off regions that are too far behind, until cancelled."""
        while True:
            await self._host.sleep(min(LOOK_SECONDS_MAX, self._retention / LOOKS_PER_RETENTION))
            for hosted in list(self._host.hosted_all()):
                if hosted.serving and is_global(hosted.partition.applied_schema):
                    self.cut_off(hosted)
                    await self._host.breathe()

    def cut_off(self, hosted: HostedReplica) -> None:
        """Keep nothing for regions that have not taken what is too old now."""
        table, readers = hosted.partition.applied_schema, hosted.partition.readers
        assert table is not None
        before_ms = int((self._host.clock.wall() - self._retention) * 1000)
        for replica in readers_of(table):
            cursor = readers.positions.get(region_reader(replica.number))
            if cursor is None:
                continue
            try:
                since_ms = reads.oldest_change_ms(hosted.store, cursor)
            except CorruptItem as error:
                _log.error(
                    "partition %d cannot tell what is kept for %s: %s", hosted.partition_id, replica.region, error
                )
                continue
            if 0 < since_ms < before_ms:
                _log.error(
                    "partition %d cuts off region %s, which is too far behind", hosted.partition_id, replica.region
                )
                hosted.propose(encode_cut_off(replica.number))
