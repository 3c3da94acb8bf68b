"""The row keys that a key condition on an index asks for are those of the items that meet it, and no others."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dynamo.expressions.key_condition import RangeCondition, RangeOperator
from dynamo.keys import index_partition_hash, index_row_key
from dynamo.table import KeySchema, ScalarType
from router.read_target import index_range_bounds
from tests.property.test_keys import CONTENTS, order

OPERATORS: list[RangeOperator] = ["eq", "lt", "le", "gt", "ge", "between", "begins_with"]


def holds(operator: RangeOperator, kind: str, content: str, bounds: list[str]) -> bool:
    value, *limits = (order(kind, each) for each in (content, *bounds))
    match operator:
        case "eq":
            return bool(value == limits[0])
        case "lt":
            return bool(value < limits[0])
        case "le":
            return bool(value <= limits[0])
        case "gt":
            return bool(value > limits[0])
        case "ge":
            return bool(value >= limits[0])
        case "between":
            return bool(limits[0] <= value <= limits[1])
        case "begins_with":
            return bool(value.startswith(limits[0]))


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[ScalarType], RangeOperator, list[str], list[list[str]]]:
    """Types of the range attributes, an operator on the last one that is used, its bounds, and some items' values."""
    kinds = draw(st.lists(st.sampled_from(list(CONTENTS)), min_size=1, max_size=3))
    used = draw(st.integers(1, len(kinds)))
    last = kinds[used - 1]
    operators = OPERATORS if last != "N" else OPERATORS[:-1]
    operator = draw(st.sampled_from(operators))
    # Few different values, so that they often meet each other's bounds.
    pools = {kind: draw(st.lists(CONTENTS[kind].filter(bool), min_size=2, max_size=4)) for kind in set(kinds)}
    bounds = [draw(st.sampled_from(pools[last])) for _ in range(2 if operator == "between" else 1)]
    if operator == "begins_with":
        bounds = [bounds[0][: draw(st.integers(0, len(bounds[0])))]] if last == "S" else bounds
    equal = [draw(st.sampled_from(pools[kind])) for kind in kinds[: used - 1]]
    rows = draw(st.lists(st.tuples(*(st.sampled_from(pools[kind]) for kind in kinds)), min_size=1, max_size=8))
    return kinds, operator, [*equal, *bounds], [list(row) for row in rows]


@given(cases())
def test_an_index_s_bounds_hold_what_meets_the_condition(
    case: tuple[list[ScalarType], RangeOperator, list[str], list[list[str]]],
) -> None:
    kinds, operator, given_values, rows = case
    names = tuple(f"r{n}" for n in range(len(kinds)))
    schema = KeySchema(("h",), names)
    types: dict[str, ScalarType] = {"h": "S", **dict(zip(names, kinds, strict=True))}
    equal = given_values[: len(given_values) - (2 if operator == "between" else 1)]
    bounds = given_values[len(equal) :]
    conditions = [
        RangeCondition(name, "eq", ({kind: content},)) for name, kind, content in zip(names, kinds, equal, strict=False)
    ]
    last_name, last = names[len(equal)], kinds[len(equal)]
    conditions.append(RangeCondition(last_name, operator, tuple({last: bound} for bound in bounds)))
    hashed = index_partition_hash(schema, {"h": {"S": "x"}})
    start, end = index_range_bounds(hashed, tuple(conditions))
    for number, row in enumerate(rows):
        item: dict[str, Any] = {"h": {"S": "x"}}
        item |= {name: {kind: content} for name, kind, content in zip(names, kinds, row, strict=True)}
        key = index_row_key(schema, types, item, number.to_bytes(4, "big"))
        assert key is not None
        same = all(
            order(kind, content) == order(kind, wanted)
            for kind, content, wanted in zip(kinds, row, equal, strict=False)
        )
        assert (start <= key < end) == (same and holds(operator, last, row[len(equal)], bounds))
