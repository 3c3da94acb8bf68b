"""Carries calls to the partitions' leaders, over one long-lived stream per storage node, and brings back the replies.

No task is made for a request: `submit` queues it on a `Lane`, the reply finds its callback by id. What a refusal or a
broken stream leads to is decided in `routing`; here it is done. One timer looks after all requests: it sends those
whose pause is over, breaks off nodes that are silent, and ends what is out of time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Protocol, TypeAlias

from cluster.clock import Clock
from cluster.requests.call import Call, StalePlanError
from cluster.requests.lane import Lane, PendingRequest
from cluster.requests.routing import Again, AwaitCatalog, Fail, Next, Routes, Sent, after_break, after_refusal
from cluster.topology import Partition, Topology
from cluster.transport import Transport
from cluster.wire import common_pb2, storage_pb2
from dynamo.errors import ApiError, unavailable

TICK = 0.020
"""Seconds between two looks at pauses and silent nodes while requests are outstanding."""
DEADLINE_TICKS = 10
"""Deadlines are looked at every so many ticks."""
REQUEST_TIME = 10.0
REQUEST_TIME_MAX = 30.0
SILENCE = 0.5
OUTSTANDING_MAX = 20_000

Done: TypeAlias = Callable[[storage_pb2.Reply | ApiError], None]

_log = logging.getLogger(__name__)


class CatalogView(Protocol):
    """What the executor needs of the catalog."""

    @property
    def topology(self) -> Topology:
        """The newest view."""
        ...

    async def refresh(self) -> None:
        """Ask for a newer view; returns once it is there or cannot be had. Never raises."""
        ...


class Executor:
    """Sends calls where they belong and retries them until their time is over.

    `request_time`: seconds that a call may take, retries included (at most `REQUEST_TIME_MAX`: nodes remember operation
    ids for longer than that). `silence`: seconds without a word after which a node that owes answers is given up on.
    `outstanding_max`: calls under way; more are refused with `ServiceUnavailable`.
    """

    def __init__(
        self,
        transport: Transport,
        catalog: CatalogView,
        clock: Clock,
        cluster_id: str,
        *,
        request_time: float = REQUEST_TIME,
        silence: float = SILENCE,
        outstanding_max: int = OUTSTANDING_MAX,
    ) -> None:
        self._transport = transport
        self._catalog = catalog
        self._clock = clock
        self._cluster_id = cluster_id
        self._request_time = min(request_time, REQUEST_TIME_MAX)
        self._silence = silence
        self._outstanding_max = outstanding_max
        self._routes = Routes()
        self._lanes: dict[int, Lane] = {}
        self._outstanding = 0
        self._paused: list[tuple[float, int, PendingRequest, int]] = []
        self._order = count()
        self._awaiting: list[tuple[PendingRequest, int]] = []
        self._refreshing: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._ticks = 0
        self._closed = False

    @property
    def outstanding(self) -> int:
        """Calls that are under way."""
        return self._outstanding

    def submit(self, call: Call, done: Done) -> None:
        """Carry `call` out. `done` gets the reply (never a refusal) or an ApiError, once, maybe before this returns."""
        if self._outstanding >= self._outstanding_max or self._closed:
            done(unavailable("The router has too many requests under way; try again"))
            return
        try:
            partition = self._catalog.topology.partition_for(call.table.id, call.hash)
        except LookupError:
            partition = _NOWHERE
        now = self._clock.boottime()
        request = PendingRequest(call, done, now + self._request_time, partition)
        self._outstanding += 1
        if self._timer is None:
            self._arm()
        if partition is _NOWHERE:
            self._without_partition(request)
        else:
            self._send(request, 0, now)

    async def call(self, call: Call) -> storage_pb2.Reply:
        """The reply to `call`, never a refusal. Raises ApiError."""
        future: asyncio.Future[storage_pb2.Reply] = asyncio.get_running_loop().create_future()

        def done(result: storage_pb2.Reply | ApiError) -> None:
            if future.done():
                return  # the caller was cancelled
            if isinstance(result, ApiError):
                future.set_exception(result)
            else:
                future.set_result(result)

        self.submit(call, done)
        return await future

    async def call_all(self, calls: Sequence[Call]) -> list[storage_pb2.Reply | ApiError]:
        """The result of each call, in order. No task is made for any of them."""
        results: list[storage_pb2.Reply | ApiError | None] = [None] * len(calls)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        left = len(calls)

        def done(index: int, result: storage_pb2.Reply | ApiError) -> None:
            nonlocal left
            results[index] = result
            left -= 1
            if not left and not future.done():
                future.set_result(None)

        for index, call in enumerate(calls):
            self.submit(call, partial(done, index))
        if calls:
            await future
        return [result for result in results if result is not None]

    async def close(self) -> None:
        """End every stream; calls under way end with `ServiceUnavailable`."""
        self.abandon()

    def abandon(self) -> None:
        """The same at once, for a process that ends in the middle of something."""
        self._closed = True
        requests = [request for _, _, request, _ in self._paused] + [request for request, _ in self._awaiting]
        for lane in self._lanes.values():
            requests += lane.take_all()
            lane.close()
        self._lanes.clear()
        self._paused.clear()
        self._awaiting.clear()
        if self._timer is not None:
            self._timer.cancel()
        if self._refreshing is not None:
            self._refreshing.cancel()
        for request in requests:
            self._finish(request, unavailable("The router is shutting down; try again"))

    # --- sending ---

    def _send(self, request: PendingRequest, node: int, now: float) -> None:
        """Put the request on a lane: `node`'s, or wherever it belongs (0)."""
        if not node:
            if request.call.any_replica:
                node = self._routes.any_node(request.partition, self._lanes, now)
            else:
                node = self._routes.leader_node(request.partition, now)
        lane = self._lanes.get(node) or self._open(node)
        if lane is None:
            self._routes.suspect(node, now)
            self._next(request, after_break(self._routes, request.partition, node, request, now))
            return
        request.node = node
        if not request.call.any_replica:  # a replica that is behind may well answer these
            request.epoch = self._routes.epoch(request.partition.id)
        lane.submit(request)

    def _open(self, node: int) -> Lane | None:
        place = self._catalog.topology.node(node)
        if place is None or self._closed:
            return None
        lane = Lane(node, place.address, self._cluster_id, self._transport, self._clock, self._replied, self._broken)
        self._lanes[node] = lane
        return lane

    def _send_anew(self, request: PendingRequest, node: int, now: float) -> None:
        """Send again, where the newest map says that the request belongs."""
        if request.done is None:
            return
        try:
            partition = self._catalog.topology.partition_for(request.call.table.id, request.call.hash)
        except LookupError:
            self._without_partition(request)
            return
        if partition.id != request.partition.id:
            node = 0
        request.partition = partition
        self._send(request, node, now)

    def _without_partition(self, request: PendingRequest) -> None:
        if self._catalog.topology.table(request.call.table.id) is None:
            self._finish(request, StalePlanError())
        else:
            self._next(request, AwaitCatalog(0))

    # --- replies ---

    def _replied(self, lane: Lane, batch: storage_pb2.ReplyBatch) -> None:
        self._routes.heard(lane.node)
        unanswered = lane.unanswered
        for reply in batch.replies:
            request = unanswered.pop(reply.id, None)
            if request is None or request.done is None:
                continue  # ended by its deadline meanwhile
            if reply.HasField("refusal"):
                self._refused(request, lane.node, reply.refusal)
                continue
            if not request.call.any_replica:
                self._routes.learn(request.partition.id, lane.node)
            self._finish(request, reply)
        lane.answered()

    def _refused(self, request: PendingRequest, node: int, refusal: common_pb2.Refusal) -> None:
        now = self._clock.boottime()
        sent = Sent(request.call.table.schema_version, request.epoch, request, request.call.any_replica)
        self._next(request, after_refusal(self._routes, request.partition, node, refusal, sent, now))

    def _broken(self, lane: Lane) -> None:
        if self._lanes.get(lane.node) is lane:
            del self._lanes[lane.node]
        now = self._clock.boottime()
        self._routes.suspect(lane.node, now)
        for request in lane.take_all():
            self._next(request, after_break(self._routes, request.partition, lane.node, request, now))

    def _next(self, request: PendingRequest, what: Next) -> None:
        match what:
            case Again(node, pause):
                # Even without a pause by way of the heap: no request may send itself again from within its own failure.
                heappush(self._paused, (self._clock.boottime() + pause, next(self._order), request, node))
                if not pause:
                    asyncio.get_running_loop().call_soon(self._send_due)
            case AwaitCatalog(schema_version):
                self._awaiting.append((request, schema_version))
                if self._refreshing is None:
                    self._refreshing = asyncio.create_task(self._refresh())
            case Fail(error):
                self._finish(request, error)

    def _finish(self, request: PendingRequest, result: storage_pb2.Reply | ApiError) -> None:
        done = request.done
        if done is None:
            return
        request.done = None
        self._outstanding -= 1
        try:
            done(result)
        except Exception:
            _log.exception("a reply's callback failed")

    async def _refresh(self) -> None:
        """Get the newest catalog once for all requests that wait for it, then send or end them."""
        await self._catalog.refresh()
        self._refreshing = None
        awaiting, self._awaiting = self._awaiting, []
        for request, schema_version in awaiting:
            table = self._catalog.topology.table(request.call.table.id)
            if table is None or (schema_version and table.schema_version >= schema_version):
                self._finish(request, StalePlanError())
            else:
                self._next(request, request.again(0, news=False))

    # --- time ---

    def _arm(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(TICK, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self.sweep()
        if self._outstanding and not self._closed:
            self._arm()

    def sweep(self) -> None:
        """One look at pauses, silent nodes and deadlines."""
        self._send_due()
        now = self._clock.boottime()
        for lane in list(self._lanes.values()):
            lane.look_after(now)
            since = lane.silent_since()
            if since is not None and now - since >= self._silence:
                lane.break_off()
        self._ticks += 1
        if self._ticks % DEADLINE_TICKS == 0:
            self._end_overdue(now)

    def _send_due(self) -> None:
        now = self._clock.boottime()
        while self._paused and self._paused[0][0] <= now:
            _, _, request, node = heappop(self._paused)
            if request.deadline <= now:
                self._finish(request, _out_of_time())
            else:
                self._send_anew(request, node, now)

    def _end_overdue(self, now: float) -> None:
        requests = [request for _, _, request, _ in self._paused] + [request for request, _ in self._awaiting]
        for lane in self._lanes.values():
            requests += lane.unanswered.values()
            requests += lane.waiting
            requests += lane.held
        for request in requests:
            if request.deadline <= now:
                self._finish(request, _out_of_time())
        for lane in self._lanes.values():
            lane.drop_answered()


def _out_of_time() -> ApiError:
    return unavailable("No leader of the item's partition answered in time; try again")


_NOWHERE = Partition(0, 0, b"", b"", ())
"""Stands for the partition of a call until the map has one."""
