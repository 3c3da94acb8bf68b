"""Query and Scan of tables: key conditions, paging, projections, segments."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.conformance.support import VALIDATION, Client, Item, n, refused, s


def put_all(client: Client, table: str, items: list[Item]) -> None:
    """Store items in batches."""
    for start in range(0, len(items), 25):
        batch = [{"PutRequest": {"Item": item}} for item in items[start : start + 25]]
        assert not client.batch_write_item(RequestItems={table: batch})["UnprocessedItems"]


def query(client: Client, table: str, condition: str, values: Item, **members: Any) -> Any:
    """A strongly consistent Query."""
    return client.query(
        TableName=table,
        KeyConditionExpression=condition,
        ExpressionAttributeValues=values,
        ConsistentRead=True,
        **members,
    )


def pages(call: Any, **members: Any) -> tuple[list[Item], list[Any]]:
    """All items of a paged call, and its pages."""
    items: list[Item] = []
    answers = []
    while True:
        answer = call(**members)
        answers.append(answer)
        items += answer["Items"]
        if "LastEvaluatedKey" not in answer:
            return items, answers
        members["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


SORTS = ["a", "a0", "ab", "b", "ba", "é", "z"]


@pytest.fixture(scope="module")
def filled(client: Client, strings: str) -> Item:
    """A partition key of `strings` whose items have the sort keys SORTS."""
    p = s()
    put_all(client, strings, [{"p": p, "c": s(c), "x": n(number)} for number, c in enumerate(SORTS)])
    return p


CONDITIONS: list[tuple[str, Item, list[str]]] = [
    ("p = :p", {}, SORTS),
    ("p = :p AND c = :a", {":a": s("ab")}, ["ab"]),
    ("c = :a AND p = :p", {":a": s("ab")}, ["ab"]),
    ("p = :p AND c < :a", {":a": s("ab")}, ["a", "a0"]),
    ("p = :p AND c <= :a", {":a": s("ab")}, ["a", "a0", "ab"]),
    ("p = :p AND c > :a", {":a": s("b")}, ["ba", "é", "z"]),
    ("p = :p AND c >= :a", {":a": s("b")}, ["b", "ba", "é", "z"]),
    ("p = :p AND c BETWEEN :a AND :b", {":a": s("a0"), ":b": s("b")}, ["a0", "ab", "b"]),
    ("p = :p AND begins_with(c, :a)", {":a": s("a")}, ["a", "a0", "ab"]),
    ("(p = :p) AND (begins_with(c, :a))", {":a": s("b")}, ["b", "ba"]),
    ("(p = :p AND c = :a)", {":a": s("z")}, ["z"]),
    (":a <= c AND p = :p", {":a": s("b")}, ["b", "ba", "é", "z"]),
    (":p = p AND :a < c", {":a": s("b")}, ["ba", "é", "z"]),
    (":a >= c AND :p = p", {":a": s("a0")}, ["a", "a0"]),
    ("p = :p AND :a > c", {":a": s("a0")}, ["a"]),
    ("p = :p AND :a = c", {":a": s("a0")}, ["a0"]),
    ("p = :p AND c BETWEEN :a AND :a", {":a": s("no")}, []),
]


@pytest.mark.parametrize(("condition", "values", "expected"), CONDITIONS)
@pytest.mark.parametrize("forward", [True, False])
def test_key_conditions(
    client: Client, strings: str, filled: Item, condition: str, values: Item, expected: list[str], forward: bool
) -> None:  # cases 81, 82
    expected = sorted(expected, key=str.encode, reverse=not forward)
    values = {":p": filled, **values}
    answer = query(client, strings, condition, values, ScanIndexForward=forward)
    assert [item["c"]["S"] for item in answer["Items"]] == expected
    one_by_one, _ = pages(
        client.query,
        TableName=strings,
        KeyConditionExpression=condition,
        ExpressionAttributeValues=values,
        ScanIndexForward=forward,
        Limit=1,
        ConsistentRead=True,
    )
    assert one_by_one == answer["Items"]


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ("((p = :p))", "redundant parentheses"),
        ("p = :p OR c = :c", "Invalid operator used in KeyConditionExpression: OR"),
        ("NOT p = :p", "Invalid operator used in KeyConditionExpression: NOT"),
        ("p = :p AND c <> :c", "Invalid operator used in KeyConditionExpression: <>"),
        ("p = :p AND c IN (:c)", "Invalid operator used in KeyConditionExpression: IN"),
        ("p = :p AND contains(c, :c)", "Invalid operator used in KeyConditionExpression: contains"),
        ("p = :p AND attribute_exists(c)", "Invalid operator used in KeyConditionExpression: attribute_exists"),
        ("p > :p", "Query key condition not supported"),
        ("begins_with(p, :p)", "Query key condition not supported"),
        ("c = :c", "Query condition missed key schema element: p"),
        ("p = :p AND x = :c", "Query condition missed key schema element: c"),
        ("p = :p AND c = :c AND c = :c", "Invalid KeyConditionExpression"),
        ("p = :p AND c > :c AND c < :c", "KeyConditionExpressions must only contain one condition per key"),
        ("p = c", ""),
        ("p.x = :p", ""),
        ("p[0] = :p", ""),
        (
            "p = :p AND c BETWEEN :c AND :b",
            "The BETWEEN operator requires upper bound to be greater",
        ),
        ("size(p) = :p", "KeyConditionExpressions cannot contain nested operations"),
        ("p", "Syntax error"),
        ("", "can not be empty"),
    ],
)
def test_key_conditions_that_are_refused(client: Client, strings: str, condition: str, text: str) -> None:  # case 81
    values = {":p": s("p"), ":c": s("c"), ":b": s("b")}
    used = {name: value for name, value in values.items() if name in condition}
    with refused(VALIDATION, *([text] if text != "Invalid KeyConditionExpression" else [])):
        if used:
            query(client, strings, condition, used)
        else:
            client.query(TableName=strings, KeyConditionExpression=condition)


def test_no_key_condition_at_all(client: Client, strings: str) -> None:
    text = "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."
    with refused(VALIDATION, text):
        client.query(TableName=strings)


# --- case 85: where a page may start ---


def test_start_keys_of_a_query(client: Client, strings: str, filled: Item) -> None:  # case 85
    invalid = "The provided starting key is invalid"
    outside = "The provided starting key is outside query boundaries based on provided conditions"
    for start, texts in [
        ({"p": s("other"), "c": s("a")}, [outside]),
        ({"p": filled}, [invalid]),
        ({"c": s("a")}, [invalid]),
        ({"p": filled, "c": s("a"), "x": n(1)}, [invalid]),
        ({"p": filled, "c": n(1)}, [invalid]),
        ({"p": n(1), "c": s("a")}, [invalid]),
    ]:
        with refused(VALIDATION, *texts):
            query(client, strings, "p = :p", {":p": filled}, ExclusiveStartKey=start)


@pytest.mark.parametrize(
    ("condition", "values", "start"),
    [("c > :a", {":a": s("b")}, "a"), ("c < :a", {":a": s("b")}, "z"), ("begins_with(c, :a)", {":a": s("b")}, "a")],
)
def test_start_keys_outside_of_the_range(
    client: Client, strings: str, filled: Item, condition: str, values: Item, start: str
) -> None:  # case 85
    with refused(VALIDATION, "The provided starting key"):
        key = {"p": filled, "c": s(start)}
        query(client, strings, f"p = :p AND {condition}", {":p": filled, **values}, ExclusiveStartKey=key)


@pytest.mark.parametrize(
    "start", [{"p": s("x")}, {"c": s("x")}, {"p": s("x"), "c": s("y"), "x": n(1)}, {"p": n(1), "c": s("y")}]
)
def test_start_keys_of_a_scan(client: Client, strings: str, start: Item) -> None:  # case 85
    with refused(VALIDATION, "The provided starting key is invalid"):
        client.scan(TableName=strings, ExclusiveStartKey=start)


def test_a_page_may_start_where_no_item_is(client: Client, strings: str, filled: Item) -> None:
    answer = query(client, strings, "p = :p", {":p": filled}, ExclusiveStartKey={"p": filled, "c": s("a1")})
    assert [item["c"]["S"] for item in answer["Items"]] == ["ab", "b", "ba", "z", "é"]


# --- case 88: binary keys ---


def test_paging_with_binary_keys(client: Client, binaries: str) -> None:  # case 88
    p = {"B": bytes(range(256))}
    sorts = [b"\x00", b"\x00\xff", b"\x7f", b"\x80", b"\xff", b"\xff\x00"]
    put_all(client, binaries, [{"p": p, "c": {"B": c}} for c in reversed(sorts)])
    items, answers = pages(
        client.query,
        TableName=binaries,
        KeyConditionExpression="p = :p",
        ExpressionAttributeValues={":p": p},
        ConsistentRead=True,
        Limit=1,
    )
    assert [item["c"]["B"] for item in items] == sorts
    assert [answer["LastEvaluatedKey"] for answer in answers[:6]] == [{"p": p, "c": {"B": c}} for c in sorts]


def test_scanning_with_binary_keys(client: Client, binaries: str) -> None:  # case 88
    wanted = [{"p": {"B": bytes([number, 255])}, "c": {"B": bytes([255 - number])}} for number in range(20)]
    put_all(client, binaries, wanted)
    items, _ = pages(client.scan, TableName=binaries, Limit=3, ConsistentRead=True)
    assert all(item in items for item in wanted)


# --- cases 89, 94: what a page counts ---


def test_a_scan_over_a_long_run_of_deleted_items(client: Client, own: str) -> None:  # case 89
    p = s()
    keys = [{"p": p, "c": s(f"{number:04}")} for number in range(500)]
    put_all(client, own, keys)
    for start in range(0, 499, 25):
        batch = [{"DeleteRequest": {"Key": key}} for key in keys[start : min(start + 25, 499)]]
        client.batch_write_item(RequestItems={own: batch})
    items, answers = pages(client.scan, TableName=own, Limit=1, ConsistentRead=True)
    assert items == [keys[499]]
    assert len(answers) < 10


def test_limit_counts_what_is_evaluated(client: Client, own: str) -> None:  # case 94
    p = s()
    put_all(client, own, [{"p": p, "c": s(f"{number:03}"), "x": n(number % 10)} for number in range(100)])
    wanted = {"FilterExpression": "x = :x", "ExpressionAttributeValues": {":x": n(3)}}
    first = client.scan(TableName=own, Limit=20, ConsistentRead=True, **wanted)
    assert first["ScannedCount"] == 20
    assert first["Count"] == len(first["Items"]) < 20
    items, answers = pages(client.scan, TableName=own, Limit=20, ConsistentRead=True, **wanted)
    assert len(items) == 10
    assert sum(answer["ScannedCount"] for answer in answers) == 100


def test_a_filter_without_matches_pages_through(client: Client, strings: str, filled: Item) -> None:  # case 94
    items, answers = pages(
        client.query,
        TableName=strings,
        KeyConditionExpression="p = :p",
        FilterExpression="attribute_exists(nothing)",
        ExpressionAttributeValues={":p": filled},
        Limit=2,
    )
    assert items == []
    assert [answer["ScannedCount"] for answer in answers] == [2, 2, 2, 1]
    assert all(answer["Count"] == 0 for answer in answers)


def test_pages_end_at_1_mb(client: Client, strings: str) -> None:
    p = s()
    put_all(client, strings, [{"p": p, "c": s(f"{number:02}"), "x": s("x" * 100_000)} for number in range(24)])
    for forward in (True, False):
        items, answers = pages(
            client.query,
            TableName=strings,
            KeyConditionExpression="p = :p",
            ExpressionAttributeValues={":p": p},
            ScanIndexForward=forward,
            ConsistentRead=True,
        )
        assert [item["c"]["S"] for item in items] == sorted((item["c"]["S"] for item in items), reverse=not forward)
        assert [answer["Count"] for answer in answers] == [10, 10, 4]


# --- cases 93, 96: what is given back ---


@pytest.mark.parametrize("operation", ["query", "scan"])
@pytest.mark.parametrize(
    ("members", "text"),
    [
        (
            {"Select": "ALL_PROJECTED_ATTRIBUTES"},
            "ALL_PROJECTED_ATTRIBUTES can be used only when Querying",
        ),
        (
            {"Select": "ALL_ATTRIBUTES", "ProjectionExpression": "x"},
            "Cannot specify the ProjectionExpression when choosing to get ALL_ATTRIBUTES",
        ),
        (
            {"Select": "ALL_ATTRIBUTES", "AttributesToGet": ["x"]},
            "Cannot specify the AttributesToGet when",
        ),
        (
            {"Select": "COUNT", "ProjectionExpression": "x"},
            "Cannot specify the ProjectionExpression when choosing to get only the Count",
        ),
        ({"Select": "SPECIFIC_ATTRIBUTES"}, "Must specify the AttributesToGet or ProjectionExpression"),
        ({"Select": "NONSENSE"}, "Member must satisfy enum value set"),
    ],
)
def test_select_that_contradicts(client: Client, strings: str, operation: str, members: Any, text: str) -> None:
    """Case 93."""
    if operation == "query" and "AttributesToGet" in members:
        members = {**members, "KeyConditions": {"p": {"ComparisonOperator": "EQ", "AttributeValueList": [s()]}}}
    elif operation == "query":
        members = {**members, "KeyConditionExpression": "p = :p", "ExpressionAttributeValues": {":p": s()}}
    with refused(VALIDATION, text):
        getattr(client, operation)(TableName=strings, **members)


def test_select_of_counts_and_attributes(client: Client, strings: str, filled: Item) -> None:  # case 93
    asked = {":p": filled}
    counted = query(client, strings, "p = :p", asked, Select="COUNT")
    assert (counted["Count"], counted["ScannedCount"], "Items" in counted) == (len(SORTS), len(SORTS), False)
    some = query(client, strings, "p = :p", asked, Select="SPECIFIC_ATTRIBUTES", ProjectionExpression="x")
    assert some["Items"][0] == {"x": n(0)}
    everything = query(client, strings, "p = :p", asked, Select="ALL_ATTRIBUTES")
    assert everything["Items"][0] == {"p": filled, "c": s("a"), "x": n(0)}


DOCUMENT: dict[str, Any] = {
    "l": {"L": [{"M": {"a": n(0), "b": n(1), "z": n(2)}}, n(10), n(20), n(30)]},
    "m": {"M": {"a": {"M": {"b": n(1), "z": n(2)}}, "q": {"L": [n(0), n(1), n(2)]}}},
    "x": n(5),
}


@pytest.mark.parametrize(
    ("projection", "expected"),
    [
        ("l[2], l[1]", {"l": {"L": [n(10), n(20)]}}),
        ("l[0].a, l[0].b", {"l": {"L": [{"M": {"a": n(0), "b": n(1)}}]}}),
        ("l[3], l[0].z", {"l": {"L": [{"M": {"z": n(2)}}, n(30)]}}),
        ("m.a.b, m.q[2], m.q[0]", {"m": {"M": {"a": {"M": {"b": n(1)}}, "q": {"L": [n(0), n(2)]}}}}),
        ("l[9], m.nothing, x", {"x": n(5)}),
        ("m.a, x, l[1]", {"m": {"M": {"a": DOCUMENT["m"]["M"]["a"]}}, "x": n(5), "l": {"L": [n(10)]}}),
        ("x.y, l.a, m[0]", {}),
    ],
)
def test_projections_of_nested_paths(client: Client, strings: str, projection: str, expected: Item) -> None:  # case 96
    key = {"p": s(), "c": s("c")}
    client.put_item(TableName=strings, Item={**key, **DOCUMENT})
    call = {"TableName": strings, "ProjectionExpression": projection, "ConsistentRead": True}
    assert client.get_item(Key=key, **call)["Item"] == expected
    asked = {":p": key["p"]}
    assert query(client, strings, "p = :p", asked, ProjectionExpression=projection)["Items"] == [expected]
    request = {"Keys": [key], "ProjectionExpression": projection, "ConsistentRead": True}
    answer = client.batch_get_item(RequestItems={strings: request})
    assert answer["Responses"][strings] == [expected]


@pytest.mark.parametrize("projection", ["a, a.b", "a.b, a", "a, a", "l[0], l[0].a", "a[1], a[1]", "m.a.b, m.a"])
def test_projections_that_overlap(client: Client, strings: str, projection: str) -> None:  # case 96
    """Refused though there is no item."""
    key = {"p": s(), "c": s("c")}
    text = "Two document paths overlap with each other"
    with refused(VALIDATION, text):
        client.get_item(TableName=strings, Key=key, ProjectionExpression=projection)
    with refused(VALIDATION, text):
        query(client, strings, "p = :p", {":p": key["p"]}, ProjectionExpression=projection)
    with refused(VALIDATION, text):
        client.scan(TableName=strings, ProjectionExpression=projection, Limit=1)
    with refused(VALIDATION, text):
        client.batch_get_item(RequestItems={strings: {"Keys": [key], "ProjectionExpression": projection}})


# --- cases 97, 98: batches ---


@pytest.mark.parametrize(
    "members", [{}, {"ConsistentRead": True}, {"ProjectionExpression": "x"}], ids=["plain", "strong", "projected"]
)
def test_a_batch_with_the_same_key_twice(client: Client, strings: str, members: Any) -> None:  # case 97
    key = {"p": s(), "c": s("c")}
    with refused(VALIDATION, "Provided list of item keys contains duplicates"):
        client.batch_get_item(RequestItems={strings: {"Keys": [key, dict(reversed(key.items()))], **members}})


@pytest.mark.parametrize("kinds", [("Put", "Put"), ("Put", "Delete"), ("Delete", "Delete")])
def test_a_batch_that_writes_the_same_key_twice(client: Client, strings: str, kinds: tuple[str, str]) -> None:
    key = {"p": s(), "c": s("c")}
    entries = [
        {"PutRequest": {"Item": {**key, "x": n(number)}}} if kind == "Put" else {"DeleteRequest": {"Key": key}}
        for number, kind in enumerate(kinds)
    ]
    with refused(VALIDATION, "Provided list of item keys contains duplicates"):
        client.batch_write_item(RequestItems={strings: entries})
    assert "Item" not in client.get_item(TableName=strings, Key=key, ConsistentRead=True)


def test_a_batch_with_one_number_key_written_twice(client: Client, numbers: str) -> None:  # case 72
    p = s()
    entries = [{"PutRequest": {"Item": {"p": p, "c": {"N": c}}}} for c in ("1000", "1e3")]
    with refused(VALIDATION, "Provided list of item keys contains duplicates"):
        client.batch_write_item(RequestItems={numbers: entries})


def test_batches_that_are_too_long(client: Client, simple: str, strings: str) -> None:  # case 98
    items = [{"p": s()} for _ in range(26)]
    with refused(VALIDATION, "Map value must satisfy constraint: [Member must have length less than or equal to 25"):
        client.batch_write_item(RequestItems={simple: [{"PutRequest": {"Item": item}} for item in items]})
    spread = {
        simple: [{"PutRequest": {"Item": item}} for item in items[:13]],
        strings: [{"PutRequest": {"Item": {**item, "c": s("c")}}} for item in items[13:]],
    }
    with refused(VALIDATION, "Too many items requested for the BatchWriteItem call"):
        client.batch_write_item(RequestItems=spread)
    for item in items:
        assert "Item" not in client.get_item(TableName=simple, Key=item, ConsistentRead=True)
    keys = [{"p": s()} for _ in range(101)]
    with refused(VALIDATION, "Member must have length less than or equal to 100"):
        client.batch_get_item(RequestItems={simple: {"Keys": keys}})


def test_batches_that_are_as_long_as_can_be(client: Client, simple: str) -> None:  # case 98
    items = [{"p": s(), "x": n(number)} for number in range(100)]
    put_all(client, simple, items)
    keys = [{"p": item["p"]} for item in items]
    answer = client.batch_get_item(RequestItems={simple: {"Keys": keys, "ConsistentRead": True}})
    assert sorted(answer["Responses"][simple], key=str) == sorted(items, key=str)


@pytest.mark.parametrize("operation", ["batch_get_item", "batch_write_item"])
@pytest.mark.parametrize("tables", [{}, {"missing-table": None}])
def test_batches_of_nothing(client: Client, operation: str, tables: Any) -> None:
    empty: Any = {"Keys": []} if operation == "batch_get_item" else []
    with refused(VALIDATION):
        getattr(client, operation)(RequestItems=dict.fromkeys(tables, empty))


def test_batches_at_once_keep_tables_apart(client: Client, simple: str, strings: str, numbers: str) -> None:
    """Case 80."""
    tables = {simple: {}, strings: {"c": s("c")}, numbers: {"c": n(1)}}

    def write_and_read(number: int) -> dict[str, list[str]]:
        p = s()
        items = {table: {"p": p, **rest, "x": s(f"{table} {number}")} for table, rest in tables.items()}
        puts = {table: [{"PutRequest": {"Item": item}}] for table, item in items.items()}
        assert not client.batch_write_item(RequestItems=puts)["UnprocessedItems"]
        keys = {table: {"Keys": [{"p": p, **rest}], "ConsistentRead": True} for table, rest in tables.items()}
        answer = client.batch_get_item(RequestItems=keys)["Responses"]
        return {table: [item["x"]["S"] for item in found] for table, found in answer.items()}

    with ThreadPoolExecutor(8) as threads:
        for number, shown in enumerate(threads.map(write_and_read, range(64))):
            assert shown == {table: [f"{table} {number}"] for table in tables}


# --- cases 100, 101: segments ---


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({"Segment": 0}, "The TotalSegments parameter is required but was not present in the request"),
        (
            {"TotalSegments": 1},
            "The Segment parameter is required but was not present in the request",
        ),
        (
            {"Segment": 4, "TotalSegments": 4},
            "The Segment parameter is zero-based and must be less than",
        ),
        (
            {"Segment": -1, "TotalSegments": 4},
            "Value '-1' at 'segment' failed to satisfy constraint",
        ),
        (
            {"Segment": 0, "TotalSegments": 0},
            "Value '0' at 'totalSegments' failed to satisfy constraint",
        ),
        ({"Segment": 0, "TotalSegments": 1_000_001}, "Member must have value less than or equal to 1000000"),
    ],
)
def test_segments_that_are_refused(client: Client, strings: str, members: Any, text: str) -> None:  # case 100
    with refused(VALIDATION, text):
        client.scan(TableName=strings, **members)


@pytest.mark.parametrize("segments", [1, 2, 4, 7, 100])
def test_segments_are_disjoint_and_complete(client: Client, own: str, segments: int) -> None:  # case 101
    items = [{"p": s(), "c": s("c")} for _ in range(60)]
    put_all(client, own, items)
    found: list[Item] = []
    for segment in range(segments):
        found += pages(
            client.scan, TableName=own, Segment=segment, TotalSegments=segments, Limit=7, ConsistentRead=True
        )[0]
    assert sorted(found, key=str) == sorted(items, key=str)


def test_a_page_of_another_segment(client: Client, own: str) -> None:
    items = [{"p": s(), "c": s("c")} for _ in range(40)]
    put_all(client, own, items)
    first = client.scan(TableName=own, Segment=0, TotalSegments=2, Limit=1, ConsistentRead=True)
    with refused(VALIDATION, "Please use ExclusiveStartKey with correct Segment"):
        client.scan(TableName=own, Segment=1, TotalSegments=2, ExclusiveStartKey=first["LastEvaluatedKey"])
