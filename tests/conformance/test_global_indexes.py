"""Global secondary indexes. Numbers are those of public cases (bug reports and parity facts)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.conformance.support import VALIDATION, Client, Item, key_types, n, new_table, random_name, refused, s

INVALID = "One or more parameter values were invalid: "
SECONDS_MAX = 30.0
"""How long an index may take to show a write, or to be made, before a test gives up."""


def b(value: bytes) -> Item:
    """A binary value."""
    return {"B": value}


def index(name: str, *keys: str, projection: str = "ALL", include: tuple[str, ...] = (), hashes: int = 1) -> Item:
    """An element of GlobalSecondaryIndexes; the first `hashes` of `keys` are HASH attributes."""
    shown: Item = {"ProjectionType": projection}
    if include:
        shown["NonKeyAttributes"] = list(include)
    schema = [
        {"AttributeName": key, "KeyType": "HASH" if number < hashes else "RANGE"} for number, key in enumerate(keys)
    ]
    return {"IndexName": name, "KeySchema": schema, "Projection": shown}


def definitions(*attributes: str) -> list[Item]:
    return [{"AttributeName": key, "AttributeType": type_} for key, type_ in key_types(*attributes)]


def create(client: Client, keys: tuple[str, ...], attributes: tuple[str, ...], *indexes: Item, name: str = "") -> str:
    """A new table with these indexes, once it is ACTIVE; its name."""
    name = name or random_name()
    request = new_table(name, *keys)
    request["AttributeDefinitions"] += definitions(*attributes)
    if indexes:
        request["GlobalSecondaryIndexes"] = list(indexes)
    client.create_table(**request)
    client.get_waiter("table_exists").wait(TableName=name)
    return name


@pytest.fixture(scope="module")
def table(client: Client) -> Iterator[str]:
    """p (S) with indexes by_g: g (S), r (N); keys: g alone, KEYS_ONLY; some: g, INCLUDE x."""
    name = create(
        client,
        ("p:S",),
        ("g:S", "r:N"),
        index("by_g", "g", "r"),
        index("keys", "g", projection="KEYS_ONLY"),
        index("some", "g", projection="INCLUDE", include=("x",)),
    )
    yield name
    client.delete_table(TableName=name)


def until(ask: Callable[[], Any], wanted: Callable[[Any], bool]) -> Any:
    """The first answer that is wanted: indexes follow their table a little later."""
    give_up = time.monotonic() + SECONDS_MAX
    while not wanted(answer := ask()):
        assert time.monotonic() < give_up, f"still {answer}"
        time.sleep(0.01)
    return answer


def query(client: Client, table: str, name: str, group: Item, **members: Any) -> Any:
    """A Query for one value of g."""
    return client.query(
        TableName=table,
        IndexName=name,
        KeyConditionExpression="g = :g",
        ExpressionAttributeValues={":g": group} | members.pop("values", {}),
        **members,
    )


def wait_for(client: Client, table: str, name: str, group: Item, count: int) -> list[Item]:
    """The index's items for one value of g, once there are so many."""
    answer = until(lambda: query(client, table, name, group), lambda answer: answer["Count"] == count)
    items: list[Item] = answer["Items"]
    return items


def names(items: list[Item]) -> list[str]:
    return [item["p"]["S"] for item in items]


# --- what an index holds ---


def test_an_index_follows_puts_updates_and_deletes(client: Client, table: str) -> None:
    key, one, other = s(), s(), s()
    client.put_item(TableName=table, Item={"p": key, "g": one, "r": n(1), "x": s("v")})
    assert wait_for(client, table, "by_g", one, 1) == [{"p": key, "g": one, "r": n(1), "x": s("v")}]
    client.update_item(
        TableName=table,
        Key={"p": key},
        UpdateExpression="SET g = :g, y = :y",
        ExpressionAttributeValues={":g": other, ":y": n(2)},
    )
    moved = {"p": key, "g": other, "r": n(1), "x": s("v"), "y": n(2)}
    assert wait_for(client, table, "by_g", other, 1) == [moved]
    assert wait_for(client, table, "by_g", one, 0) == []
    client.delete_item(TableName=table, Key={"p": key})
    wait_for(client, table, "by_g", other, 0)


