"""Key conditions of a Query."""

from __future__ import annotations

from typing import Any, cast

import orjson
import pytest

from dynamo.errors import ApiError
from dynamo.expressions.compile import compile_expressions
from dynamo.expressions.key_condition import KeyCondition, resolve_key_condition
from dynamo.table import KeySchema, ScalarType
from tests.unit.expression_tables import Case, cases

TYPES: dict[str, ScalarType] = {"pk": "S", "sk": "S"}


def schema(text: str) -> tuple[KeySchema, dict[str, ScalarType]]:
    """Keys and types from `name:type,…`; names of sort key attributes begin with s or r."""
    types = dict([part.split(":") for part in text.split(",")])
    hashes = tuple(name for name in types if name[0] not in "rs")
    ranges = tuple(name for name in types if name[0] in "rs")
    return KeySchema(hashes, ranges), cast(dict[str, ScalarType], types)


def shown(condition: KeyCondition) -> str:
    lines = [_json(value) for value in condition.hash]
    for part in condition.range:
        lines.append(" ".join([part.attribute, part.operator, *map(_json, part.values)]))
    return "\n".join(lines)


def _json(value: Any) -> str:
    return orjson.dumps(value).decode().replace(":", ": ")


@pytest.mark.parametrize("case", cases("key_conditions"))
def test_key_condition(case: Case) -> None:
    compiled = case.compile()
    assert compiled.key_condition is not None
    keys, types = schema(case.asked.get("keys", "pk:S,sk:S"))
    answer = ""
    try:
        answer = shown(resolve_key_condition(compiled.key_condition, compiled.values, keys, types))
    except ApiError as error:
        answer = f"!{error.message}"
    assert answer == case.answer


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ((2048, 1024), ""),
        ((2049, 1024), "Size of hashkey has exceeded the maximum size limit of2048 bytes"),
        ((2048, 1025), "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"),
    ],
)
def test_sizes_of_key_values(sizes: tuple[int, int], text: str) -> None:  # case 69
    compiled = compile_expressions(
        key_condition="pk = :p AND sk >= :s", values={":p": {"S": "p" * sizes[0]}, ":s": {"S": "s" * sizes[1]}}
    )
    assert compiled.key_condition is not None
    message = ""
    try:
        resolve_key_condition(compiled.key_condition, compiled.values, KeySchema(("pk",), ("sk",)), TYPES)
    except ApiError as error:
        message = error.message.removeprefix("One or more parameter values were invalid: ")
    assert message == text
