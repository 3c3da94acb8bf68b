"""No text, however odd, does more to the parser of statements than make it refuse."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dynamo.errors import ApiError
from dynamo.values import AttributeValue, canonical_value
from router.partiql.parse import parse
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