def test_projections(client: Client, table: str) -> None:
    key, group = s(), s()
    item = {"p": key, "g": group, "r": n(1), "x": s("v"), "y": n(2)}
    client.put_item(TableName=table, Item=item)
    assert wait_for(client, table, "by_g", group, 1) == [item]
    assert wait_for(client, table, "keys", group, 1) == [{"p": key, "g": group}]
    assert wait_for(client, table, "some", group, 1) == [{"p": key, "g": group, "x": s("v")}]


def test_an_item_without_all_key_attributes_is_left_out(client: Client, table: str) -> None:
    """Case 90."""
    group = s()
    with_range, without = s(), s()
    client.put_item(TableName=table, Item={"p": without, "g": group})
    client.put_item(TableName=table, Item={"p": with_range, "g": group, "r": n(1)})
    wait_for(client, table, "keys", group, 2)
    assert names(wait_for(client, table, "by_g", group, 1)) == [with_range["S"]]
    client.update_item(TableName=table, Key={"p": with_range}, UpdateExpression="REMOVE r")
    wait_for(client, table, "by_g", group, 0)


@pytest.mark.parametrize("value", [n(1), {"BOOL": True}, {"M": {}}, {"SS": ["a"]}])
def test_a_write_with_a_key_of_the_wrong_type_is_refused(client: Client, table: str, value: Item) -> None:
    key = s()
    kind = next(iter(value))
    text = f"Type mismatch for Index Key g Expected: S Actual: {kind} IndexName: "
    with refused(VALIDATION, text):
        client.put_item(TableName=table, Item={"p": key, "g": value})
    with refused(VALIDATION, text):
        client.batch_write_item(RequestItems={table: [{"PutRequest": {"Item": {"p": key, "g": value}}}]})
    with refused(VALIDATION, text):
        client.update_item(
            TableName=table, Key={"p": key}, UpdateExpression="SET g = :g", ExpressionAttributeValues={":g": value}
        )
    assert "Item" not in client.get_item(TableName=table, Key={"p": key}, ConsistentRead=True)


def test_a_write_with_an_empty_key_is_refused(client: Client, table: str) -> None:
    with refused(VALIDATION, "A value specified for a secondary index key is not supported.", "IndexKey: g"):
        client.put_item(TableName=table, Item={"p": s(), "g": {"S": ""}})


# --- Query and Scan ---


def test_range_keys_are_in_order_of_their_values(client: Client, table: str) -> None:
    group = s()
    values = [-1000, -2, -0.5, 0, 0.25, 3, 20, 1e10]
    for value in reversed(values):
        client.put_item(TableName=table, Item={"p": s(), "g": group, "r": n(value)})
    shown = [float(item["r"]["N"]) for item in wait_for(client, table, "by_g", group, len(values))]
    assert shown == values
    back = query(client, table, "by_g", group, ScanIndexForward=False)["Items"]
    assert [float(item["r"]["N"]) for item in back] == values[::-1]
    for condition, bounds, found in (
        ("r < :a", (0,), values[:3]),
        ("r <= :a", (0,), values[:4]),
        ("r > :a", (0,), values[4:]),
        ("r >= :a", (0,), values[3:]),
        ("r = :a", (3,), [3]),
        ("r BETWEEN :a AND :b", (-2, 3), values[1:6]),
    ):
        answer = client.query(
            TableName=table,
            IndexName="by_g",
            KeyConditionExpression=f"g = :g AND {condition}",
            ExpressionAttributeValues={
                ":g": group,
                **{f":{name}": n(v) for name, v in zip("ab", bounds, strict=False)},
            },
        )
        assert [float(item["r"]["N"]) for item in answer["Items"]] == found, condition


