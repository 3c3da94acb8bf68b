"""Plans of operations, without a network: what a request asks nodes for, and what it makes of their replies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import orjson
import pytest

from cluster.random_source import SeededRandom
from cluster.topology import Topology
from cluster.wire import storage_pb2
from dynamo.errors import ApiError, resource_not_found
from dynamo.table import Index, KeySchema, Table
from router.catalog import table_name
from router.context import RequestContext
from router.plan import Call, Plan, Single, carry_out
from tests.unit.router_fakes import ManualClock, partition, table, topology

HASH = table("hash", id_=1, attribute_types={"pk": "S"}, keys=KeySchema(("pk",)))
NUMBERS = table("numbers", id_=2, attribute_types={"pk": "S", "sk": "N"})
BINARY = table("binary", id_=3, attribute_types={"pk": "B", "sk": "B"})
COMPOSITE = table("composite", id_=4)
INDEXED = table(
    "indexed",
    id_=5,
    attribute_types={"pk": "S", "sk": "S", "l": "S", "g": "N", "a": "S", "b": "N"},
    local_indexes=(Index("lsi", KeySchema(("pk",), ("l",)), "ALL"),),
    global_indexes=(
        Index("gsi", KeySchema(("g",)), "KEYS_ONLY", table=6),
        Index("wide", KeySchema(("g", "l"), ("a", "b")), "ALL", table=7),
        Index("new", KeySchema(("g",)), "ALL", table=8, status="CREATING", backfilling=True),
    ),
)
INDEX_ROWS = tuple(
    table("", id_=index.table, attribute_types=INDEXED.attribute_types, keys=index.keys, index_of=INDEXED.id)
    for index in INDEXED.global_indexes
)
TABLES = (HASH, NUMBERS, BINARY, COMPOSITE, INDEXED, *INDEX_ROWS)
CUTS = (bytes(16), b"\x40" + bytes(15), b"\xa0" + bytes(15))
ENDS = (b"\x3f" + b"\xff" * 15, b"\x9f" + b"\xff" * 15, b"\xff" * 16)
PARTITIONS = tuple(
    partition(10 * each.id + i, low, high, table_id=each.id)
    for each in TABLES
    for i, (low, high) in enumerate(zip(CUTS, ENDS, strict=True))
)

Node = Callable[[Call], storage_pb2.Reply | ApiError]
PlanOperation = Callable[[dict[str, Any], RequestContext], Plan]


class PlanCatalog:
    """A catalog with the tables above; `later` ones turn up with a refresh."""

    regions = ("us-east-1", "eu-west-1")

    def __init__(self, *later: Table) -> None:
        self.topology: Topology = topology({1: "n1:1", 2: "n2:1", 3: "n3:1"}, TABLES, PARTITIONS)
        self._later = later
        self.refreshes = 0

    def find(self, name: str) -> Table | None:
        return self.topology.table_named(table_name(name))

    def table(self, name: str) -> Table:
        found = self.find(name)
        if found is None:
            raise resource_not_found()
        return found

    async def refresh(self) -> None:
        self.refreshes += 1
        await asyncio.sleep(0)
        self.topology = topology({1: "n1:1"}, (*TABLES, *self._later), PARTITIONS, 2)


class PlanExecutor:
    """Hands each call to `node` and keeps it."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.calls: list[Call] = []

    async def call(self, call: Call) -> storage_pb2.Reply:
        (result,) = await self.call_all([call])
        if isinstance(result, ApiError):
            raise result
        return result

    async def call_all(self, calls: Sequence[Call]) -> list[storage_pb2.Reply | ApiError]:
        self.calls += calls
        await asyncio.sleep(0)
        return [self.node(call) for call in calls]


def no_node(_: Call) -> storage_pb2.Reply:
    """For requests that must not reach a node."""
    raise AssertionError("a node was asked")


def context(executor: PlanExecutor | None = None, catalog: PlanCatalog | None = None, **members: Any) -> RequestContext:
    """A request's context."""
    settings: dict[str, Any] = {
        "request_id": "R1",
        "operation": "",
        "account": "",
        "invocation_id": "",
        "body_crc": 0,
        "catalog": catalog or PlanCatalog(),
        "executor": executor or PlanExecutor(no_node),
        "clock": ManualClock(),
        "random": SeededRandom(1),
    }
    return RequestContext(**{**settings, **members})


async def answer(plan: PlanOperation, body: dict[str, Any], node: Node, **members: Any) -> tuple[Any, list[Call]]:
    """The answer's body and the calls that led to it."""
    executor = PlanExecutor(node)
    result = await carry_out(plan(body, context(executor, **members)), executor)
    return orjson.loads(result), executor.calls


def call_of(plan: PlanOperation, body: dict[str, Any]) -> Any:
    """The node operation of a request that needs one call."""
    made = plan(body, context())
    assert isinstance(made, Single)
    return made.call.operation


async def refusal(plan: PlanOperation, body: dict[str, Any]) -> ApiError:
    """The error of a request that must be refused before any node is asked."""
    executor = PlanExecutor(no_node)
    with pytest.raises(ApiError) as raised:
        await carry_out(plan(body, context(executor)), executor)
    return raised.value


def written(**members: Any) -> Node:
    """A node that does a write."""
    return lambda _: storage_pb2.Reply(write=storage_pb2.WriteReply(**members))


def failed(type_: str, message: str, item: bytes = b"") -> Node:
    """A node that fails."""
    return lambda _: storage_pb2.Reply(failure=storage_pb2.Failure(type=type_, message=message, item=item))
