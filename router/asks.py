"""What a request asks for, in the language of policies: actions, resources, and what conditions can look at.

Source: "Actions, resources, and condition keys for Amazon DynamoDB" in AWS's service authorization reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, NamedTuple

from dynamo.errors import ApiError
from dynamo.expressions import tree
from dynamo.expressions.request import compile_request
from dynamo.table import KeySchema, Table
from dynamo.values import AttributeValue, canonical_value
from router.catalog import table_name
from router.context import ACCOUNT_ID
from router.partiql.parse import Parsed, check_together, parse
from router.partiql.planning import item_key, plan_select
from router.partiql.statements import Delete, Exists, Insert, Select, Update, source_of
from router.streams import decode_iterator

Details = Callable[[Table | None, AbstractSet[str]], dict[str, tuple[str, ...]]]
"""Values of the keys dynamodb:…, which need the table's key schema (the table may not exist). The second argument says
which are asked for; others may be there as well."""

LEADING_KEYS = "dynamodb:leadingkeys"
ATTRIBUTES = "dynamodb:attributes"
SELECT = "dynamodb:select"
RETURN_VALUES = "dynamodb:returnvalues"
RETURN_CONSUMED_CAPACITY = "dynamodb:returnconsumedcapacity"
ENCLOSING_OPERATION = "dynamodb:enclosingoperation"
FULL_TABLE_SCAN = "dynamodb:fulltablescan"


class Ask(NamedTuple):
    """`action` such as "dynamodb:GetItem" on `resource`, an ARN. `table` is the name of the table that the resource is,
    or is of; "" for none. `exists` is False where the table is only to be made."""

    action: str
    resource: str
    table: str = ""
    details: Details = lambda _table, _wanted: {}
    exists: bool = True


def asks_of(operation: str, body: dict[str, Any], region: str) -> Iterator[Ask]:
    """What a request of the right shape asks for. Raises ApiError for one that cannot be understood."""
    namer = _NAMERS.get(operation)
    if namer is not None:
        yield from namer(body, _Arns(region))
        return
    action = f"dynamodb:{operation}"
    arns = _Arns(region)
    name = body.get("TableName") or body.get("ResourceArn") or body.get("TableArn") or body.get("SourceTableName")
    if isinstance(name, str):
        yield Ask(action, arns.table(name), table_name(name))
    else:
        yield Ask(action, "*")


class _Arns:
    """The ARNs of one region. They are put together anew, so that no spelling of an ARN slips past a policy."""

    def __init__(self, region: str) -> None:
        self._prefix = f"arn:aws:dynamodb:{region}:{ACCOUNT_ID}:table/"

    def table(self, name: str) -> str:
        return self._prefix + table_name(name)

    def index(self, name: str, index: str | None) -> str:
        return f"{self.table(name)}/index/{index}" if index else self.table(name)

    def stream(self, arn: str) -> str:
        return f"{self.table(arn)}/stream/{arn.partition('/stream/')[2]}"


# --- single items, queries and scans ---


def _on_item(operation: str, body: dict[str, Any], arns: _Arns) -> Iterator[Ask]:
    name = body["TableName"]
    details = partial(_item_details, operation, body)
    yield Ask(f"dynamodb:{operation}", arns.table(name), table_name(name), details)


def _item_details(
    operation: str, body: Mapping[str, Any], table: Table | None, wanted: AbstractSet[str]
) -> dict[str, tuple[str, ...]]:
    item = body["Item"] if "Item" in body else body["Key"]
    details: dict[str, tuple[str, ...]] = {}
    if ATTRIBUTES in wanted:
        compiled = compile_request("DeleteItem" if operation == "ConditionCheckItem" else operation, body)
        trees = (compiled.condition, compiled.update, compiled.projection)
        details[ATTRIBUTES] = _sorted({*item, *tree.attributes_of(*trees)})
    if table is not None:
        details[LEADING_KEYS] = _leading([item], table.keys)
    if operation == "GetItem":
        details[SELECT] = (_selected(body),)
    elif operation != "ConditionCheckItem":
        details[RETURN_VALUES] = _return_values(body)
    return _with_capacity(details, body)


def _return_values(body: Mapping[str, Any]) -> tuple[str, ...]:
    """A failed condition may show the whole item as well: that counts as a value of ReturnValues, too."""
    wanted = {body.get("ReturnValues") or "NONE"}
    shown = body.get("ReturnValuesOnConditionCheckFailure")
    return _sorted(wanted | {shown} if shown and shown != "NONE" else wanted)


def _on_rows(operation: str, body: dict[str, Any], arns: _Arns) -> Iterator[Ask]:
    name = body["TableName"]
    resource = arns.index(name, body.get("IndexName"))
    yield Ask(f"dynamodb:{operation}", resource, table_name(name), partial(_row_details, operation, body))


def _row_details(
    operation: str, body: dict[str, Any], table: Table | None, _wanted: AbstractSet[str]
) -> dict[str, tuple[str, ...]]:
    compiled = compile_request(operation, body)
    names = tree.attributes_of(compiled.key_condition, compiled.filter, compiled.projection)
    details = {ATTRIBUTES: _sorted(names), SELECT: (_selected(body),)}
    if compiled.key_condition is not None and table is not None:
        keys = _keys(table, body.get("IndexName"))
        details[LEADING_KEYS] = _sorted(_equated(compiled.key_condition, compiled.values, keys))
    return _with_capacity(details, body)


def _selected(body: Mapping[str, Any]) -> str:
    """The Select of a read, given or meant."""
    given = body.get("Select")
    if given:
        return str(given)
    if body.get("ProjectionExpression") or body.get("AttributesToGet"):
        return "SPECIFIC_ATTRIBUTES"
    return "ALL_PROJECTED_ATTRIBUTES" if body.get("IndexName") else "ALL_ATTRIBUTES"


# --- batches and transactions: judged table by table, and item by item ---


def _on_batch_get(body: dict[str, Any], arns: _Arns) -> Iterator[Ask]:
    for name, request in body["RequestItems"].items():
        details = partial(_batch_get_details, body, request)
        yield Ask("dynamodb:BatchGetItem", arns.table(name), table_name(name), details)


def _batch_get_details(
    body: Mapping[str, Any], request: Mapping[str, Any], table: Table | None, _wanted: AbstractSet[str]
) -> dict[str, tuple[str, ...]]:
    keys = request["Keys"]
    names = {name for key in keys for name in key} | tree.attributes_of(compile_request("GetItem", request).projection)
    details = {ATTRIBUTES: _sorted(names), SELECT: (_selected(request),)}
    if table is not None:
        details[LEADING_KEYS] = _leading(keys, table.keys)
    return _with_capacity(details, body)


def _on_batch_write(body: dict[str, Any], arns: _Arns) -> Iterator[Ask]:
    for name, requests in body["RequestItems"].items():
        details = partial(_batch_write_details, body, requests)
        yield Ask("dynamodb:BatchWriteItem", arns.table(name), table_name(name), details)


def _batch_write_details(
    body: Mapping[str, Any], requests: list[dict[str, Any]], table: Table | None, _wanted: AbstractSet[str]
) -> dict[str, tuple[str, ...]]:
    items = [
        request["PutRequest"]["Item"] if request.get("PutRequest") else request["DeleteRequest"]["Key"]
        for request in requests
        if request.get("PutRequest") or request.get("DeleteRequest")
    ]
    details = {ATTRIBUTES: _sorted({name for item in items for name in item})}
    if table is not None:
        details[LEADING_KEYS] = _leading(items, table.keys)
    return _with_capacity(details, body)


_ACTIONS = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}


def _on_transaction(enclosing: str, body: dict[str, Any], arns: _Arns) -> Iterator[Ask]:
    for member in body["TransactItems"]:
        for kind, request in member.items():
            operation = _ACTIONS.get(kind, "GetItem")
            for ask in _on_item(operation, request, arns):
                yield ask._replace(details=partial(_within, enclosing, ask.details))


def _within(
    enclosing: str, details: Details, table: Table | None, wanted: AbstractSet[str]
) -> dict[str, tuple[str, ...]]:
    return {**details(table, wanted), ENCLOSING_OPERATION: (enclosing,)}


# --- PartiQL ---


def _on_statement(body: dict[str, Any], arns: _Arns) -> Iterator[Ask]:
    yield _asked_by(body["Statement"], body, arns)


def _on_statements(member: str, body: dict[str, Any], arns: _Arns) -> Iterator[Ask]:
    check_together(each["Statement"] for each in body[member])
    for each in body[member]:
        try:
            ask = _asked_by(each["Statement"], each, arns)
        except ApiError:
            if member == "TransactStatements":
                raise
            continue  # it is answered with its error, and nothing is done
        if member == "TransactStatements":
            ask = ask._replace(details=partial(_within, "ExecuteTransaction", ask.details))
        yield ask


def _asked_by(text: str, body: dict[str, Any], arns: _Arns) -> Ask:
    parsed = parse(text)
    source = source_of(parsed.statement)
    kind = "Select" if isinstance(parsed.statement, Exists) else type(parsed.statement).__name__
    resource = arns.index(source.table, source.index)
    details = partial(_statement_details, parsed, body)
    return Ask(f"dynamodb:PartiQL{kind}", resource, table_name(source.table), details)


def _statement_details(
    parsed: Parsed, body: Mapping[str, Any], table: Table | None, _wanted: AbstractSet[str]
) -> dict[str, tuple[str, ...]]:
    values = parsed.fill(body.get("Parameters"))
    statement = parsed.statement
    if isinstance(statement, Exists):
        statement = statement.select
    match statement:
        case Select():
            return _select_details(statement, values, table)
        case Insert():
            item = values[statement.item].get("M") or {}
            details = {ATTRIBUTES: _sorted(set(item)), RETURN_VALUES: _return_values(body)}
            if table is not None:
                details[LEADING_KEYS] = _leading([item], table.keys)
            return details
        case Update() | Delete():
            names = tree.attributes_of(statement.where, statement.update if isinstance(statement, Update) else None)
            shown = {"ReturnValues": statement.returning, **_shown_on_failure(body)}
            details = {ATTRIBUTES: _sorted(names), RETURN_VALUES: _return_values(shown)}
            if table is not None and (found := item_key(statement.where, values, table.keys)) is not None:
                details[LEADING_KEYS] = _leading([found[0]], table.keys)
            return details


def _shown_on_failure(body: Mapping[str, Any]) -> dict[str, Any]:
    name = "ReturnValuesOnConditionCheckFailure"
    return {name: body[name]} if name in body else {}


def _select_details(statement: Select, values: list[AttributeValue], table: Table | None) -> dict[str, tuple[str, ...]]:
    names = tree.attributes_of(statement.where, statement.projection)
    selected = "ALL_ATTRIBUTES" if statement.projection is None else "SPECIFIC_ATTRIBUTES"
    details = {ATTRIBUTES: _sorted(names), SELECT: (selected,)}
    if table is not None:
        keys = _keys(table, statement.source.index)
        ranges = plan_select(statement, values, keys).ranges
        details[FULL_TABLE_SCAN] = ("false" if ranges else "true",)
        if ranges:
            found = {text for each in ranges for text in _equated(each, values, keys)}
            details[LEADING_KEYS] = _sorted(found)
    return details


# --- tables and streams ---


def _on_new_table(body: dict[str, Any], arns: _Arns) -> Iterator[Ask]:
    name = body["TableName"]
    wanted = ["CreateTable"]
    wanted += ["TagResource"] if body.get("Tags") else []
    wanted += ["PutResourcePolicy"] if body.get("ResourcePolicy") else []
    for operation in wanted:
        yield Ask(f"dynamodb:{operation}", arns.table(name), table_name(name), exists=False)


def _on_all_tables(body: dict[str, Any], arns: _Arns) -> Iterator[Ask]:  # noqa: ARG001
    yield Ask("dynamodb:ListTables", arns.table("*"))


def _on_stream(operation: str, body: dict[str, Any], arns: _Arns) -> Iterator[Ask]:
    arn = decode_iterator(body["ShardIterator"])[0] if operation == "GetRecords" else body["StreamArn"]
    yield Ask(f"dynamodb:{operation}", arns.stream(arn), table_name(arn))


def _on_streams(body: dict[str, Any], arns: _Arns) -> Iterator[Ask]:
    name = body.get("TableName")
    yield Ask("dynamodb:ListStreams", arns.stream(f"{arns.table(name or '*')}/stream/*"), table_name(name or ""))


_Namer = Callable[[dict[str, Any], _Arns], Iterator[Ask]]
_NAMERS: dict[str, _Namer] = {
    **{each: partial(_on_item, each) for each in ("GetItem", "PutItem", "UpdateItem", "DeleteItem")},
    **{each: partial(_on_rows, each) for each in ("Query", "Scan")},
    **{each: partial(_on_transaction, each) for each in ("TransactGetItems", "TransactWriteItems")},
    **{each: partial(_on_stream, each) for each in ("DescribeStream", "GetShardIterator", "GetRecords")},
    "BatchGetItem": _on_batch_get,
    "BatchWriteItem": _on_batch_write,
    "ExecuteStatement": _on_statement,
    "BatchExecuteStatement": partial(_on_statements, "Statements"),
    "ExecuteTransaction": partial(_on_statements, "TransactStatements"),
    "CreateTable": _on_new_table,
    "ListTables": _on_all_tables,
    "ListStreams": _on_streams,
}


# --- parts ---


def _keys(table: Table, index: str | None) -> KeySchema:
    """Of the index, if there is one of this name, else the table's: then the operation refuses it."""
    several = (*table.local_indexes, *table.global_indexes)
    return next((each.keys for each in several if index and each.name == index), table.keys)


