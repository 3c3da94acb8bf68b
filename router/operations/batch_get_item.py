"""BatchGetItem: up to 100 items of any tables, each read on its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson

from cluster.wire import storage_pb2
from dynamo.capacity import read_units
from dynamo.errors import ApiError, validation
from dynamo.expressions.compile import Compiled
from dynamo.expressions.key_rules import check_key_paths
from dynamo.expressions.request import compile_request
from dynamo.keys import HASH_SIZE, row_key, validate_key
from dynamo.table import Table
from dynamo.values import Item, canonical_item
from router.consumed import body_of, consumed
from router.context import RequestContext
from router.operations.replies import failure, retryable
from router.operations.tables import with_tables
from router.plan import Call, Plan, Work

KEYS_MAX = 100
ANSWER_BYTES_MAX = 16 << 20
"""DynamoDB's bytes of all items of one answer; the rest of the keys come back in UnprocessedKeys."""
READS_AT_ONCE = 40
"""Items of 400 KB that surely fit into one message from a node (32 MB), base64 and all."""


@dataclass(slots=True)
class _Wanted:
    """One table's part: canonical keys in the request's order, and what became of it."""

    request: dict[str, Any]
    keys: list[Item]
    compiled: Compiled
    items: list[bytes] = field(default_factory=list)
    units: float = 0.0
    unprocessed: list[Any] = field(default_factory=list)

    @property
    def consistent(self) -> bool:
        return bool(self.request.get("ConsistentRead", False))


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """What a BatchGetItem request asks for. Raises ApiError."""
    requests: dict[str, dict[str, Any]] = body["RequestItems"]
    wanted = {name: _wanted(request) for name, request in requests.items()}
    if sum(len(part.keys) for part in wanted.values()) > KEYS_MAX:
        raise validation("Too many items requested for the BatchGetItem call")

    def for_tables(tables: dict[str, Table]) -> Plan:
        calls = [call for name, table in tables.items() for call in _calls(table, wanted[name], context)]

        async def run() -> bytes:
            await _read(context, calls, [(part, raw) for part in wanted.values() for raw in part.request["Keys"]])
            return _body(body, tables, wanted)

        return Work(run)

    return with_tables(context, list(wanted), for_tables)


def _wanted(request: dict[str, Any]) -> _Wanted:
    compiled = compile_request("GetItem", request)
    return _Wanted(request, [canonical_item(key) for key in request["Keys"]], compiled)


def _calls(table: Table, part: _Wanted, context: RequestContext) -> list[Call]:
    check_key_paths(part.compiled, table)
    for key in part.keys:
        validate_key(table, key)
    # As they were written: DynamoDB takes 1000 and 1e3 for two keys here, though not in BatchWriteItem.
    if len({orjson.dumps(key, option=orjson.OPT_SORT_KEYS) for key in part.request["Keys"]}) < len(part.keys):
        raise validation("Provided list of item keys contains duplicates")
    rows = [row_key(table.keys, table.attribute_types, key) for key in part.keys]
    consistent, projection = part.consistent, part.compiled.encoded_projection
    return [
        Call(
            table,
            row[:HASH_SIZE],
            storage_pb2.Get(key=row, consistent=consistent, projection=projection),
            0,
            not consistent,
            context.request_id,
        )
        for row in rows
    ]


class _Answer:
    """The answer as it grows. Keys are told in the request's order."""

    def __init__(self) -> None:
        self._room = ANSWER_BYTES_MAX
        self._read = 0
        self._last_error: ApiError | None = None

    @property
    def full(self) -> bool:
        """Whether nothing more goes in, small as it may be."""
        return self._room <= 0

    def add(self, part: _Wanted, raw: Any, result: storage_pb2.Reply | ApiError) -> None:
        """Take in what one key led to. Raises ApiError where trying again would not help."""
        if not isinstance(result, ApiError) and result.HasField("failure"):
            result = failure(result)
        if isinstance(result, ApiError):
            if not retryable(result):
                raise result
            self._last_error = result
            part.unprocessed.append(raw)
            return
        self._read += 1
        size = result.item.size
        if size > self._room:
            self._room = 0
            part.unprocessed.append(raw)
            return
        self._room -= size
        part.units += read_units(size, part.consistent)
        if result.item.item:
            part.items.append(result.item.item)

    def check(self) -> None:
        """Raises the error of the last key if none at all could be read."""
        if self._last_error is not None and not self._read:
            raise self._last_error


async def _read(context: RequestContext, calls: list[Call], members: list[tuple[_Wanted, Any]]) -> None:
    """Read every key, some at a time, until the answer is full. `members`: each key's table part, and it as sent."""
    answer = _Answer()
    for start in range(0, len(calls), READS_AT_ONCE):
        results: list[storage_pb2.Reply | ApiError] = []
        if not answer.full:
            results = await context.executor.call_all(calls[start : start + READS_AT_ONCE])
        for index, (part, raw) in enumerate(members[start : start + READS_AT_ONCE]):
            if answer.full:
                part.unprocessed.append(raw)
            else:
                answer.add(part, raw, results[index])
    answer.check()


def _body(body: dict[str, Any], tables: dict[str, Table], wanted: dict[str, _Wanted]) -> bytes:
    responses = b",".join(b"%b:[%b]" % (orjson.dumps(name), b",".join(part.items)) for name, part in wanted.items())
    unprocessed = {
        name: {**part.request, "Keys": part.unprocessed} for name, part in wanted.items() if part.unprocessed
    }
    detail = body.get("ReturnConsumedCapacity", "NONE")
    capacity = b""
    if detail != "NONE":
        shown = [consumed(table, wanted[name].units, detail) for name, table in tables.items()]
        capacity = b',"ConsumedCapacity":' + orjson.dumps(shown)
    return body_of(b',"Responses":{%b}' % responses, b',"UnprocessedKeys":' + orjson.dumps(unprocessed), capacity)
