"""Conditions on items."""

from __future__ import annotations

import pytest

from dynamo.expressions.condition import holds
from dynamo.expressions.tree import decode_condition
from tests.unit.expression_tables import Case, cases


@pytest.mark.parametrize("case", cases("conditions"))
def test_holds(case: Case) -> None:
    compiled = case.compile()
    tree = decode_condition(compiled.encoded_condition)
    assert tree == compiled.condition
    assert holds(tree, case.item, compiled.values) is (case.answer == "true")
