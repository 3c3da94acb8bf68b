"""Which rows a statement reads, how they are called in the answer, and where a token goes on."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import orjson
import pytest

from dynamo.errors import ApiError
from dynamo.expressions import tree
from dynamo.expressions.key_condition import resolve_key_condition
from dynamo.table import KeySchema
from dynamo.values import AttributeValue
from router.partiql import columns
from router.partiql.next_token import Position, decode_token, encode_token, fingerprint
from router.partiql.parse import parse
from router.partiql.planning import Reading, item_key, joined, plan_select
from router.partiql.statements import Select

COMPOSITE = KeySchema(("pk",), ("sk",))
WIDE = KeySchema(("p", "q"), ("r", "s"))
TYPES: Any = dict.fromkeys(["pk", "sk", "p", "q", "r", "s"], "S")


def select(text: str) -> tuple[Select, list[AttributeValue]]:
    parsed = parse(f"SELECT * FROM t {text}")
    assert isinstance(parsed.statement, Select)
    return parsed.statement, parsed.fill(None)


def reading(text: str, keys: KeySchema = COMPOSITE) -> Reading:
    return plan_select(*select(text), keys)


def ranges(text: str, keys: KeySchema = COMPOSITE) -> list[tuple[Any, ...]]:
    """Each range: values of the partition keys, then (operator, values) of each sort key in use."""
    statement, values = select(text)
    found = []
    for condition in plan_select(statement, values, keys).ranges:
        resolved = resolve_key_condition(condition, values, keys, TYPES)
        sort = tuple((each.operator, *[value["S"] for value in each.values]) for each in resolved.range)
        found.append((*[value["S"] for value in resolved.hash], *sort))
    return found


def refusal(text: str) -> str:
    with pytest.raises(ApiError) as raised:
        reading(text)
    assert raised.value.type == "ValidationException"
    return raised.value.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("WHERE pk = 'a'", [("a",)]),
        ("WHERE 'a' = pk AND sk = 'b'", [("a", ("eq", "b"))]),
        ("WHERE n = 1 AND sk > 'b' AND pk = 'a'", [("a", ("gt", "b"))]),
        ("WHERE pk = 'a' AND 'b' <= sk", [("a", ("ge", "b"))]),
        ("WHERE pk = 'a' AND sk BETWEEN 'b' AND 'c'", [("a", ("between", "b", "c"))]),
        ("WHERE pk = 'a' AND begins_with(sk, 'b')", [("a", ("begins_with", "b"))]),
        ("WHERE pk = 'a' AND sk > 'b' AND sk = 'c'", [("a", ("eq", "c"))]),
        ("WHERE pk = 'a' AND sk <> 'b'", [("a",)]),
        ("WHERE pk = 'a' AND NOT sk = 'b'", [("a",)]),
        ("WHERE pk = 'a' AND (sk = 'b' OR sk = 'c')", [("a",)]),
        ("WHERE pk IN ['b', 'a', 'b'] AND sk < 'c'", [("b", ("lt", "c")), ("a", ("lt", "c"))]),
        ("WHERE pk = 'a' OR pk = 'b' AND sk = 'c'", [("a",), ("b", ("eq", "c"))]),
        ("WHERE pk = 'a' AND sk = 'b' OR pk = 'a' AND sk = 'c'", [("a",)]),
        ("WHERE (pk = 'a' OR pk IN ['b', 'c']) AND n = 1", [("a",), ("b",), ("c",)]),
        ("", []),
        ("WHERE n = 1", []),
        ("WHERE pk > 'a'", []),
        ("WHERE NOT pk = 'a'", []),
        ("WHERE pk = 'a' OR n = 1", []),
        ("WHERE pk.x = 'a'", []),
        ("WHERE pk = sk", []),
    ],
)
def test_rows_are_read_by_key_where_the_condition_gives_one(text: str, expected: Any) -> None:
    assert ranges(text) == expected


def test_an_index_with_several_keys_needs_all_its_partition_keys() -> None:
    assert ranges("WHERE q = '2' AND p = '1' AND r = '3' AND s > '4'", WIDE) == [("1", "2", ("eq", "3"), ("gt", "4"))]
    assert ranges("WHERE q = '2' AND p = '1' AND s = '4'", WIDE) == [("1", "2")]
    assert ranges("WHERE p = '1'", WIDE) == []


def test_what_the_key_does_not_say_is_left_to_the_filter() -> None:
    planned = reading("WHERE n = 1 AND sk > 'b' AND pk = 'a' AND sk < 'c'")
    assert planned.filter is not None
    assert planned.keyed_filter
    assert tree.attributes_of(planned.filter) == {"n", "sk"}
    assert reading("WHERE pk = 'a' AND sk = 'b'").filter is None


def test_a_union_of_keys_is_filtered_by_the_whole_condition() -> None:
    statement, values = select("WHERE pk = 'a' AND n = 1 OR pk = 'b'")
    planned = plan_select(statement, values, COMPOSITE)
    assert planned.filter == statement.where
    assert not planned.keyed_filter


def test_long_conditions_are_taken_apart_without_recursion() -> None:
    text = " AND ".join(f"a{i} = {i}" for i in range(140))
    statement, values = select(f"WHERE pk = 'a' AND {text}")
    planned = plan_select(statement, values, COMPOSITE)
    assert planned.filter is not None
    assert len(tree.attributes_of(planned.filter)) == 140


@pytest.mark.parametrize(
    ("text", "expected", "reverse"),
    [
        ("WHERE pk = 'a' ORDER BY sk", [("a",)], False),
        ("WHERE pk = 'a' ORDER BY sk DESC", [("a",)], True),
        ("WHERE pk IN ['b', 'a'] ORDER BY pk", [("a",), ("b",)], False),
        ("WHERE pk IN ['a', 'b'] ORDER BY pk DESC, sk ASC", [("b",), ("a",)], False),
        ("WHERE pk IN ['a', 'b'] ORDER BY pk DESC, sk DESC", [("b",), ("a",)], True),
    ],
)
def test_order_by(text: str, expected: Any, reverse: bool) -> None:
    assert (ranges(text), reading(text).reverse) == (expected, reverse)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ORDER BY sk", "Must have WHERE clause in the statement when using ORDER BY clause."),
        (
            "WHERE n = 1 ORDER BY sk",
            "Must have at least one non-optional hash key condition in WHERE clause when using ORDER BY clause.",
        ),
        ("WHERE pk = 'a' ORDER BY n", "Variable reference n in ORDER BY clause must be part of the primary key"),
        (
            "WHERE pk = 'a' OR pk = 'b' ORDER BY sk",
            "Must have hash key in ORDER BY clause when more than one hash key condition specified in WHERE clause.",
        ),
        (
            "WHERE pk = 'a' AND x = '1' OR pk = 'a' AND sk = '2'",
            "Overlapping conditions with range keys are not supported in where clause",
        ),
    ],
)
def test_what_cannot_be_read(text: str, expected: str) -> None:
    assert refusal(text) == expected


def test_branches_with_negated_sort_keys_do_not_overlap() -> None:
    assert ranges("WHERE pk = 'a' AND sk <> '1' OR pk = 'a' AND sk = '2'") == [("a",)]
    assert ranges("WHERE pk = 'a' OR pk = 'a' AND NOT sk = '1'") == [("a",)]


def test_the_key_of_one_item() -> None:
    statement, values = select("WHERE n = 1 AND sk = 'b' AND 'a' = pk AND pk = 'c'")
    found = item_key(statement.where, values, COMPOSITE)
    assert found is not None
    key, rest = found
    assert key == {"pk": {"S": "a"}, "sk": {"S": "b"}}
    assert rest == joined(
        [
            tree.Compare("=", tree.Path(("n",)), tree.Value(0)),
            tree.Compare("=", tree.Path(("pk",)), tree.Value(3)),
        ]
    )


@pytest.mark.parametrize("text", ["", "WHERE pk = 'a'", "WHERE pk = 'a' AND sk > 'b'", "WHERE pk = 'a' OR sk = 'b'"])
def test_less_than_a_key_names_no_item(text: str) -> None:
    statement, values = select(text)
    assert item_key(statement.where, values, COMPOSITE) is None


# --- rows ---


def rows(projection: str, *items: dict[str, AttributeValue]) -> Any:
    statement = parse(f"SELECT {projection} FROM t").statement
    assert isinstance(statement, Select)
    return orjson.loads(b"[%b]" % columns.rows(statement, [orjson.dumps(item) for item in items]))


ITEM: dict[str, AttributeValue] = {
    "a": {"N": "1"},
    "m": {"M": {"x": {"S": "deep"}}},
    "l": {"L": [{"S": "0"}, {"M": {"y": {"S": "1"}}}]},
}


@pytest.mark.parametrize(
    ("projection", "row"),
    [
        ("*", ITEM),
        ("m.x", {"x": {"S": "deep"}}),
        ("a, l[1].y, l[0]", {"a": {"N": "1"}, "y": {"S": "1"}, "_3": {"S": "0"}}),
        ("m.none, l[7], a.b", {}),
    ],
)
def test_each_path_is_a_column(projection: str, row: Any) -> None:
    assert rows(projection, ITEM) == [row]


def test_rows_stay_in_order_and_empty_ones_stay() -> None:
    assert rows("m.x", {}, ITEM, {}) == [{}, {"x": {"S": "deep"}}, {}]
    assert rows("m.x") == []


def test_nodes_are_asked_for_whole_attributes_once() -> None:
    statement = parse("SELECT m.x, m.y, l[0] FROM t").statement
    assert isinstance(statement, Select)
    assert columns.node_projection(statement) == (tree.Path(("m",)), tree.Path(("l",)))


# --- tokens ---

KEY = {"pk": {"S": "a"}, "sk": {"S": "\x00é"}}
REQUEST = fingerprint(7, "SELECT * FROM t", [{"S": "x"}])


def test_a_token_leads_back_to_its_position() -> None:
    assert decode_token(encode_token(2, orjson.dumps(KEY), REQUEST), REQUEST, 3) == Position(2, KEY)
    assert decode_token(encode_token(0, b"", REQUEST), REQUEST, 0) == Position(0, None)


def test_the_longest_token_fits_its_member() -> None:
    """32,768 characters; an index of eight keys and two of the table's have 2 × (2,048 + 1,024) bytes of them."""
    wide = {f"{i}" * 255: {"B": b64encode(bytes(768)).decode()} for i in range(8)}
    assert len(encode_token(49, orjson.dumps(wide), REQUEST)) <= 32_768


@pytest.mark.parametrize(
    "other",
    [
        fingerprint(8, "SELECT * FROM t", [{"S": "x"}]),
        fingerprint(7, "SELECT * FROM u", [{"S": "x"}]),
        fingerprint(7, "SELECT * FROM t", [{"S": "y"}]),
    ],
)
def test_a_token_belongs_to_its_request(other: bytes) -> None:
    with pytest.raises(ApiError, match="NextToken does not match request"):
        decode_token(encode_token(0, b"", REQUEST), other, 1)


def test_no_bit_of_a_token_can_be_changed() -> None:
    data = b64decode(encode_token(0, orjson.dumps(KEY), REQUEST))
    for place in range(len(data)):
        forged = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        with pytest.raises(ApiError, match="Invalid NextToken"):
            decode_token(b64encode(forged).decode(), REQUEST, 1)


@pytest.mark.parametrize("token", ["x", "é", "AAAA", "=" * 8, " " * 4])
def test_what_is_no_token(token: str) -> None:
    with pytest.raises(ApiError, match="Invalid NextToken"):
        decode_token(token, REQUEST, 1)
