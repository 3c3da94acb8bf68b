"""Brings the changes of the partitions that this node leads to the global indexes of their tables.

Nothing happens here but reading, sending and noting progress: `index_feed` decides what is sent in which order, and
says why nothing is lost or doubled when a leader changes. A partition is looked at when it is woken: by an applied
entry, by an answer, by a change of role. What comes meanwhile is the next request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, Protocol

from cluster.clock import Clock
from cluster.requests.call import Call
from cluster.requests.executor import Executor as RequestExecutor
from cluster.topology import Topology
from cluster.wire import storage_pb2
from dynamo.change import ChangeRow, Touch, decode_change
from dynamo.codec import CorruptItem
from dynamo.errors import ApiError
from dynamo.keys import HASH_SIZE, next_key
from dynamo.table import Table
from storagenode.change_readers import ChangeReaders, index_reader
from storagenode.hosted import HostedReplica
from storagenode.index_commands import encode_read, encode_touch
from storagenode.index_feed import FedBatch, FedRow, IndexFeed, images_of
from storagenode.storage import layout
from storagenode.storage.store import Store

SLICE_ITEMS = 128
"""Items looked at in one go: changes, or those that touches name. About 5 ms."""
TOUCHED_ROWS = 128
"""Items touched by one entry while an index is filled."""
FILL_WAITING_ROWS_MAX = 1_000
"""The next items are touched when no more than this waits to be sent: a fill leaves room for writes."""
NOTE_ROWS = 2_000
NOTE_SECONDS = 5.0
"""The log learns how far feeds have come after so many rows, or so much time: as much may be sent again."""
REFRESH_SECONDS = 0.05
PAUSE_SECONDS = 0.1
"""Before a request that failed is sent again, and before damaged rows are looked at again."""

_log = logging.getLogger(__name__)


class PropagationHost(Protocol):
    """What propagation needs of its node."""

    clock: Clock

    @property
    def topology(self) -> Topology:
        """The newest view of catalog and map."""
        ...

    def hosted_all(self) -> Iterator[HostedReplica]:
        """Every replica on this node."""
        ...

    def start_work(self, work: Coroutine[Any, Any, None]) -> object:
        """Run `work` beside everything else; its failure stops the node."""
        ...

    def report_soon(self) -> None:
        """There is something that auto-admin waits for."""
        ...

    async def breathe(self) -> None:
        """Let others run."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        ...


class NodeCatalog:
    """The node's view of the catalog, for the executor of its requests."""

    def __init__(self, host: PropagationHost) -> None:
        self._host = host

    @property
    def topology(self) -> Topology:
        """The newest view."""
        return self._host.topology

    async def refresh(self) -> None:
        """Changes come by themselves: wait a moment for the next."""
        await self._host.sleep(REFRESH_SECONDS)


class IndexLag(NamedTuple):
    """How far an index is behind one partition of its table."""

    partition: int
    table_name: str
    index_name: str
    seconds: float
    rows: int


@dataclass(slots=True, eq=False)
class _Source:
    """A partition in one term of this node's leadership."""

    epoch: int
    schema: Table
    feeds: dict[int, IndexFeed] = field(default_factory=dict)
    noted_at: int = 0
    """Position of the last entry that told the log of progress."""
    noted_rows: int = 0
    """How many rows had been taken by then."""
    touched_at: dict[int, int] = field(default_factory=dict)
    """Position of the last touch, by index."""
    filled: frozenset[int] = frozenset()

    @property
    def taken_rows(self) -> int:
        """Rows that the indexes have taken."""
        return sum(feed.taken_rows for feed in self.feeds.values())


