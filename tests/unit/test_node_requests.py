"""A router's stream at a storage node: replies gather, and requests that took long are told of."""

from __future__ import annotations

import asyncio

import pytest

from cluster.wire import storage_pb2
from storagenode.requests import TELL_SECONDS, Connection, Responder
from tests.unit.router_fakes import ManualClock


class Router:
    """The router's end: sends batches, and keeps what comes back."""

    def __init__(self, *batches: storage_pb2.RequestBatch) -> None:
        self._batches = [batch.SerializeToString() for batch in batches]
        self.replies: list[storage_pb2.Reply] = []
        self.messages = 0
        self.answered = asyncio.Event()

    async def receive(self) -> bytes | None:
        if self._batches:
            return self._batches.pop(0)
        await self.answered.wait()
        return None

    async def send(self, message: bytes) -> None:
        self.messages += 1
        self.replies += storage_pb2.ReplyBatch.FromString(message).replies
        self.answered.set()

    def close(self) -> None:
        """Nothing is left open."""


def batch(*ids: int) -> storage_pb2.RequestBatch:
    requests = [storage_pb2.Request(id=id_, request_id=f"R{id_}", partition=7, get={}) for id_ in ids]
    return storage_pb2.RequestBatch(requests=requests)


async def test_replies_that_are_made_together_leave_together() -> None:
    router, clock = Router(batch(1, 2, 3)), ManualClock()

    def handle(requests: storage_pb2.RequestBatch, connection: Connection) -> None:
        for request in requests.requests:
            Responder(connection, request).item(storage_pb2.ItemReply(size=request.id))

    await Connection(router, clock, 1.0).serve(handle)
    assert router.messages == 1
    assert [(reply.id, reply.item.size, reply.node_ms) for reply in router.replies] == [(1, 1, 0), (2, 2, 0), (3, 3, 0)]


@pytest.mark.parametrize(("seconds", "told", "logged"), [(TELL_SECONDS / 2, 0, 0), (0.5, 500, 0), (1.5, 1_500, 1)])
async def test_a_router_hears_how_long_its_request_was_here(
    seconds: float, told: int, logged: int, caplog: pytest.LogCaptureFixture
) -> None:
    router, clock = Router(batch(1)), ManualClock()

    def handle(requests: storage_pb2.RequestBatch, connection: Connection) -> None:
        responder = Responder(connection, requests.requests[0])
        clock.now += seconds
        responder.item(storage_pb2.ItemReply())

    await Connection(router, clock, 1.0).serve(handle)
    assert [reply.node_ms for reply in router.replies] == [told]
    lines = [vars(record) for record in caplog.records if record.msg == "a request was slow"]
    assert [(line["request_id"], line["operation"], line["partition"]) for line in lines] == [("R1", "get", 7)] * logged
