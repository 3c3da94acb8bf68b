"""Updates of items, and what they return."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from dynamo.errors import ApiError
from dynamo.expressions.compile import compile_expressions
from dynamo.expressions.tree import decode_update
from dynamo.expressions.update import UpdateResult, apply_update, creates_item, updated_new, updated_old
from dynamo.values import Item
from tests.unit.expression_tables import Case, cases


def apply(text: str, item: Item, values: dict[str, Any] | None = None) -> UpdateResult:
    compiled = compile_expressions(update=text, values=values)
    assert compiled.update is not None
    return apply_update(compiled.update, item, compiled.values)


@pytest.mark.parametrize("case", cases("updates"))
def test_apply_update(case: Case) -> None:
    compiled = case.compile()
    tree = decode_update(compiled.encoded_update)
    assert tree == compiled.update
    item = case.item
    before = deepcopy(item)
    if case.answer.startswith("!"):
        with pytest.raises(ApiError) as caught:
            apply_update(tree, item, compiled.values)
        assert (caught.value.type, caught.value.message) == ("ValidationException", case.answer[1:])
    else:
        assert apply_update(tree, item, compiled.values).item == case.answered_item
    assert item == before


def test_update_shares_nothing_that_a_later_change_could_reach() -> None:
    values: dict[str, Any] = {":v": {"L": [{"S": "x"}]}}
    first = apply("SET a = :v, b = :v", {}, values)
    second = apply("SET a[0] = :v", first.item, {":v": {"S": "changed"}})
    assert first.item == {"a": {"L": [{"S": "x"}]}, "b": {"L": [{"S": "x"}]}}
    assert second.item == {"a": {"L": [{"S": "changed"}]}, "b": {"L": [{"S": "x"}]}}


def nested(levels: int) -> dict[str, Any]:
    """A value of so many levels."""
    value: dict[str, Any] = {"S": "x"}
    for _ in range(levels - 1):
        value = {"M": {"a": value}}
    return value


def test_documents_do_not_get_too_deep() -> None:
    item: Item = {"a": nested(3)}
    assert apply("SET a.a.a = :v", item, {":v": nested(30)}).item == {"a": nested(32)}
    with pytest.raises(ApiError, match="Nesting Levels have exceeded supported limits"):
        apply("SET a.a.a = :v", item, {":v": nested(31)})


def test_the_deepest_operands_are_worked_out_on_a_deep_stack() -> None:
    depth = 250
    text = "SET a=" + "list_append(b," * depth + "b" + ")" * depth
    item: Item = {"b": {"L": [{"S": "x"}]}}

    def below(frames: int) -> UpdateResult:
        return apply(text, item) if frames == 0 else below(frames - 1)

    assert len(below(200).item["a"]["L"]) == depth + 1


# --- case 66: ReturnValues ---


def test_updated_values_are_nested_as_in_the_item() -> None:
    before: Item = {"a": {"M": {"b": {"S": "old"}, "c": {"S": "kept"}}}, "d": {"S": "kept"}}
    result = apply("SET a.b = :v", before, {":v": {"S": "new"}})
    assert updated_old(before, result) == {"a": {"M": {"b": {"S": "old"}}}}
    assert updated_new(result) == {"a": {"M": {"b": {"S": "new"}}}}


def test_updated_new_leaves_out_an_index_beyond_the_end() -> None:
    before: Item = {"l": {"L": [{"S": "a"}]}}
    result = apply("SET l[7] = :v", before, {":v": {"S": "b"}})
    assert updated_old(before, result) == {}
    assert updated_new(result) == {}


def test_updated_new_shows_values_that_did_not_change() -> None:  # case 64
    before: Item = {"a": {"S": "same"}}
    assert updated_new(apply("SET a = :v", before, {":v": {"S": "same"}})) == before


def test_updated_new_has_nothing_of_what_was_removed() -> None:
    before: Item = {"a": {"S": "x"}, "s": {"SS": ["x"]}}
    result = apply("REMOVE a DELETE s :s", before, {":s": {"SS": ["x"]}})
    assert updated_old(before, result) == before
    assert updated_new(result) == {}


# --- case 46: updates of an item that is not there ---


@pytest.mark.parametrize(
    ("text", "creates"),
    [
        ("SET a = :s", True),
        ("ADD a :s", True),
        ("REMOVE a SET b = :s", True),
        ("REMOVE a", False),
        ("DELETE a :s", False),
        ("REMOVE a DELETE b :s", False),
    ],
)
def test_which_updates_create_an_item(text: str, creates: bool) -> None:
    values = {":s": {"SS": ["x"]}} if ":s" in text else None
    tree = compile_expressions(update=text, values=values).update
    assert tree is not None
    assert creates_item(tree) is creates


def test_an_update_without_actions_creates_an_item() -> None:
    assert creates_item(())
