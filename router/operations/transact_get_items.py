"""TransactGetItems: up to 100 items of any tables, as they are at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cluster.wire import storage_pb2
from dynamo.errors import ApiError, validation
from dynamo.expressions.compile import Compiled
from dynamo.expressions.key_rules import check_key_paths
from dynamo.expressions.request import compile_request
from dynamo.keys import row_key, validate_key
from dynamo.table import Table
from dynamo.values import Item, canonical_item
from router.consumed import body_of
from router.context import RequestContext
from router.operations.tables import with_tables
from router.operations.transaction_checks import Invalid, check_items_once, raise_invalid
from router.plan import Plan, Work
from router.transaction_answers import read_capacity
from router.transaction_reads import read_together
from router.transactions import Read

ITEMS_SIZE_MAX = 4 << 20
"""DynamoDB's bytes of all items together."""


@dataclass(slots=True)
class _Get:
    """One Get as it was sent: its table, expressions and key."""

    name: str
    compiled: Compiled
    key: Item


def plan(body: dict[str, Any], context: RequestContext) -> Plan:
    """What a TransactGetItems request asks for. Raises ApiError."""
    gets = [_get(member["Get"]) for member in body["TransactItems"]]

    def for_tables(tables: dict[str, Table]) -> Plan:
        reads = _reads(gets, tables)

        async def run() -> bytes:
            return _body(body, reads, await read_together(context, reads))

        return Work(run)

    return with_tables(context, list(dict.fromkeys(get.name for get in gets)), for_tables)


def _get(parameters: dict[str, Any]) -> _Get:
    return _Get(parameters["TableName"], compile_request("GetItem", parameters), canonical_item(parameters["Key"]))


def _reads(gets: Sequence[_Get], tables: dict[str, Table]) -> list[Read]:
    reads: list[Read] = []
    invalid: Invalid = {}
    for index, get in enumerate(gets):
        table = tables[get.name]
        try:
            check_key_paths(get.compiled, table)
            validate_key(table, get.key)
        except ApiError as error:
            invalid[index] = error
        else:
            row = row_key(table.keys, table.attribute_types, get.key)
            reads.append(Read(index, table, row, get.compiled.encoded_projection))
    check_items_once(reads)
    raise_invalid(len(gets), invalid)
    return reads


def _body(body: dict[str, Any], reads: Sequence[Read], items: Sequence[storage_pb2.ItemReply]) -> bytes:
    sizes = [item.size for item in items]
    if sum(sizes) > ITEMS_SIZE_MAX:
        raise validation("The aggregate size of the items in the transaction exceeded 4 MB")
    # What the projection leaves nothing of is left out.
    shown = [b'{"Item":%b}' % item.item if len(item.item) > len("{}") else b"{}" for item in items]
    return body_of(
        read_capacity(reads, sizes, body.get("ReturnConsumedCapacity")), b',"Responses":[%b]' % b",".join(shown)
    )