@pytest.mark.parametrize("keys", [("p:S",), ("p:S", "c:S")])
def test_pages_through_many_items_of_one_index_key(client: Client, keys: tuple[str, ...]) -> None:
    """Cases 86 and 102: all items, none twice, complete keys, the same order each time."""
    name = create(client, keys, ("g:S",), index("by_g", "g"))
    group, count = s(), 23
    for number in range(count):
        sort = {"c": s(f"c{number}")} if len(keys) > 1 else {}
        client.put_item(TableName=name, Item={"p": s(f"p{number // 2 if sort else number}"), "g": group, **sort})
    whole = wait_for(client, name, "by_g", group, count)

    def queried(**page: Any) -> Any:
        return query(client, name, "by_g", group, **page)

    def scanned(**page: Any) -> Any:
        return client.scan(TableName=name, IndexName="by_g", **page)

    for ask in (queried, scanned):
        found: list[Item] = []
        page: Item = {}
        while True:
            answer = ask(Limit=5, **page)
            found += answer["Items"]
            if "LastEvaluatedKey" not in answer:
                break
            last = answer["LastEvaluatedKey"]
            assert set(last) == {"p", "g", *(["c"] if len(keys) > 1 else [])}
            assert last == {key: found[-1][key] for key in last}
            page = {"ExclusiveStartKey": last}
        assert found == whole
    client.delete_table(TableName=name)


def test_segments_of_an_index_are_disjoint_and_complete(client: Client, table: str) -> None:
    mark = s()["S"]
    for number in range(20):
        client.put_item(TableName=table, Item={"p": s(f"{mark}{number}"), "g": s(f"{mark}{number}"), "r": n(1)})

    def scanned() -> list[str]:
        segments = [
            client.scan(
                TableName=table,
                IndexName="by_g",
                Segment=segment,
                TotalSegments=4,
                FilterExpression="begins_with(p, :m)",
                ExpressionAttributeValues={":m": s(mark)},
            )["Items"]
            for segment in range(4)
        ]
        return sorted(name for items in segments for name in names(items))

    assert until(scanned, lambda found: len(found) >= 20) == sorted(f"{mark}{number}" for number in range(20))


WRONG: list[tuple[str, Item, str]] = [
    ("strong", {"ConsistentRead": True}, "Consistent reads are not supported on global secondary indexes"),
    (
        "92",
        {"IndexName": "keys", "ProjectionExpression": "x"},
        f"{INVALID}Global secondary index keys does not project [x]",
    ),
    (
        "92 filter",
        {"IndexName": "keys", "FilterExpression": "x = :g"},
        f"{INVALID}Secondary index keys does not project one or more filter attributes: [x]",
    ),
    (
        "93",
        {"IndexName": "keys", "Select": "ALL_ATTRIBUTES"},
        f"{INVALID}Select type ALL_ATTRIBUTES is not supported for global secondary index keys because its projection "
        "type is not ALL",
    ),
    ("84", {"IndexName": "keys", "KeyConditionExpression": "g = :g AND p = :g"}, "Query key condition not supported"),
    (
        "85 another group",
        {"ExclusiveStartKey": {"p": s("p"), "g": s("other"), "r": n(1)}},
        "The provided starting key is outside query boundaries based on provided conditions",
    ),
    ("85 a column missing", {"ExclusiveStartKey": {"p": s("p"), "g": s("g")}}, "The provided starting key is invalid"),
    (
        "85 a column too many",
        {"ExclusiveStartKey": {"p": s("p"), "g": s("g"), "r": n(1), "x": n(1)}},
        "The provided starting key is invalid",
    ),
    (
        "filter",
        {"FilterExpression": "r = :g"},
        "Filter Expression can only contain non-primary key attributes: Primary key attribute: r",
    ),
    ("no index", {"IndexName": "none"}, "The table does not have the specified index: none"),
]