class Propagation:
    """All feeds of a node."""

    def __init__(self, host: PropagationHost, requests: RequestExecutor) -> None:
        self._host = host
        self._requests = requests
        self._sources: dict[HostedReplica, _Source] = {}
        self._woken: dict[HostedReplica, None] = {}
        self._resting: dict[HostedReplica, None] = {}
        self._wake = asyncio.Event()

    def wake(self, hosted: HostedReplica) -> None:
        """Look at this partition soon: something was applied or answered, or its role has changed."""
        self._woken[hosted] = None
        self._wake.set()

    async def run(self) -> None:
        """Feed indexes until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            woken, self._woken = self._woken, {}
            for hosted in woken:
                try:
                    if self.advance(hosted):
                        self.wake(hosted)
                except CorruptItem as error:
                    _log.error("partition %d cannot feed its indexes: %s", hosted.partition_id, error)
                    self._wake_later(hosted)
                await self._host.breathe()

    def stop(self) -> None:
        """Heed no answer any more."""
        self._sources.clear()

    async def run_notes(self) -> None:
        """Tell the logs of progress now and then, until cancelled."""
        while True:
            await self._host.sleep(NOTE_SECONDS)
            for hosted in list(self._sources):
                self.note(hosted)

    # --- for reports and metrics ---

    def filled(self, hosted: HostedReplica) -> frozenset[int]:
        """The global indexes, by their tables, that hold all of this partition, as far as its leader knows."""
        source = self._sources.get(hosted)
        return frozenset() if source is None else source.filled

    def lags(self) -> list[IndexLag]:
        """How far each index is behind, for every partition led here."""
        now_ms = self._host.clock.wall() * 1000
        return [
            IndexLag(
                hosted.partition_id,
                source.schema.name,
                feed.index.name,
                max(0.0, now_ms - feed.waiting_since_ms) / 1000 if feed.waiting_since_ms else 0.0,
                feed.waiting_rows,
            )
            for hosted, source in self._sources.items()
            for feed in source.feeds.values()
        ]

    # --- one partition ---

    def advance(self, hosted: HostedReplica) -> bool:
        """Read, send, touch and note; whether there is more to be read at once. Raises CorruptItem."""
        source = self._source(hosted)
        if source is None:
            return False
        more = self._read(hosted, source)
        for feed in source.feeds.values():
            for batch in feed.batches():
                self._send(hosted, source, feed, batch)
        self._fill(hosted, source)
        if source.taken_rows - source.noted_rows >= NOTE_ROWS:
            self._note(hosted, source)
        return more

    def _source(self, hosted: HostedReplica) -> _Source | None:
        """The partition's feeds, as its schema wants them; None where this node has none to run."""
        schema, readers = hosted.partition.applied_schema, hosted.partition.readers
        if not hosted.serving or hosted.dropped or schema is None or not readers.fills:
            self._sources.pop(hosted, None)
            return None
        source = self._sources.get(hosted)
        if source is None or source.epoch != hosted.replica.epoch:
            source = self._sources[hosted] = _Source(hosted.replica.epoch, schema)
        if source.schema is not schema or not source.feeds:
            source.schema = schema
            source.feeds = {
                index.table: source.feeds.get(index.table)
                or IndexFeed(schema, index, readers.positions[index_reader(index.table)])
                for index in schema.global_indexes
            }
        return source

    def _read(self, hosted: HostedReplica, source: _Source) -> bool:
        """Take the next change rows in, once for all feeds that stand at the same place."""
        applied, more = hosted.partition.applied.position, False
        places: dict[int, list[IndexFeed]] = {}
        for feed in source.feeds.values():
            if feed.read_to < applied and not feed.is_full and self._host.topology.partitions_of(feed.index.table):
                places.setdefault(feed.read_to, []).append(feed)
        for place, feeds in places.items():
            rows, finished = _changes(hosted.store, place)
            for position, row in rows:
                self._take(hosted.store, feeds, position, row)
            for feed in feeds:
                if rows:
                    feed.last_change = rows[-1][0]
                feed.read_to = applied if finished else rows[-1][0]
            more = more or not finished
        return more

    def _take(self, store: Store, feeds: list[IndexFeed], position: int, row: ChangeRow) -> None:
        if isinstance(row, Touch):
            for feed in feeds:
                if feed.index.table == row.index_table:
                    for key in row.keys:
                        stored = store.get(key)
                        if stored is not None:
                            feed.touch(key, stored, position, self._route(feed))
            return
        images = images_of(row)
        for feed in feeds:
            feed.change(images, position, self._route(feed))

    def _route(self, feed: IndexFeed) -> Callable[[bytes], int]:
        topology, table = self._host.topology, feed.index.table
        return lambda hash_: topology.partition_for(table, hash_).id

    # --- sending ---

    def _send(self, hosted: HostedReplica, source: _Source, feed: IndexFeed, batch: FedBatch) -> None:
        table = self._host.topology.table(feed.index.table)
        if table is None:  # dropped, or not known here yet
            feed.failed(batch)
            self._wake_later(hosted)
            return
        write = storage_pb2.IndexWrite(
            source=hosted.partition_id, position=batch.position, rows=[_wire_row(row) for row in batch.rows]
        )
        call = Call(table, batch.rows[0].key[:HASH_SIZE], write)
        self._requests.submit(call, partial(self._answered, hosted, source, feed, batch))

    def _answered(
        self,
        hosted: HostedReplica,
        source: _Source,
        feed: IndexFeed,
        batch: FedBatch,
        result: storage_pb2.Reply | ApiError,
    ) -> None:
        if self._sources.get(hosted) is not source:
            return  # another term of leadership
        if isinstance(result, ApiError) or not result.HasField("write"):
            feed.failed(batch)
            self._wake_later(hosted)
            return
        feed.taken(batch)
        self.wake(hosted)

    def _wake_later(self, hosted: HostedReplica) -> None:
        """Look at a partition again after a pause: once, however many of its batches have failed."""
        if hosted in self._resting:
            return
        self._resting[hosted] = None

        async def later() -> None:
            await self._host.sleep(PAUSE_SECONDS)
            self._resting.pop(hosted, None)
            self.wake(hosted)

        self._host.start_work(later())

    # --- filling a new index ---

    def _fill(self, hosted: HostedReplica, source: _Source) -> None:
        """Touch the next items for indexes that are not filled, and notice those that are."""
        readers, applied = hosted.partition.readers, hosted.partition.applied.position
        for index, feed in source.feeds.items():
            fill = readers.fills[index]
            if fill.done or source.touched_at.get(index, 0) > applied:
                continue
            if feed.read_to >= fill.position and feed.waiting_rows <= FILL_WAITING_ROWS_MAX:
                source.touched_at[index] = hosted.propose(_next_touch(hosted.store, index, fill.through))
        self._notice_filled(source, readers)

    def _notice_filled(self, source: _Source, readers: ChangeReaders) -> None:
        filled = frozenset(
            index
            for index, feed in source.feeds.items()
            if readers.fills[index].done and feed.cursor >= readers.fills[index].position
        )
        if filled | source.filled != source.filled:
            source.filled = filled
            self._host.report_soon()

    # --- progress ---

    def note(self, hosted: HostedReplica) -> None:
        """Tell the partition's log how far the feeds have come, if they have come any further."""
        if hosted.serving and (source := self._sources.get(hosted)) is not None:
            self._note(hosted, source)

    def _note(self, hosted: HostedReplica, source: _Source) -> None:
        if source.noted_at > hosted.partition.applied.position or self._sources.get(hosted) is not source:
            return
        known = hosted.partition.readers.positions
        news = {
            name: feed.cursor
            for index, feed in source.feeds.items()
            if (name := index_reader(index)) in known and feed.last_change > known[name] and feed.cursor > known[name]
        }
        if news:
            source.noted_at, source.noted_rows = hosted.propose(encode_read(news)), source.taken_rows


def _changes(store: Store, after: int) -> tuple[list[tuple[int, ChangeRow]], bool]:
    """The next change rows above a position, of about `SLICE_ITEMS` items and all of the last one's position; whether
    these are all there are."""
    found: list[tuple[int, ChangeRow]] = []
    items = 0
    with closing(store.rows(layout.change_key(after + 1), layout.prefix_end(layout.CHANGE))) as rows:
        for key, row in rows:
            position, _ = layout.change_place(key)
            if items >= SLICE_ITEMS and position != found[-1][0]:
                return found, False
            change = decode_change(row)
            found.append((position, change))
            items += len(change.keys) if isinstance(change, Touch) else 1
    return found, True


def _next_touch(store: Store, index: int, through: bytes) -> bytes:
    """The entry that touches the items that follow `through`."""
    start = next_key(through) if through else b""
    with closing(store.scan(start, b"")) as rows:
        keys = [key for key, _ in islice(rows, TOUCHED_ROWS)]
    return encode_touch(index, keys, keys[-1] if keys else through, done=len(keys) < TOUCHED_ROWS)


def _wire_row(row: FedRow) -> storage_pb2.IndexRow:
    return storage_pb2.IndexRow(key=row.key, stored=row.stored, position=row.position)
