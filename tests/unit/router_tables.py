"""A catalog that changes as auto-admin would change it, and requests about tables, for tests."""

from __future__ import annotations

from typing import Any

import msgspec
import orjson
import pytest

from cluster.random_source import SeededRandom
from cluster.topology import CatalogTable, CatalogUpdate, Topology
from cluster.wire import storage_pb2
from dynamo.errors import ApiError, unavailable
from dynamo.table import Table, Throughput, decode_table
from router.catalog import table_name
from router.context import RequestContext
from router.operations import REGISTRY
from router.plan import Call, carry_out
from tests.unit.router_fakes import CLUSTER, MIDDLE, ONES, ZERO, ManualClock, partition, table

INVALID = "One or more parameter values were invalid: "
NOW = ManualClock().wall()
ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/"
PK, SK = {"AttributeName": "pk", "AttributeType": "S"}, {"AttributeName": "sk", "AttributeType": "N"}
HASH, RANGE = {"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}
UNITS = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 6}
ALL = {"ProjectionType": "ALL"}
COMPOSITE = {"AttributeDefinitions": [PK, SK], "KeySchema": [HASH, RANGE]}


class Catalog:
    """A catalog that does as auto-admin would. `later` tables turn up with a refresh; `conflicts` changes fail."""

    regions: tuple[str, ...] = ("us-east-1", "eu-west-1", "sa-east-1")

    def __init__(self, *tables: Table, later: tuple[Table, ...] = (), conflicts: int = 0) -> None:
        self.later, self.conflicts = later, conflicts
        self.version = 1
        self.topology = Topology()
        self.submitted: list[tuple[int, int]] = []
        self._take(tables)

    def _take(self, tables: tuple[Table, ...]) -> None:
        self.version += 1
        self.topology = Topology().with_update(
            CatalogUpdate(
                CLUSTER,
                1,
                0,
                self.version,
                tables=tuple(CatalogTable(table, self.version) for table in tables),
                partitions=tuple(
                    partition(10 * table.id + half, low, high, table_id=table.id)
                    for table in tables
                    for half, (low, high) in enumerate(((ZERO, MIDDLE[:-1] + b"\x00"), (MIDDLE[:-1] + b"\x01", ONES)))
                ),
            )
        )

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(record.table for record in self.topology.tables.values())

    async def refresh(self) -> None:
        self._take((*self.tables, *self.later))
        self.later = ()

    async def create_table(self, table: Table) -> Table:
        made = msgspec.structs.replace(table, id=90 + len(self.tables), status="ACTIVE")
        self._take((*self.tables, made))
        return made

    async def update_table(self, name: str, definition: bytes, schema_version: int, table_version: int = 0) -> Table:
        self.submitted.append((schema_version, table_version))
        if self.conflicts:
            self.conflicts -= 1
            raise ApiError("Conflict", "")
        changed = decode_table(definition)
        self._take((*(each for each in self.tables if each.name != name), changed))
        return changed

    async def delete_table(self, name: str) -> Table:
        gone = self.topology.table_named(name)
        assert gone is not None
        self._take(tuple(each for each in self.tables if each is not gone))
        return msgspec.structs.replace(gone, status="DELETING")

    def named(self, name: str) -> Table:
        found = self.topology.table_named(table_name(name))
        assert found is not None
        return found


class Executor:
    """Every leader has 10 items of 1,000 bytes, or none answers."""

    def __init__(self, *, leaders: bool = True) -> None:
        self.leaders = leaders

    async def call(self, call: Call) -> storage_pb2.Reply:
        assert isinstance(call.operation, storage_pb2.Statistics)
        if not self.leaders and not call.any_replica:
            raise unavailable("no leader")
        return storage_pb2.Reply(statistics=storage_pb2.StatisticsReply(items=10, size=1_000))


def context(catalog: Catalog, executor: Executor | None = None) -> RequestContext:
    """A request's context."""
    members: dict[str, Any] = dict.fromkeys(("request_id", "operation", "account", "invocation_id"), "")
    members |= {"catalog": catalog, "executor": executor or Executor()}
    return RequestContext(body_crc=0, clock=ManualClock(), random=SeededRandom(1), **members)


async def ask(operation: str, body: dict[str, Any], catalog: Catalog, executor: Executor | None = None) -> Any:
    """The answer's body."""
    asked = context(catalog, executor)
    return orjson.loads(await carry_out(REGISTRY[operation](body, asked), asked.executor))


async def error(operation: str, body: dict[str, Any], *tables: Table) -> ApiError:
    """The error that a request leads to."""
    with pytest.raises(ApiError) as raised:
        await ask(operation, body, Catalog(*tables))
    return raised.value


def new(**members: Any) -> dict[str, Any]:
    """A CreateTable request."""
    base = {"TableName": "abc", "AttributeDefinitions": [PK], "KeySchema": [HASH], "BillingMode": "PAY_PER_REQUEST"}
    return {**base, **members}


def provisioned(**members: Any) -> Table:
    """A provisioned table of 5 and 6 units."""
    return table("abc", throughput=Throughput(5, 6), **members)


def on_demand(**members: Any) -> Table:
    return table("abc", billing="PAY_PER_REQUEST", **members)
