"""Expressions: parsing takes any text, trees survive printing, and evaluation takes any item."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynamo.errors import ApiError
from dynamo.expressions.compile import Compiled, compile_expressions
from dynamo.expressions.condition import holds
from dynamo.expressions.operands import value_at
from dynamo.expressions.parser import MalformedError, parse_condition, parse_projection, parse_update
from dynamo.expressions.paths import check_apart
from dynamo.expressions.projection import project
from dynamo.expressions.raw import RawCondition, RawLogical, RawNot, RawUpdate
from dynamo.expressions.tree import Path, decode_condition, decode_update
from dynamo.expressions.update import apply_update, updated_new, updated_old
from dynamo.values import AttributeValue, Item, canonical_item

from .expressions import NAMES, arbitrary_texts, condition_text, raw_conditions, raw_updates, update_text
from .values import numbers, values

# Time is no property of these: a busy machine is slow at making trees.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

# Items whose attributes the generated paths often find.
_leaves = values | st.builds(lambda text: {"N": text}, numbers)
_documents: st.SearchStrategy[AttributeValue] = st.recursive(
    _leaves,
    lambda inner: (
        st.builds(lambda members: {"M": members}, st.dictionaries(st.sampled_from("abcd"), inner, max_size=3))
        | st.builds(lambda elements: {"L": elements}, st.lists(inner, max_size=3))
    ),
    max_leaves=8,
)
_items: st.SearchStrategy[Item] = st.dictionaries(st.sampled_from("abcdef"), _documents, max_size=6).map(canonical_item)
_request_values: st.SearchStrategy[dict[str, AttributeValue]] = st.fixed_dictionaries(
    {
        ":any": _documents,
        ":list": st.builds(lambda elements: {"L": elements}, st.lists(_leaves, max_size=2)),
        ":number": st.builds(lambda number: {"N": str(number)}, st.integers(-5, 5)),
        ":set": st.builds(lambda members: {"SS": members}, st.lists(st.sampled_from("xyz"), min_size=1, unique=True)),
    }
)


@contextmanager
def refusals_are_validations() -> Iterator[None]:
    """Takes a ValidationException, and lets through whatever else is raised."""
    try:
        yield
    except ApiError as error:
        if error.type != "ValidationException":
            raise


@unhurried
@given(arbitrary_texts)
@pytest.mark.parametrize("parse", [parse_condition, parse_update, parse_projection])
def test_any_text_parses_or_is_refused(parse: Callable[[str], Any], text: str) -> None:
    with suppress(MalformedError):
        parse(text)


@unhurried
@given(arbitrary_texts, st.sampled_from(["condition", "filter", "update", "projection", "key_condition"]))
def test_any_text_compiles_or_is_refused(text: str, kind: str) -> None:
    request: dict[str, Any] = {kind: text, "names": {"#n": "name"}, "values": {":number": {"N": "1"}}}
    with refusals_are_validations():
        compile_expressions(**request)


@unhurried
@given(raw_conditions)
def test_printed_conditions_read_the_same(tree: RawCondition) -> None:
    assert parse_condition(condition_text(tree)) == tree


@unhurried
@given(raw_updates())
def test_printed_updates_read_the_same(update: RawUpdate) -> None:
    assert parse_update(update_text(update)) == update


def compiled(kind: str, text: str, request_values: dict[str, AttributeValue]) -> Compiled | None:
    """The text compiled with all of its placeholders, or None if it is refused."""
    names = {name: name[1:].replace("n", "c").replace("o", "d") for name in NAMES if name in text}
    used = {name: value for name, value in request_values.items() if name in text}
    texts: dict[str, Any] = {kind: text}
    try:
        return compile_expressions(**texts, names=names or None, values=used or None)
    except ApiError:
        return None


@unhurried
@given(raw_conditions, _items, _request_values)
def test_conditions_hold_or_not(tree: RawCondition, item: Item, request_values: dict[str, AttributeValue]) -> None:
    expressions = compiled("condition", condition_text(tree), request_values)
    if expressions is None or expressions.condition is None:
        return
    assert decode_condition(expressions.encoded_condition) == expressions.condition
    before = deepcopy(item)
    answer = holds(expressions.condition, item, expressions.values)
    assert item == before
    opposite = compiled("condition", condition_text(RawNot(tree)), request_values)
    assert opposite is not None
    assert opposite.condition is not None
    assert holds(opposite.condition, item, opposite.values) is not answer


@unhurried
@given(raw_conditions, raw_conditions, _items, _request_values)
def test_and_is_both_and_or_is_either(
    left: RawCondition, right: RawCondition, item: Item, request_values: dict[str, AttributeValue]
) -> None:
    trees = (left, right, RawLogical("AND", left, right), RawLogical("OR", left, right))
    answers = []
    for tree in trees:
        expressions = compiled("filter", condition_text(tree), request_values)
        if expressions is None or expressions.filter is None:
            return
        answers.append(holds(expressions.filter, item, expressions.values))
    first, second, both, either = answers
    assert both is (first and second)
    assert either is (first or second)


@unhurried
@given(raw_updates(), _items, _request_values)
def test_updates_apply_or_are_refused(update: RawUpdate, item: Item, request_values: dict[str, AttributeValue]) -> None:
    expressions = compiled("update", update_text(update), request_values)
    if expressions is None or expressions.update is None:
        return
    assert decode_update(expressions.encoded_update) == expressions.update
    before = deepcopy(item)
    result = None
    with refusals_are_validations():
        result = apply_update(expressions.update, item, expressions.values)
    assert item == before
    if result is None:
        return
    assert canonical_item(result.item) == result.item
    heads = {path.steps[0] for path in result.touched}
    assert {name: value for name, value in item.items() if name not in heads} == {
        name: value for name, value in result.item.items() if name not in heads
    }
    assert set(updated_old(item, result)) <= heads
    assert set(updated_new(result)) <= heads


_steps = st.builds(
    lambda head, rest: (head, *rest),
    st.sampled_from("abcd"),
    st.lists(st.sampled_from(["a", "b", 0, 1, 2]), max_size=3),
)


@unhurried
@given(st.lists(_steps, max_size=6))
def test_clashes_of_paths_are_found_as_by_comparing_all_pairs(paths: list[tuple[str | int, ...]]) -> None:
    def clash(one: tuple[str | int, ...], other: tuple[str | int, ...]) -> bool:
        for left, right in zip(one, other, strict=False):
            if left != right:
                return isinstance(left, int) is not isinstance(right, int)
        return True

    expected = any(clash(one, other) for number, one in enumerate(paths) for other in paths[:number])
    try:
        check_apart(paths)
        found = False
    except MalformedError:
        found = True
    assert found is expected


@unhurried
@given(_steps, _items)
def test_projection_of_one_path_keeps_its_value(steps: tuple[str | int, ...], item: Item) -> None:
    part = project((Path(steps),), item)
    value = value_at(item, steps)
    # Lists close up: what is left of each has one element.
    closed = tuple([0 if isinstance(step, int) else step for step in steps])
    assert value_at(part, closed) == value
    assert bool(part) is (value is not None)
