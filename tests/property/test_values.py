"""Canonical form: one form per value, and one sequence of bytes per item."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dynamo import values
from dynamo.errors import ApiError

from .values import items, written_items, written_values
from .values import values as canonical_values


def rewritten(value: Any, data: st.DataObject) -> Any:
    """The same attribute value, written in another way."""
    ((kind, content),) = value.items()
    if kind == "N":
        return {"N": respelt(content)}
    if kind == "NS":
        return {"NS": data.draw(st.permutations([respelt(text) for text in content]))}
    if kind in ("SS", "BS"):
        return {kind: data.draw(st.permutations(content))}
    if kind == "L":
        return {"L": [rewritten(element, data) for element in content]}
    if kind == "M":
        return {"M": {name: rewritten(content[name], data) for name in data.draw(st.permutations(list(content)))}}
    return value


def respelt(text: str) -> str:
    sign = "-" if text.startswith("-") else "+"
    return sign + "00" + text.lstrip("-") + ("0" if "." in text else ".0") + "e0"


@given(written_items)
def test_canonical_form_is_stable(raw: values.Item) -> None:
    once = values.canonical_item(raw)
    assert values.canonical_item(once) == once
    assert values.dump(values.canonical_item(once)) == values.dump(once)


@given(canonical_values, st.data())
def test_all_ways_to_write_a_value_have_one_canonical_form(value: values.AttributeValue, data: st.DataObject) -> None:
    other = values.canonical_value(rewritten(value, data))
    assert values.equal(other, value)
    assert values.dump({"a": other}) == values.dump({"a": value})


@given(written_values)
def test_the_argument_is_left_alone(raw: values.AttributeValue) -> None:
    before = repr(raw)
    values.canonical_value(raw)
    assert repr(raw) == before


@given(items)
def test_items_survive_being_stored(item: values.Item) -> None:
    assert values.load(values.dump(item)) == item


@given(items, items)
def test_equal_items_are_equal_bytes_and_no_others(left: values.Item, right: values.Item) -> None:
    assert (values.dump(left) == values.dump(right)) == (left == right)


@given(canonical_values, canonical_values)
def test_comparison_is_antisymmetric_and_agrees_with_equality(
    left: values.AttributeValue, right: values.AttributeValue
) -> None:
    order, reverse = values.compare(left, right), values.compare(right, left)
    if order is None:
        assert reverse is None
    else:
        assert reverse == -order
        assert (order == 0) == values.equal(left, right)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda children: (
        st.lists(children, max_size=3)
        | st.dictionaries(st.sampled_from([*values.TYPES, "x", ""]), children, max_size=3)
    ),
    max_leaves=12,
)


@given(_json)
def test_any_json_is_accepted_or_refused_with_an_error_of_the_api(raw: Any) -> None:
    try:
        item = values.canonical_item(raw)
    except ApiError as error:
        accepted = error.type in ("ValidationException", "SerializationException")
    else:
        accepted = values.canonical_item(item) == item
    assert accepted
