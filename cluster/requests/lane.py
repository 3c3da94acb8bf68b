"""The stream from this process to one storage node: requests go out in batches, replies come back by id.

Everything that is submitted in one turn of the loop, or while a batch is being sent, goes out in the next batch: a
message costs the same whether it carries 1 request or 30. Writes wait longer: while those sent before them are
unanswered, they gather, and go out together. Each message with writes costs the cluster a flush of three logs, four
messages between nodes and three transactions of stores, so that fewer and fuller ones serve all of them sooner.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from cluster.clock import Clock
from cluster.requests.call import Call
from cluster.requests.routing import Tries
from cluster.topology import Partition
from cluster.transport import Stream, Transport, TransportError
from cluster.wire import storage_pb2
from dynamo.errors import ApiError

METHOD = "Storage/Requests"
BATCH_REQUESTS_MAX = 1_000
BATCH_BYTES_MAX = 1 << 20
"""A longer message is cut in two, unless it is a single request."""

HOLD_SECONDS = 0.02
"""No write waits longer than this, and at most one tick of the executor, for others: they may be of a partition that
cannot answer now."""

_log = logging.getLogger(__name__)

_GATHERED = frozenset(
    {
        storage_pb2.Put,
        storage_pb2.Update,
        storage_pb2.Delete,
        storage_pb2.Transact,
        storage_pb2.Prepare,
        storage_pb2.Finish,
    }
)
"""What gathers. Batches carry many writes as they are."""

_FIELDS = {
    storage_pb2.Get: "get",
    storage_pb2.Put: "put",
    storage_pb2.Update: "update",
    storage_pb2.Delete: "delete",
    storage_pb2.Query: "query",
    storage_pb2.Statistics: "statistics",
    storage_pb2.IndexWrite: "index_write",
    storage_pb2.ReadStream: "read_stream",
    storage_pb2.Transact: "transact",
    storage_pb2.Prepare: "prepare",
    storage_pb2.Finish: "finish",
    storage_pb2.TransactGet: "transact_get",
    storage_pb2.Batch: "batch",
    storage_pb2.RegionalWrite: "regional_write",
    storage_pb2.ReadChanges: "read_changes",
    storage_pb2.ReadRegion: "read_region",
    storage_pb2.DropTombstones: "drop_tombstones",
    storage_pb2.Digest: "digest",
    storage_pb2.ReadRange: "read_range",
}


@dataclass(slots=True, eq=False)
class PendingRequest(Tries):
    """A call on its way. `done` is None once it was answered, whoever still holds the request then drops it."""

    call: Call
    done: Callable[[storage_pb2.Reply | ApiError], None] | None
    deadline: float
    partition: Partition
    node: int = 0
    epoch: int = 0


class Lane:
    """One stream to one node, from its opening to its break. A broken lane is thrown away.

    `replied(lane, replies)` and `broken(lane)` are called from the lane's tasks; `broken` once, unless `close` came
    first.
    """

    def __init__(
        self,
        node: int,
        address: str,
        cluster_id: str,
        transport: Transport,
        clock: Clock,
        replied: Callable[[Lane, storage_pb2.ReplyBatch], None],
        broken: Callable[[Lane], None],
    ) -> None:
        self.node = node
        self.waiting: list[PendingRequest] = []
        self.held: list[PendingRequest] = []  # writes that gather until those under way are answered
        self.unanswered: dict[int, PendingRequest] = {}
        self.heard_at = clock.boottime()  # last reply, or when requests became outstanding
        self._address = address
        self._cluster_id = cluster_id
        self._transport = transport
        self._clock = clock
        self._replied = replied
        self._broken: Callable[[Lane], None] | None = broken
        self._wake = asyncio.Event()
        self._writes: list[int] = []  # ids of gathered writes that were sent; the last of them may be unanswered
        self._writes_sent_at = 0.0
        self._last_id = 0
        self._stream: Stream | None = None
        self._tasks = [asyncio.create_task(self._send())]

    def submit(self, request: PendingRequest) -> None:
        """Send `request` with the next batch, or with the next writes."""
        if self._writes and type(request.call.operation) in _GATHERED:
            self.held.append(request)
            return
        if not self.waiting:
            if not self.unanswered:
                self.heard_at = self._clock.boottime()
            self._wake.set()
        self.waiting.append(request)

    def answered(self) -> None:
        """Requests are gone from `unanswered`: if they were the last writes, send those that gathered."""
        writes = self._writes
        if writes:
            while writes and writes[-1] not in self.unanswered:  # each is looked at once, however many reads there are
                writes.pop()
            if not writes:
                self._release()

    def look_after(self, now: float) -> None:
        """Let no write wait for others longer than `HOLD_SECONDS`."""
        if self.held and now - self._writes_sent_at >= HOLD_SECONDS:
            self._release()

    def _release(self) -> None:
        self._writes.clear()
        if self.held:
            self.waiting += self.held
            self.held.clear()
            self._wake.set()

    def silent_since(self) -> float | None:
        """Since when the node owes an answer and says nothing; None: it owes none."""
        return self.heard_at if self.unanswered or self.waiting else None

    def take_all(self) -> list[PendingRequest]:
        """Every request that is not answered, oldest first; the lane forgets them."""
        requests = [*self.unanswered.values(), *self.waiting, *self.held]
        self.unanswered.clear()
        self.waiting.clear()
        self.held.clear()
        self._writes.clear()
        return [request for request in requests if request.done is not None]

    def drop_answered(self) -> None:
        """Forget requests that were answered by other means, such as a passed deadline."""
        for id_, request in list(self.unanswered.items()):
            if request.done is None:
                del self.unanswered[id_]
        self.answered()

    def break_off(self) -> None:
        """Close the stream and say that it is broken."""
        broken, self._broken = self._broken, None
        self.close()
        if broken is not None:
            broken(self)

    def close(self) -> None:
        """Close the stream; `broken` is not called any more."""
        self._broken = None
        if self._stream is not None:
            self._stream.close()
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()

    async def _send(self) -> None:
        try:
            self._stream = await self._transport.open_stream(self._address, METHOD)
            self._tasks.append(asyncio.create_task(self._receive(self._stream)))
            while self._broken is not None:
                await self._wake.wait()
                self._wake.clear()
                while self.waiting:
                    for message in self._messages():
                        await self._stream.send(message)
        except (TransportError, OSError):
            self.break_off()
        except Exception:
            _log.exception("sending to node %d failed", self.node)
            self.break_off()

    async def _receive(self, stream: Stream) -> None:
        try:
            while (message := await stream.receive()) is not None:
                self.heard_at = self._clock.boottime()
                self._replied(self, storage_pb2.ReplyBatch.FromString(message))
        except (TransportError, OSError, DecodeError) as error:
            _log.debug("the stream to node %d broke: %s", self.node, error)
        except Exception:
            _log.exception("reading from node %d failed", self.node)
        self.break_off()

    def _messages(self) -> list[bytes]:
        """What waits, up to the most for one batch, as serialized batches (nearly always one)."""
        requests = self.waiting[:BATCH_REQUESTS_MAX]
        del self.waiting[:BATCH_REQUESTS_MAX]
        return self._serialized([request for request in requests if request.done is not None])

    def _serialized(self, requests: list[PendingRequest]) -> list[bytes]:
        if not requests:
            return []
        now = self._clock.boottime()
        batch = storage_pb2.RequestBatch(cluster_id=self._cluster_id)
        add = batch.requests.add
        id_ = first = self._last_id + 1
        writes: list[int] = []
        for request in requests:
            call = request.call
            if type(call.operation) in _GATHERED:
                writes.append(id_)
            add(
                id=id_,
                partition=request.partition.id,
                table=call.table.id,
                epoch=request.epoch,
                schema_version=call.table.schema_version,
                deadline_ms=max(1, int((request.deadline - now) * 1000)),
                operation_id=call.operation_id,
                request_id=call.request_id,
                **{_FIELDS[type(call.operation)]: call.operation},
            )
            id_ += 1
        message = batch.SerializeToString()
        if len(message) > BATCH_BYTES_MAX and len(requests) > 1:
            half = len(requests) // 2
            return self._serialized(requests[:half]) + self._serialized(requests[half:])
        self._last_id = id_ - 1
        self.unanswered.update(zip(range(first, id_), requests, strict=True))
        if writes:
            self._writes += writes
            self._writes_sent_at = now
        return [message]