@pytest.mark.parametrize(("members", "text"), [each[1:] for each in WRONG], ids=[case for case, _, _ in WRONG])
def test_wrong_queries(client: Client, table: str, members: Item, text: str) -> None:
    request = {
        "TableName": table,
        "IndexName": "by_g",
        "KeyConditionExpression": "g = :g",
        "ExpressionAttributeValues": {":g": s("g")},
    }
    with refused(VALIDATION, text):
        client.query(**request | members)


def test_four_and_four_key_attributes(client: Client) -> None:
    """facts.md 2.9: all hash attributes by equality, range attributes from left to right, a range on the last used."""
    hashes, ranges = ("h1:S", "h2:N", "h3:B", "h4:S"), ("r1:S", "r2:N", "r3:B", "r4:S")
    name = create(
        client,
        ("p:S",),
        (*hashes, *ranges),
        index("wide", *(key for key, _ in key_types(*hashes, *ranges)), hashes=4),
    )
    group = {"h1": s("x"), "h2": n(7), "h3": b(b"y"), "h4": s("z")}
    rows = [(r1, r2, r3, r4) for r1 in "ab" for r2 in (-1, 10) for r3 in (b"\x00", b"\xff") for r4 in ("k", "l")]
    for number, (r1, r2, r3, r4) in enumerate(reversed(rows)):
        ranged = {"r1": s(r1), "r2": n(r2), "r3": b(r3), "r4": s(r4)}
        client.put_item(TableName=name, Item={"p": s(f"{number}"), **group, **ranged})
    client.put_item(TableName=name, Item={"p": s("sparse"), **group, "r1": s("a")})
    values = {f":{key}": value for key, value in group.items()}
    equal = "h4 = :h4 AND h2 = :h2 AND h1 = :h1 AND h3 = :h3"

    def ask(condition: str = "", **more: Item) -> list[tuple[Any, ...]]:
        answer = client.query(
            TableName=name,
            IndexName="wide",
            KeyConditionExpression=equal + condition,
            ExpressionAttributeValues=values | {f":{key}": value for key, value in more.items()},
        )
        return [
            (item["r1"]["S"], int(item["r2"]["N"]), bytes(item["r3"]["B"]), item["r4"]["S"]) for item in answer["Items"]
        ]

    assert until(ask, lambda found: len(found) == len(rows)) == rows
    assert ask(" AND r1 = :a AND r2 > :b", a=s("a"), b=n(0)) == rows[4:8]
    assert ask(
        " AND r2 = :b AND r1 = :a AND r3 = :c AND begins_with(r4, :d)", a=s("b"), b=n(-1), c=b(b"\xff"), d=s("l")
    ) == [rows[11]]
    with refused(VALIDATION, "Query condition missed key schema element: r1"):
        ask(" AND r2 = :b", b=n(0))
    with refused(VALIDATION, "Query key condition not supported"):
        ask(" AND r1 > :a AND r2 = :b", a=s("a"), b=n(0))
    client.delete_table(TableName=name)


# --- capacity ---


def test_units_follow_the_change_of_the_entry(client: Client, table: str) -> None:
    """Case 150: unchanged, changed outside of the projection, moved, gone."""
    key = s()

    def put(**attributes: Item) -> Any:
        answer = client.put_item(TableName=table, Item={"p": key, **attributes}, ReturnConsumedCapacity="INDEXES")
        capacity = answer["ConsumedCapacity"]
        units = {name: part["CapacityUnits"] for name, part in capacity.get("GlobalSecondaryIndexes", {}).items()}
        assert capacity["CapacityUnits"] == capacity["Table"]["CapacityUnits"] + sum(units.values())
        return units

    group, other = s(), s()
    assert put() == {}
    assert put(g=group, r=n(1)) == {"by_g": 1, "keys": 1, "some": 1}
    assert put(g=group, r=n(1)) == {}
    assert put(g=group, r=n(1), y=n(1)) == {"by_g": 1}
    assert put(g=group, r=n(1), y=n(1), x=n(1)) == {"by_g": 1, "some": 1}
    assert put(g=other, r=n(1), y=n(1), x=n(1)) == {"by_g": 2, "keys": 2, "some": 2}
    assert put(g=other, r=n(1), y=s("y" * 2800), x=n(1)) == {"by_g": 3}
    assert put() == {"by_g": 3, "keys": 1, "some": 1}