def _leading(items: list[dict[str, AttributeValue]], keys: KeySchema) -> tuple[str, ...]:
    return _sorted({_text(canonical_value(item[name])) for item in items for name in keys.hash if name in item})


def _equated(condition: tree.Condition, values: list[AttributeValue], keys: KeySchema) -> set[str]:
    """The values that the condition's conjuncts set partition keys equal to."""
    found: set[str] = set()
    waiting: list[tree.Condition] = [condition]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tree.And):
            waiting += [node.left, node.right]
        elif isinstance(node, tree.Compare) and node.operator == "=":
            for one, other in ((node.left, node.right), (node.right, node.left)):
                if isinstance(one, tree.Path) and one.steps[0] in keys.hash and isinstance(other, tree.Value):
                    found.add(_text(canonical_value(values[other.slot])))
    return found


def _text(value: AttributeValue) -> str:
    """A key's value as policies write it: numbers in canonical form, binary in base64."""
    return str(next(iter(value.values())))


def _sorted(texts: set[str]) -> tuple[str, ...]:
    return tuple(sorted(texts))


def _with_capacity(details: dict[str, tuple[str, ...]], body: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    details[RETURN_CONSUMED_CAPACITY] = (body.get("ReturnConsumedCapacity") or "NONE",)
    return details
