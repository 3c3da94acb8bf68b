"""Storage nodes, a catalog and a clock for tests of the router: scripted, over the memory transport."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from cluster.memory_transport import MemoryNetwork, MemoryServer, MemoryTransport
from cluster.topology import CatalogTable, CatalogUpdate, NodePlace, Partition, ReplicaPlace, Topology
from cluster.transport import Handlers, Stream
from cluster.wire import common_pb2, storage_pb2
from dynamo.table import KeySchema, Table

CLUSTER = "c1"
ZERO, MIDDLE, ONES = bytes(16), b"\x80" + bytes(15), b"\xff" * 16
Refusal = common_pb2.Refusal


class ManualClock:
    """Moves only when told."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def boottime(self) -> float:
        return self.now

    def wall(self) -> float:
        return 1_700_000_000.0 + self.now


def table(name: str = "t", *, id_: int = 7, schema_version: int = 1, **members: object) -> Table:
    """An active table with partition key `pk` (S) and sort key `sk` (S), unless told otherwise."""
    settings: dict[str, object] = {
        "attribute_types": {"pk": "S", "sk": "S"},
        "keys": KeySchema(("pk",), ("sk",)),
        "created": 0.0,
        "status": "ACTIVE",
    }
    return Table(id=id_, name=name, schema_version=schema_version, **{**settings, **members})  # type: ignore[arg-type]


def partition(
    id_: int, low: bytes, high: bytes, *, table_id: int = 7, nodes: tuple[int, ...] = (1, 2, 3), preferred: int = 0
) -> Partition:
    """A partition whose replica on node n has the id 10·id_ + n; `preferred` is a node."""
    replicas = tuple(ReplicaPlace(10 * id_ + node, node, f"z{node}") for node in nodes)
    return Partition(id_, table_id, low, high, replicas, preferred_leader=10 * id_ + preferred if preferred else 0)


def topology(
    addresses: dict[int, str],
    tables: tuple[Table, ...] = (),
    partitions: tuple[Partition, ...] = (),
    version: int = 1,
) -> Topology:
    """A view of nodes (id → address), tables and partitions."""
    return Topology().with_update(
        CatalogUpdate(
            CLUSTER,
            1,
            0,
            version,
            tables=tuple(CatalogTable(table, version) for table in tables),
            partitions=partitions,
            nodes=tuple(NodePlace(id_, f"n{id_}", "r", f"z{id_}", address) for id_, address in addresses.items()),
        )
    )


class FixedCatalog:
    """A catalog that changes when a test says so."""

    def __init__(self, view: Topology) -> None:
        self.topology = view
        self.after_refresh: Topology | None = None
        self.refreshes = 0

    async def refresh(self) -> None:
        self.refreshes += 1
        await asyncio.sleep(0)
        if self.after_refresh is not None:
            self.topology = self.after_refresh


Answer = Callable[[storage_pb2.Request], storage_pb2.Reply | None]


def written(_: storage_pb2.Request) -> storage_pb2.Reply:
    """A node that does every write."""
    return storage_pb2.Reply(write=storage_pb2.WriteReply(new_size=1))


def refused(reason: common_pb2.Refusal.Reason, **members: int) -> Answer:
    """A node that refuses everything."""
    return lambda _: storage_pb2.Reply(refusal=Refusal(reason=reason, **members))  # type: ignore[arg-type]


def silent(_: storage_pb2.Request) -> None:
    """A node that takes requests and never answers."""
    return


@dataclass
class FakeNode:
    """A storage node that answers as `answer` says (None: not at all) and keeps what it got."""

    id: int
    answer: Answer = written
    batches: list[storage_pb2.RequestBatch] = field(default_factory=list)
    server: MemoryServer | None = None
    stream: Stream | None = None

    @property
    def requests(self) -> list[storage_pb2.Request]:
        return [request for batch in self.batches for request in batch.requests]

    async def reply_late(self, request: storage_pb2.Request, reply: storage_pb2.Reply) -> None:
        """Answer a request that `answer` left unanswered."""
        assert self.stream is not None, "nobody has asked anything"
        reply.id = request.id
        await self.stream.send(storage_pb2.ReplyBatch(replies=[reply]).SerializeToString())

    async def serve(self, stream: Stream) -> None:
        self.stream = stream
        while (message := await stream.receive()) is not None:
            batch = storage_pb2.RequestBatch.FromString(message)
            self.batches.append(batch)
            replies = []
            for request in batch.requests:
                reply = self.answer(request)
                if reply is not None:
                    reply.id = request.id
                    replies.append(reply)
            if replies:
                await stream.send(storage_pb2.ReplyBatch(replies=replies).SerializeToString())

    def listen(self, network: MemoryNetwork) -> str:
        """Serve; returns the address."""
        self.server = network.listen(f"n{self.id}:1", Handlers(streams={"Storage/Requests": self.serve}))
        return self.server.address


class Nodes:
    """Three nodes on a network of their own."""

    def __init__(self, **answers: Answer) -> None:
        self.network = MemoryNetwork()
        self.transport = MemoryTransport(self.network)
        self.nodes = {id_: FakeNode(id_, answers.get(f"n{id_}", written)) for id_ in (1, 2, 3)}
        self.addresses = {id_: node.listen(self.network) for id_, node in self.nodes.items()}

    def __getitem__(self, id_: int) -> FakeNode:
        return self.nodes[id_]

    def counts(self) -> tuple[int, ...]:
        """How many requests each node got."""
        return tuple(len(node.requests) for node in self.nodes.values())


async def settle() -> None:
    """Let everything that is ready run."""
    for _ in range(30):
        await asyncio.sleep(0)
