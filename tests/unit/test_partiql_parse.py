"""Statements to trees, and DynamoDB's texts for those that are none (numbers are those of the collected cases)."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo.errors import ApiError
from dynamo.expressions.tree import (
    Add,
    And,
    Arithmetic,
    AttributeExists,
    AttributeNotExists,
    AttributeType,
    BeginsWith,
    Between,
    Compare,
    Contains,
    DeleteFrom,
    IfNotExists,
    In,
    ListAppend,
    Not,
    Or,
    Path,
    Remove,
    Set,
    Size,
    Value,
)
from router.partiql.parse import (
    CACHED_TEXT_SIZE_MAX,
    LONG_STATEMENTS_MAX,
    WORDS_MAX,
    WORDS_TOGETHER_MAX,
    check_together,
    parse,
)
from router.partiql.statements import Delete, Exists, Insert, OrderKey, Select, Source, Update

NOT_WELL_FORMED = "Statement wasn't well formed, can't be processed: "
LEFTOVER = f"{NOT_WELL_FORMED}Unexpected token after expression"
T = Source("t")
A, B = Path(("a",)), Path(("b",))


def one(slot: int = 0) -> Compare:
    return Compare("=", A, Value(slot))


def where(condition: str) -> Any:
    statement = parse(f"SELECT * FROM t WHERE {condition}").statement
    assert isinstance(statement, Select)
    return statement.where


def message(text: str, parameters: list[Any] | None = None) -> str:
    with pytest.raises(ApiError) as raised:
        parse(text).fill(parameters)
    assert raised.value.type == "ValidationException"
    assert raised.value.status == 400
    return raised.value.message


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("SELECT * FROM t", Select(T)),
        ("select * from t;", Select(T)),
        ('SELECT * FROM "t"."i"', Select(Source("t", "i"))),
        ('SELECT * FROM "a""b"', Select(Source('a"b'))),
        ("SELECT a, b.c FROM t", Select(T, (A, Path(("b", "c"))), ("a", "c"))),
        ("SELECT b[0], \"x\".y['z w'] FROM t", Select(T, (Path(("b", 0)), Path(("x", "y", "z w"))), ("_1", "z w"))),
        ("SELECT * FROM t WHERE a = 1", Select(T, where=one())),
        (
            "SELECT * FROM t WHERE a = 1 ORDER BY a DESC, b",
            Select(T, where=one(), order=(OrderKey("a", True), OrderKey("b"))),
        ),
        ("SELECT * FROM t -- note\nWHERE a /* = 2 */ = 1 -- end", Select(T, where=one())),
        ("INSERT INTO t VALUE {'a': 1}", Insert(T, 0)),
        ("UPDATE t SET a = 1 WHERE b = 2", Update(T, (Set(A, Value(0)),), Compare("=", B, Value(1)))),
        ("UPDATE t SET a = 1, b = 2 REMOVE c", Update(T, (Set(A, Value(0)), Set(B, Value(1)), Remove(Path(("c",)))))),
        ("UPDATE t SET a = 1 SET b = 2", Update(T, (Set(A, Value(0)), Set(B, Value(1))))),
        ("UPDATE t REMOVE a[2] RETURNING ALL OLD *", Update(T, (Remove(Path(("a", 2))),), returning="ALL_OLD")),
        ("UPDATE t REMOVE a RETURNING modified new *", Update(T, (Remove(A),), returning="UPDATED_NEW")),
        ("FROM t WHERE a = 1 SET b = 2", Update(T, (Set(B, Value(1)),), one())),
        ("DELETE FROM t WHERE a = 1 RETURNING ALL OLD *", Delete(T, one(), "ALL_OLD")),
        ("EXISTS(SELECT * FROM t WHERE a = 1)", Exists(Select(T, where=one()))),
    ],
)
def test_statements(text: str, statement: Any) -> None:
    assert parse(text).statement == statement


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("a = b", Compare("=", A, B)),
        ("a != 1", Compare("<>", A, Value(0))),
        ("a <= 1", Compare("<=", A, Value(0))),
        ("1 > a", Compare(">", Value(0), A)),
        ("a = 1 OR b = 2 AND a = 3", Or(one(), And(Compare("=", B, Value(1)), one(2)))),
        ("(a = 1 OR b = 2) AND a = 3", And(Or(one(), Compare("=", B, Value(1))), one(2))),
        ("NOT a = 1 AND b = 2", And(Not(one()), Compare("=", B, Value(1)))),
        ("a BETWEEN 1 AND 2 AND b = 3", And(Between(A, Value(0), Value(1)), Compare("=", B, Value(2)))),
        ("a NOT BETWEEN 1 AND 2", Not(Between(A, Value(0), Value(1)))),
        ("a IN [1, 2]", In(A, (Value(0), Value(1)))),
        ("a IN (1, 2)", In(A, (Value(0), Value(1)))),
        ("a IN (1)", In(A, (Value(0),))),
        ("a NOT IN <<1>>", Not(In(A, (Value(0),)))),
        ("a IS MISSING", AttributeNotExists(A)),
        ("a IS NOT MISSING", Not(AttributeNotExists(A))),
        ("a IS NULL", AttributeType(A, Value(0))),
        ("a is not string", Not(AttributeType(A, Value(0)))),
        ("attribute_exists(a)", AttributeExists(A)),
        ("ATTRIBUTE_NOT_EXISTS(a.b[0])", AttributeNotExists(Path(("a", "b", 0)))),
        ("attribute_exists(a) = true", AttributeExists(A)),
        ("false = attribute_exists(a)", Not(AttributeExists(A))),
        ("attribute_type(a, 'S')", AttributeType(A, Value(0))),
        ("begins_with(a, 'x')", BeginsWith(A, Value(0))),
        ("contains(a, ?)", Contains(A, Value(0))),
        ("size(a) > 3", Compare(">", Size(A), Value(0))),
    ],
)
def test_conditions(text: str, condition: Any) -> None:
    assert where(text) == condition


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("a = b + 1", Set(A, Arithmetic("+", B, Value(0)))),
        ("a = a - ? + 2", Set(A, Arithmetic("+", Arithmetic("-", A, Value(0)), Value(1)))),
        ("a = list_append(a, [1])", Set(A, ListAppend(A, Value(0)))),
        ("a = if_not_exists(a, 0) + 1", Set(A, Arithmetic("+", IfNotExists(A, Value(0)), Value(1)))),
        ("a = SET_ADD(a, <<1>>)", Add(A, Value(0))),
        ("a.b = set_delete(a.b, ?)", DeleteFrom(Path(("a", "b")), Value(0))),
    ],
)
def test_assignments(text: str, action: Any) -> None:
    statement = parse(f"UPDATE t SET {text} WHERE a = 1").statement
    assert isinstance(statement, Update)
    assert statement.update == (action,)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'it''s'", {"S": "it's"}),
        ("''", {"S": ""}),
        ("7.31E+6", {"N": "7310000"}),
        ("-.73e1", {"N": "-7.3"}),
        ("+5.", {"N": "5"}),
        ("TRUE", {"BOOL": True}),
        ("null", {"NULL": True}),
        ("[1, 'a', [], {}]", {"L": [{"N": "1"}, {"S": "a"}, {"L": []}, {"M": {}}]}),
        ("{'a': {'b': [null]}}", {"M": {"a": {"M": {"b": {"L": [{"NULL": True}]}}}}}),
        ("<<2, 10, 1>>", {"NS": ["1", "2", "10"]}),
        ("<<'b', 'a'>>", {"SS": ["a", "b"]}),
        ("?", {"B": "AQ=="}),
        ("[?, 1]", {"L": [{"B": "AQ=="}, {"N": "1"}]}),
        ("{'k': ?}", {"M": {"k": {"B": "AQ=="}}}),
        ("<<?>>", {"BS": ["AQ=="]}),
    ],
)
def test_values(text: str, value: Any) -> None:
    parsed = parse(f"SELECT * FROM t WHERE a = {text}")
    assert parsed.fill([{"B": "AQ=="}] if "?" in text else None) == [value]


def test_parameters_are_numbered_as_written_and_canonical() -> None:
    parsed = parse("UPDATE t SET a = ?, b = [?, 'x'] WHERE c = ?")
    assert parsed.fill([{"N": "1.0"}, {"S": "p"}, {"NS": ["2", "1"]}]) == [
        {"N": "1"},
        {"L": [{"S": "p"}, {"S": "x"}]},
        {"NS": ["1", "2"]},
    ]


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("SELECTT * FROMM t", "Expected data manipulation"),
        ("SLECT * FROM t", "Expected data manipulation"),
        ("UPDATE Payment-x SET a = 1", "Expected data manipulation"),
        ("", "Expected data manipulation"),
        ("SELECT * FROM t WHERE a = 1 foo", "Unexpected token after expression"),
        ("SELECT * FROM t WHERE a = 1 e5", "Unexpected token after expression"),
        ("INSERT INTO t VALUE {'a': 1} foo", "Unexpected token after expression"),
        ("SELECT * FROM t WHERE a = 1)", "Unexpected token after expression"),
        ("DELETE FROM t WHERE a = 1 ORDER BY a", "Unexpected token after expression"),
        ("SELECT * FROM t ORDER BY a WHERE a = 1", "Unexpected token after expression"),
        ("INSERT INTO t x VALUE {'a': 1}", "Unexpected token after expression"),
        ("FROM t SET a = 1 WHERE b = 2", "Unexpected token after expression"),
        ("SELECT * FROM t WHERE", "Unexpected term"),
        ("SELECT * FROM t WHERE;", "Unexpected term"),
        ("UPDATE t SET a = 1 WHERE", "Unexpected term"),
        ("SELECT * FROM t WHERE NOT", "Unexpected term"),
        ("SELECT * FROM t WHERE (", "Unexpected term"),
        ("SELECT * FROM", "Unexpected term"),
        ("SELECT * FROM t WHERE a = 1 AND", "Missing right-hand side expression of infix operator"),
        ("SELECT * FROM t WHERE a = 1 OR", "Missing right-hand side expression of infix operator"),
        ("SELECT * FROM t WHERE ORDER BY a", "Unexpected keyword"),
        ("SELECT key FROM t", "Unexpected keyword"),
        ("SELECT * FROM t WHERE IS NULL", "Unexpected operator"),
        ("SELECT * FROM t WHERE a = LIKE", "Unexpected operator"),
        ("SELECT * FROM t WHERE a IS FOO", "Expected type name"),
        ("SELECT * FROM t WHERE attribute_exists(m.inner)", "Invalid path dot component"),
        ("DELETE FROM", "Expected identifier for simple path"),
        ("DELETE FROM;", "Expected identifier for simple path"),
        ("DELETE FROM WHERE a = 1", "Expected identifier for simple path"),
        ('SELECT * FROM "t', ""),  # case 120
        ("SELECT * FROM t WHERE a = 'x", ""),  # case 120
        ("SELECT * FROM t WHERE a = 1 # note", ""),
        ("SELECT * FROM t WHERE a = 1 /* note", ""),
        ("SELECT * FROM t WHERE a = 1e2147483648", ""),
        ("SELECT * FROM t WHERE a = 1e99999999999", ""),
        ("SELECT * FROM t WHERE a = 1.5e-2147483647", ""),
    ],
)
def test_what_is_not_well_formed(text: str, detail: str) -> None:
    assert message(text) == NOT_WELL_FORMED + detail


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT COUNT(*) FROM t", "Unexpected path component at 1:8:5"),  # case 117
        ("SELECT\n  attribute_exists(a) FROM t", "Unexpected path component at 2:3:16"),
        ("SELECT * FROM t WHERE EXISTS(a)", "Unrecognized function: exists at 1:23:6"),
        ("SELECT * FROM t WHERE set_add(a, <<1>>) = a", "Unrecognized function: set_add at 1:23:7"),
        ("SELECT * FROM t x WHERE a = 1", "Aliasing is not supported"),
        ("SELECT * FROM t AS x", "Aliasing is not supported"),
        ("UPDATE t x SET a = 1", "Aliasing is not supported"),
        ("DELETE FROM t x", "Aliasing is not supported"),
        ('SELECT * FROM ""', "Path component cannot be an empty string"),
        ('SELECT * FROM "t".""', "Path component cannot be an empty string"),
        ("SELECT * FROM t.i.x", "A path may contain at most 2 components in the FROM clause"),
        ("UPDATE t.i SET a = 1", "This operation is not supported on an index"),
        ("DELETE FROM t.i", "This operation is not supported on an index"),
        (
            'INSERT INTO "t"."i" VALUE {}',
            "FROM clause may only contain a single table name in data manipulation statements at 1:13:3",
        ),
        (
            "DELETE FROM t RETURNING MODIFIED OLD *",
            "Invalid returning clause: RETURNING MODIFIED OLD *. "
            "Only RETURNING ALL OLD * is allowed in DELETE statements.",
        ),
        (
            "SELECT * FROM t WHERE attribute_exists('a')",
            "Operator or function requires a document path; operator or function: attribute_exists",
        ),
        (
            "SELECT * FROM t WHERE attribute_exists()",
            "Incorrect number of operands for operator or function; "
            "operator or function: attribute_exists, number of operands: 0",
        ),
        (
            "UPDATE t SET b = set_add(a, <<1>>)",
            "The first argument to SET_ADD must equal the assignment value at 1:18:7",
        ),
        ("UPDATE t SET a = set_add(a)", "SET_ADD must have exactly two arguments at 1:18:7"),
        (
            "UPDATE t SET a = set_delete(a, ['x'])",
            "The second argument to SET_DELETE must be a value with type SET at 1:29:1",
        ),
        ("UPDATE t SET a = set_add(a, <<>>)", "Empty bags are not supported"),
        (
            "UPDATE t SET a = set_add(a, <<'x', 'x'>>)",
            "One or more parameter values were invalid: Input collection [x, x] contains duplicates.",
        ),
        (
            "INSERT INTO t VALUE {'a': set_add(<<1>>, <<2>>)}",
            "Unsupported data type: set_add under key root at 1:27:7",
        ),
        (
            "SELECT * FROM t WHERE a = 1e126",
            "Number overflow. Attempting to store a number with magnitude larger than supported range under root",
        ),
        (
            "INSERT INTO t VALUE {'a': 1, 'm': {'x': [0, 1e-131]}}",
            "Number underflow. Attempting to store a number with magnitude smaller than supported range "
            "under root.x[1]",
        ),
        (
            "INSERT INTO t VALUE {'a': 123456789012345678901234567890123456789}",
            "Attempting to store more than 38 significant digits in a Number under root",
        ),
        (
            "UPDATE t SET a = 1, a.b = 2",
            "Two document paths overlap with each other; must remove or rewrite one of these paths; "
            "path one: [a], path two: [a, b]",
        ),
        (
            f"SELECT * FROM t WHERE a = {'[' * 40}{']' * 40}",
            "Nesting Levels have exceeded supported limits: "
            "Attributes in the item have nested levels beyond supported limit",
        ),
    ],
)
def test_what_dynamodb_does_not_take(text: str, expected: str) -> None:
    assert message(text) == expected


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
def test_an_order_is_asked_only_of_what_has_one(operator: str) -> None:
    assert message(f"SELECT * FROM t WHERE a {operator} ?", [{"BOOL": True}]) == (
        f"Incorrect operand type for operator or function; operator or function: {operator}, operand type: BOOL"
    )


@pytest.mark.parametrize(
    ("text", "parameters"),
    [("SELECT * FROM t WHERE a = ?", None), ("SELECT * FROM t", [{"S": "x"}]), ("SELECT ? FROM t", [])],
)
def test_parameters_must_be_as_many_as_their_places(text: str, parameters: list[Any] | None) -> None:
    message(text, parameters)


def test_parameters_are_checked_as_attribute_values() -> None:
    text = "SELECT * FROM t WHERE a = ?"
    assert message(text, [{"N": "abc"}]) == "The parameter cannot be converted to a numeric value: abc"
    with pytest.raises(ApiError):
        parse(text).fill([{"S": 1}])


@pytest.mark.parametrize(
    "condition",
    [
        "(" * 250 + "a = 1" + ")" * 250,  # case 120
        "(" * 4000,
        "[" * 4000,
        "NOT " * 1900 + "a = 1",
        " AND ".join(["a = 1"] * 700),
        "a = " + "1 + " * 1900 + "1",
        "contains(" * 800,
    ],
)
def test_deep_statements_are_refused(condition: str) -> None:
    message(f"SELECT * FROM t WHERE {condition}")


def test_deep_statements_within_bounds_are_read() -> None:
    assert where("(" * 90 + "a = 1" + ")" * 90) == one()
    assert isinstance(where(" AND ".join(["a = 1"] * 150)), And)


def test_parsed_statements_are_kept_and_few_long_ones() -> None:
    text = "SELECT * FROM t WHERE a = 'kept'"
    assert parse(text) is parse(text)
    long = [
        f"SELECT * FROM t WHERE a = '{number}{'x' * CACHED_TEXT_SIZE_MAX}'" for number in range(LONG_STATEMENTS_MAX + 1)
    ]
    kept = [parse(each) for each in long]
    assert parse(long[-1]) is kept[-1]
    assert parse(long[0]) is not kept[0]


@pytest.mark.parametrize("part", ["[", "[]", "()", "a,", "?,", "'',", "/**/", "- "])
def test_a_statement_of_too_many_words_is_not_read(part: str) -> None:
    with pytest.raises(ApiError, match=f"The statement has more than {WORDS_MAX} words and signs"):
        parse("SELECT * FROM t WHERE a = " + part * (8_160 // len(part)) if len(part) < 2 else f"x {part * WORDS_MAX}")


def test_a_long_text_is_one_word() -> None:
    text = "it''s (a) [long] text, " * 340
    assert isinstance(parse(f"INSERT INTO t VALUE {{'pk': '{text}'}}").statement, Insert)


def test_the_statements_of_a_request_are_bounded_together() -> None:
    words = " ".join("a" * (WORDS_TOGETHER_MAX // 8))
    check_together([f"{words} {number}" for number in range(7)])
    check_together([words] * 100)  # one and the same is read once
    with pytest.raises(ApiError, match="words and signs together"):
        check_together([f"{words} {number}" for number in range(8)])
