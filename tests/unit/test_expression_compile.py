"""What requests with expressions are refused for, before any item is read."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo.errors import ApiError
from dynamo.expressions.compile import compile_expressions
from dynamo.expressions.reserved import RESERVED_WORDS
from tests.unit.expression_tables import Case, cases

X: dict[str, Any] = {":x": {"S": "x"}}


def refusal(**request: Any) -> str:
    """The text with which a request is refused; "ok" if it is not."""
    try:
        compile_expressions(**request)
    except ApiError as error:
        return error.message if error.type == "ValidationException" else str(error)
    return "ok"


@pytest.mark.parametrize("case", cases("compile"))
def test_text_of_refusal(case: Case) -> None:
    answer = "ok"
    try:
        case.compile()
    except ApiError as error:
        answer = error.message if error.type == "ValidationException" else str(error)
    assert answer == case.answer


@pytest.mark.parametrize("kind", ["condition", "filter", "key_condition"])
def test_size_is_checked_before_syntax(kind: str) -> None:
    fits = "a = :x" + " " * 4090
    assert len(fits) == 4096
    assert refusal(**{kind: fits}, values=X) == "ok"
    label = {"condition": "Condition", "filter": "Filter", "key_condition": "KeyCondition"}[kind]
    assert refusal(**{kind: "!" * 4097}) == (
        f"Invalid {label}Expression: Expression size has exceeded the maximum allowed size; expression size: 4097"
    )


def test_size_counts_bytes() -> None:
    assert "expression size: 4098" in refusal(update="é" * 2049)


def conjunction(operators: int) -> str:
    """A condition with an odd number of operators."""
    return " and ".join(["a=:x"] * ((operators + 1) // 2))


def test_number_of_operators() -> None:
    assert refusal(condition=conjunction(299), values=X) == "ok"
    assert refusal(condition="not " + conjunction(299), values=X) == "ok"
    too_many = "Invalid ConditionExpression: The expression contains too many operators; operator count: 301"
    assert refusal(condition=conjunction(301), values=X) == too_many
    assert refusal(condition=conjunction(601), values=X) == too_many


def test_functions_are_no_operators() -> None:
    assert refusal(condition=" and ".join(["contains(a,b)"] * 170)) == "ok"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("(" * 2000 + "a=:x" + ")" * 2000, "The expression has redundant parentheses;"),
        ("NOT " * 1000 + "a=:x", "The expression contains too many operators; operator count: 301"),
        ("not(" * 800 + "a=:x" + ")" * 800, "The expression contains too many operators; operator count: 301"),
        ("(" * 4096, 'Syntax error; token: "<EOF>", near: "("'),
        (
            "size(" * 600 + "a" + ")" * 600 + "=:x",
            "The function is not allowed to be used this way in an expression; function: size",
        ),
    ],
)
def test_depth_never_crashes(text: str, answer: str) -> None:
    assert refusal(condition=text, values=X) == f"Invalid ConditionExpression: {answer}"


def test_depth_that_is_allowed() -> None:
    assert refusal(condition="not(" * 299 + "a=:x" + ")" * 299, values=X) == "ok"
    assert refusal(update="SET a=" + "list_append(b," * 250 + "c" + ")" * 250) == "ok"


def test_choices_of_in() -> None:
    values = {f":{number}": {"N": str(number)} for number in range(101)}
    hundred = dict(list(values.items())[:100])
    assert refusal(filter=f"a IN ({', '.join(hundred)})", values=hundred) == "ok"
    assert refusal(filter=f"a IN ({', '.join(values)})", values=values) == (
        "Invalid FilterExpression: The IN operator is provided with too many operands; number of operands: 101"
    )


def test_depth_of_paths() -> None:
    assert refusal(projection=".".join("a" * 32)) == "ok"
    assert refusal(projection=".".join("a" * 33)) == (
        "Invalid ProjectionExpression: The document path has too many nesting levels; nesting levels: 33"
    )


def test_length_of_names() -> None:
    assert refusal(projection="#a", names={"#a": "n" * 65_535}) == "ok"
    assert refusal(projection="#a", names={"#a": "n" * 65_536}) == (
        "Attribute name is too large, must be less than 65536 bytes"
    )
    assert refusal(projection="#a", names={"#a": "é" * 32_768}) != "ok"
    assert refusal(projection="#a", names={"#a": ""}) != "ok"


def test_values_of_the_wrong_json_type() -> None:
    with pytest.raises(ApiError, match="SerializationException"):
        compile_expressions(condition="a = :x", values={":x": {"N": 5}})


def test_thousands_of_paths_are_compared_fast() -> None:
    names = [f"a{number}" for number in range(680)]
    assert refusal(update="REMOVE " + ",".join(names)) == "ok"
    assert "path one: [a0], path two: [a0]" in refusal(update="REMOVE " + ",".join([*names, "a0"]))


def test_values_are_canonical_and_in_the_order_of_slots() -> None:
    compiled = compile_expressions(
        update="SET a = :second", condition="b = :first", values={":first": {"N": "1.0"}, ":second": {"SS": ["y", "x"]}}
    )
    assert compiled.values == [{"N": "1"}, {"SS": ["x", "y"]}]


def test_the_same_texts_share_their_trees() -> None:
    one = compile_expressions(update="ADD n :x", values={":x": {"N": "1"}})
    other = compile_expressions(update="ADD n :x", values={":x": {"N": "2"}})
    assert one.update is other.update
    assert one.encoded_update is other.encoded_update
    assert other.values == [{"N": "2"}]


@pytest.mark.parametrize(
    "request_",
    [
        {"update": "REMOVE " + "a" * 1024},
        {"projection": "#a", "names": {"#a": "n" * 1025}},
        {"projection": ",".join(f"#a{n}" for n in range(33)), "names": {f"#a{n}": f"a{n}" for n in range(33)}},
    ],
)
def test_large_requests_do_not_fill_the_cache(request_: dict[str, Any]) -> None:
    one, other = compile_expressions(**request_), compile_expressions(**request_)
    assert (one.update, one.projection) == (other.update, other.projection)
    assert one.update is not other.update or one.projection is not other.projection


def test_values_of_each_request_are_checked() -> None:
    assert refusal(update="ADD n :x", values={":x": {"N": "1"}}) == "ok"
    assert "operand type: STRING" in refusal(update="ADD n :x", values={":x": {"S": "1"}})
    assert refusal(update="ADD n :x", values={":x": {"NS": ["1"]}}) == "ok"


def test_the_same_placeholders_may_mean_other_names() -> None:
    first = compile_expressions(projection="#a", names={"#a": "one"})
    second = compile_expressions(projection="#a", names={"#a": "two"})
    assert first.projection != second.projection


def test_reserved_words() -> None:
    assert len(RESERVED_WORDS) == 573
    for word in RESERVED_WORDS:
        text = f"Attribute name is a reserved keyword; reserved keyword: {word.lower()}"
        assert refusal(projection=word.lower()) == f"Invalid ProjectionExpression: {text}"
