"""One router's stream of requests: replies gather while others are made, and leave together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator

from cluster.clock import Clock
from cluster.transport import Stream, TransportError
from cluster.wire import common_pb2, storage_pb2
from storagenode.decisions import Result

BATCH_BYTES = 1 << 20
"""A message to a router is cut at about this size, far below what the network carries."""
TELL_SECONDS = 0.05
"""A router is told how long its request was here if it was for so long."""
_SURELY_SMALL = 2
"""So few replies fit in any message: an item has 400 KB, a page 1 MB and an item."""

_log = logging.getLogger(__name__)


def _cut(replies: list[storage_pb2.Reply]) -> Iterator[list[storage_pb2.Reply]]:
    """The replies in order, in messages of about `BATCH_BYTES`."""
    if len(replies) <= _SURELY_SMALL:
        yield replies
        return
    some: list[storage_pb2.Reply] = []
    size = 0
    for reply in replies:
        some.append(reply)
        size += reply.ByteSize()
        if size >= BATCH_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some


class Connection:
    """The node's end of a router's stream. Requests that take `slow_seconds` or more are told of in the log."""

    def __init__(self, stream: Stream, clock: Clock, slow_seconds: float) -> None:
        self._stream = stream
        self._clock = clock
        self._slow_seconds = slow_seconds
        self.received_at = clock.boottime()  # when the newest batch came
        self._replies: list[storage_pb2.Reply] = []
        self._wanted = asyncio.Event()

    def reply(self, reply: storage_pb2.Reply, responder: Responder) -> None:
        """Send this reply with the next batch."""
        seconds = self._clock.boottime() - responder.received_at
        if seconds >= TELL_SECONDS:
            reply.node_ms = int(seconds * 1000)
            if seconds >= self._slow_seconds:
                _log.warning("a request was slow", extra=responder.description(reply))
        self._replies.append(reply)
        self._wanted.set()

    async def serve(self, handle: Callable[[storage_pb2.RequestBatch, Connection], None]) -> None:
        """Hand every batch to `handle` until the stream ends."""
        writer = asyncio.ensure_future(self._write())
        try:
            while (message := await self._stream.receive()) is not None:
                self.received_at = self._clock.boottime()
                handle(storage_pb2.RequestBatch.FromString(message), self)
        finally:
            writer.cancel()

    async def _write(self) -> None:
        try:
            while True:
                await self._wanted.wait()
                self._wanted.clear()
                replies, self._replies = self._replies, []
                for some in _cut(replies):
                    await self._stream.send(storage_pb2.ReplyBatch(replies=some).SerializeToString())
        except TransportError:
            self._stream.close()


class Responder:
    """Where one request's reply goes."""

    __slots__ = ("_connection", "_id", "_request", "received_at")

    def __init__(self, connection: Connection, request: storage_pb2.Request) -> None:
        self._connection = connection
        self._request = request
        self._id = request.id
        self.received_at = connection.received_at

    def write(self, reply: Result | storage_pb2.Failure) -> None:
        """Answer a write."""
        if isinstance(reply, storage_pb2.WriteReply):
            self._reply(storage_pb2.Reply(id=self._id, write=reply))
        elif isinstance(reply, storage_pb2.TransactReply):
            self._reply(storage_pb2.Reply(id=self._id, transact=reply))
        else:
            self._reply(storage_pb2.Reply(id=self._id, failure=reply))

    def transact_get(self, reply: storage_pb2.TransactGetReply) -> None:
        """Answer a transaction's reads."""
        self._reply(storage_pb2.Reply(id=self._id, transact_get=reply))

    def item(self, reply: storage_pb2.ItemReply) -> None:
        """Answer a get."""
        self._reply(storage_pb2.Reply(id=self._id, item=reply))

    def query(self, reply: storage_pb2.QueryReply) -> None:
        """Answer a query."""
        self._reply(storage_pb2.Reply(id=self._id, query=reply))

    def stream(self, reply: storage_pb2.StreamReply) -> None:
        """Answer a read of a stream."""
        self._reply(storage_pb2.Reply(id=self._id, stream=reply))

    def statistics(self, reply: storage_pb2.StatisticsReply) -> None:
        """Answer a request for statistics."""
        self._reply(storage_pb2.Reply(id=self._id, statistics=reply))

    def changes(self, reply: storage_pb2.ChangesReply) -> None:
        """Answer a read of changes for a region."""
        self._reply(storage_pb2.Reply(id=self._id, changes=reply))

    def region(self, reply: storage_pb2.RegionReply) -> None:
        """Answer how far a region has come."""
        self._reply(storage_pb2.Reply(id=self._id, region=reply))

    def digest(self, reply: storage_pb2.DigestReply) -> None:
        """Answer a checksum of a range."""
        self._reply(storage_pb2.Reply(id=self._id, digest=reply))

    def range(self, reply: storage_pb2.RangeReply) -> None:
        """Answer with the rows of a range."""
        self._reply(storage_pb2.Reply(id=self._id, range=reply))

    def refuse(self, refusal: common_pb2.Refusal) -> None:
        """Tell the router what it has wrong; no client sees this."""
        self._reply(storage_pb2.Reply(id=self._id, refusal=refusal))

    def description(self, reply: storage_pb2.Reply) -> dict[str, object]:
        """What a line in the log should say of the request and its end."""
        request = self._request
        return {
            "request_id": request.request_id,
            "operation": request.WhichOneof("operation"),
            "partition": request.partition,
            "result": reply.WhichOneof("result"),
            "node_ms": reply.node_ms,
        }

    def _reply(self, reply: storage_pb2.Reply) -> None:
        self._connection.reply(reply, self)
