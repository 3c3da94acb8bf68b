"""Projections of items."""

from __future__ import annotations

from copy import deepcopy

import pytest

from dynamo.expressions.projection import project
from dynamo.expressions.tree import decode_projection
from tests.unit.expression_tables import Case, cases


@pytest.mark.parametrize("case", cases("projections"))
def test_project(case: Case) -> None:
    compiled = case.compile()
    tree = decode_projection(compiled.encoded_projection)
    assert tree == compiled.projection
    item = case.item
    before = deepcopy(item)
    assert project(tree, item) == case.answered_item
    assert item == before
