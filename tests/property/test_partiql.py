"""No text, however odd, does more to the parser of statements than make it refuse; what a SELECT reads by key is what
its condition holds for."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from dynamo.errors import ApiError
from dynamo.expressions.condition import holds
from dynamo.table import KeySchema
from dynamo.values import AttributeValue, canonical_value
from router.partiql.parse import parse
from router.partiql.planning import plan_select
from router.partiql.statements import Select
from router.partiql.words import FUNCTIONS, KEYWORDS
from tests.property.values import written_values

_PIECES = (
    *KEYWORDS,
    *sorted(FUNCTIONS)[:4],
    *[
        "()",
        "[",
        "]",
        "{",
        "}",
        "<<",
        ">>",
        ",",
        ".",
        ":",
        ";",
        "*",
        "+",
        "-",
        "=",
        "<>",
        "<",
        "<=",
        ">",
        ">=",
        "?",
        "'",
        '"',
        "--",
        "/*",
        "*/",
        "1",
        "-2",
        "1e5",
        ".5",
        "'x'",
        '"q"',
        "a",
        "b.c",
        "key",
    ],
)

texts = st.one_of(
    st.text(max_size=200),
    st.text(alphabet="SELECTFROM()[]{}<>='\",.*?-/ 01e\n", max_size=200),
    st.lists(st.sampled_from(_PIECES), max_size=60).map(" ".join),
    st.lists(st.sampled_from(_PIECES), max_size=30).map(lambda words: "SELECT * FROM t WHERE " + " ".join(words)),
)


@given(text=texts)
def test_any_text_is_a_statement_or_refused(text: str) -> None:
    error = _error_of(text)
    assert error is None or (error.type, error.status) == ("ValidationException", 400)


def _error_of(text: str) -> ApiError | None:
    try:
        parse(text)
    except ApiError as error:
        return error
    return None


@given(value=written_values)
def test_a_parameter_arrives_as_it_was_sent(value: AttributeValue) -> None:
    assert parse("SELECT * FROM t WHERE a = ?").fill([value]) == [canonical_value(value)]


@given(text=st.text(max_size=50))
def test_a_quoted_string_is_what_stands_in_it(text: str) -> None:
    quoted = text.replace("'", "''")
    assert parse(f"SELECT * FROM t WHERE a = '{quoted}'").fill(None) == [{"S": text}]


_ITEMS = [{"pk": {"S": pk}, "sk": {"S": sk}, "n": {"S": pk + sk}} for pk in "ab" for sk in "012"]
_values = st.sampled_from(["'a'", "'b'", "'0'", "'1'", "'2'", "'a1'"])
_paths = st.sampled_from(["pk", "pk", "sk", "n", "none"])
_comparisons = st.one_of(
    st.tuples(_paths, st.sampled_from(["=", "=", "=", "<>", "<", ">="]), _values).map(" ".join),
    st.tuples(_values, st.sampled_from(["=", "<=", ">"]), _paths).map(" ".join),
    st.tuples(_paths, _values, _values).map(lambda parts: f"{parts[0]} IN [{parts[1]}, {parts[2]}]"),
    st.tuples(_paths, _values).map(lambda parts: f"begins_with({parts[0]}, {parts[1]})"),
    _paths.map("{} BETWEEN '0' AND '1'".format),
    _paths.map("{} IS NOT MISSING".format),
)


def _joined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(parts, parts).map("({0[0]} AND {0[1]})".format),
        st.tuples(parts, parts).map("({0[0]} OR {0[1]})".format),
        parts.map("NOT {}".format),
    )


@given(where=st.recursive(_comparisons, _joined, max_leaves=6))
def test_ranges_and_filter_find_what_the_condition_holds_for(where: str) -> None:
    parsed = parse(f"SELECT * FROM t WHERE {where}")
    assert isinstance(parsed.statement, Select)
    assert parsed.statement.where is not None
    slots = parsed.fill(None)
    try:
        reading = plan_select(parsed.statement, slots, KeySchema(("pk",), ("sk",)))
    except ApiError as error:
        assume("Overlapping conditions" not in error.message)
        raise
    found = (
        [item for each in reading.ranges for item in _ITEMS if holds(each, item, slots)] if reading.ranges else _ITEMS
    )
    if reading.filter is not None:
        found = [item for item in found if holds(reading.filter, item, slots)]
    expected = [item for item in _ITEMS if holds(parsed.statement.where, item, slots)]
    assert sorted(map(str, found)) == sorted(map(str, expected))