def test_a_query_charges_the_index(client: Client, table: str) -> None:
    answer = query(client, table, "by_g", s(), ReturnConsumedCapacity="INDEXES")
    capacity = answer["ConsumedCapacity"]
    assert capacity["CapacityUnits"] == 0.5
    assert capacity["Table"]["CapacityUnits"] == 0
    assert capacity["GlobalSecondaryIndexes"] == {"by_g": {"CapacityUnits": 0.5}}


# --- tables ---


def test_a_description_has_what_planners_compare(client: Client) -> None:
    """Cases 32, 33 and 37: on demand, an index without throughput shows 0 and 0, and the same fields every time."""
    name = create(client, ("p:S",), ("g:S",), index("by_g", "g", projection="INCLUDE", include=("x",)))
    (shown,) = client.describe_table(TableName=name)["Table"]["GlobalSecondaryIndexes"]
    assert shown["IndexStatus"] == "ACTIVE"
    assert "Backfilling" not in shown
    assert shown["Projection"] == {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["x"]}
    assert (shown["IndexSizeBytes"], shown["ItemCount"]) == (0, 0)
    assert shown["IndexArn"].endswith(f":table/{name}/index/by_g")
    throughput = shown["ProvisionedThroughput"]
    assert (throughput["ReadCapacityUnits"], throughput["WriteCapacityUnits"]) == (0, 0)
    assert client.describe_table(TableName=name)["Table"]["GlobalSecondaryIndexes"] == [shown]
    client.delete_table(TableName=name)


def test_long_and_odd_names(client: Client) -> None:
    """Cases 40 and 41."""
    table, by = "t" * 220 + random_name(), "i" * 255
    name = create(client, ("attrs:S",), (":attrs:S",), index(by, ":attrs"), name=table[:255])
    client.put_item(TableName=name, Item={"attrs": s("x"), ":attrs": s("y")})
    found = until(lambda: client.scan(TableName=name, IndexName=by)["Items"], bool)
    assert found == [{"attrs": s("x"), ":attrs": s("y")}]
    client.delete_table(TableName=name)


def active(client: Client, table: str) -> Any:
    """The table's description once it and its indexes are ACTIVE."""

    def ready(shown: Any) -> bool:
        indexes = shown.get("GlobalSecondaryIndexes", ())
        return shown["TableStatus"] == "ACTIVE" and all(each["IndexStatus"] == "ACTIVE" for each in indexes)

    return until(lambda: client.describe_table(TableName=table)["Table"], ready)


