"""Conditions on items."""

from __future__ import annotations

import pytest

from dynamo.expressions.compile import compile_expressions
from dynamo.expressions.condition import holds
from dynamo.expressions.tree import decode_condition
from tests.unit.expression_tables import Case, cases


def test_the_deepest_conditions_are_judged_on_a_deep_stack() -> None:
    depth = 299
    compiled = compile_expressions(condition="not(" * depth + "a=:x" + ")" * depth, values={":x": {"S": "x"}})

    def below(frames: int) -> bool:
        if frames:
            return below(frames - 1)
        return holds(decode_condition(compiled.encoded_condition), {"a": {"S": "x"}}, compiled.values)

    assert below(200) is False


@pytest.mark.parametrize("case", cases("conditions"))
def test_holds(case: Case) -> None:
    compiled = case.compile()
    tree = decode_condition(compiled.encoded_condition)
    assert tree == compiled.condition
    assert holds(tree, case.item, compiled.values) is (case.answer == "true")