def test_an_index_is_added_to_a_full_table_while_it_is_written(client: Client) -> None:
    """Cases 24 and 90; items that do not fit are left out."""
    name = create(client, ("p:S",), ())
    for number in range(300):
        fits = {"g": s(f"g{number % 3}")} if number % 5 else {"g": n(number)}
        client.put_item(TableName=name, Item={"p": s(f"old{number}"), **fits})
    stop = threading.Event()
    written: dict[str, str] = {f"old{number}": f"g{number % 3}" for number in range(300) if number % 5}

    def write() -> None:
        number = 0
        while not stop.is_set() or number < 100:
            key, group = f"old{number % 300}" if number % 2 else f"new{number}", f"g{number % 3}"
            if number % 7:
                client.put_item(TableName=name, Item={"p": s(key), "g": s(group)})
                written[key] = group
            else:
                client.delete_item(TableName=name, Key={"p": s(key)})
                written.pop(key, None)
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        shown = client.update_table(
            TableName=name,
            AttributeDefinitions=definitions("g:S"),
            GlobalSecondaryIndexUpdates=[{"Create": index("by_g", "g")}],
        )["TableDescription"]
        assert shown["TableStatus"] == "UPDATING"
        assert [each["IndexStatus"] for each in shown["GlobalSecondaryIndexes"]] == ["CREATING"]
        shown = active(client, name)
        assert {each["AttributeName"] for each in shown["AttributeDefinitions"]} == {"p", "g"}
    finally:
        stop.set()
        writer.join()
    for group in ("g0", "g1", "g2"):
        wanted = sorted(key for key, of in written.items() if of == group)
        until(partial(found_in, client, name, group), wanted.__eq__)
    client.delete_table(TableName=name)


def found_in(client: Client, table: str, group: str) -> list[str]:
    """The names of all items of one value of g, whatever the number of pages."""
    pages = client.get_paginator("query").paginate(
        TableName=table,
        IndexName="by_g",
        KeyConditionExpression="g = :g",
        ExpressionAttributeValues={":g": s(group)},
    )
    return sorted(name for page in pages for name in names(page["Items"]))


def test_an_index_is_deleted_and_made_again_with_another_type(client: Client) -> None:
    name = create(client, ("p:S",), ("g:S",), index("by_g", "g"))
    client.put_item(TableName=name, Item={"p": s("a"), "g": s("x")})
    wait_for(client, name, "by_g", s("x"), 1)
    shown = client.update_table(TableName=name, GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by_g"}}])
    assert [each["IndexStatus"] for each in shown["TableDescription"]["GlobalSecondaryIndexes"]] == ["DELETING"]
    shown = active(client, name)
    assert "GlobalSecondaryIndexes" not in shown
    assert [each["AttributeName"] for each in shown["AttributeDefinitions"]] == ["p"]
    with refused(VALIDATION, "The table does not have the specified index: by_g"):
        query(client, name, "by_g", s("x"))
    client.put_item(TableName=name, Item={"p": s("b"), "g": n(5)})
    client.update_table(
        TableName=name,
        AttributeDefinitions=definitions("g:N"),
        GlobalSecondaryIndexUpdates=[{"Create": index("by_g", "g")}],
    )
    active(client, name)
    assert names(wait_for(client, name, "by_g", n(5), 1)) == ["b"]
    client.delete_table(TableName=name)


def test_one_index_at_a_time(client: Client) -> None:
    name = create(client, ("p:S",), ())
    two = [{"Create": index("one", "g")}, {"Create": index("two", "g")}]
    with refused("LimitExceededException", "Only 1 online index can be created or deleted simultaneously per table"):
        client.update_table(TableName=name, AttributeDefinitions=definitions("g:S"), GlobalSecondaryIndexUpdates=two)
    with pytest.raises(ClientError) as raised:
        client.update_table(TableName=name, GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "none"}}])
    assert raised.value.response["Error"]["Code"] == "ResourceNotFoundException"
    with refused(VALIDATION, "Some index key attributes are not defined in AttributeDefinitions"):  # case 25
        client.update_table(TableName=name, GlobalSecondaryIndexUpdates=two[:1])
    client.delete_table(TableName=name)


def test_transactions_and_batches_reach_the_index(client: Client, table: str) -> None:
    group, first, second = s(), s(), s()
    client.transact_write_items(
        TransactItems=[
            {"Put": {"TableName": table, "Item": {"p": key, "g": group, "r": n(1)}}} for key in (first, second)
        ]
    )
    wait_for(client, table, "by_g", group, 2)
    client.batch_write_item(RequestItems={table: [{"DeleteRequest": {"Key": {"p": key}}} for key in (first, second)]})
    wait_for(client, table, "by_g", group, 0)
