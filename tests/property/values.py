"""Strategies for attribute values, as requests write them and in canonical form."""

from base64 import b64encode
from typing import Any

from hypothesis import strategies as st

from dynamo import number
from dynamo.values import AttributeValue, Item, canonical_item, canonical_value


def _written(sign: bool, digits: int, magnitude: int, plain: bool) -> str:
    """digits * 10 ** something whose first digit stands for 10 ** magnitude."""
    text = str(digits)
    power = magnitude - (len(text) - 1)
    if plain and 0 <= -power < len(text):
        point = len(text) + power
        text = text[:point] + ("." + text[point:] if power else "")
    elif power:
        text += f"e{power}"
    return "-" + text if sign else text


_digits = st.one_of(st.integers(1, 999), st.integers(1, 10**38 - 1))
_magnitudes = st.one_of(st.integers(-6, 40), st.integers(number.MAGNITUDE_MIN, number.MAGNITUDE_MAX))

written_numbers: st.SearchStrategy[str] = st.one_of(
    st.just("0"),
    st.integers(-1000, 1000).map(str),
    st.builds(_written, st.booleans(), _digits, _magnitudes, st.booleans()),
)
"""Texts of numbers that DynamoDB can hold."""

numbers: st.SearchStrategy[str] = written_numbers.map(number.normalise)
"""Normalised texts."""

texts: st.SearchStrategy[str] = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
binaries: st.SearchStrategy[str] = st.binary(max_size=20).map(lambda data: b64encode(data).decode())
names: st.SearchStrategy[str] = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)

_scalars: st.SearchStrategy[AttributeValue] = st.one_of(
    st.builds(lambda text: {"S": text}, texts),
    st.builds(lambda text: {"N": text}, written_numbers),
    st.builds(lambda text: {"B": text}, binaries),
    st.builds(lambda flag: {"BOOL": flag}, st.booleans()),
    st.just({"NULL": True}),
    st.builds(lambda members: {"SS": members}, st.lists(texts, min_size=1, max_size=4, unique=True)),
    st.builds(
        lambda members: {"NS": members},
        st.lists(written_numbers, min_size=1, max_size=4, unique_by=number.normalise),
    ),
    st.builds(lambda members: {"BS": members}, st.lists(binaries, min_size=1, max_size=4, unique=True)),
)


def _containers(children: st.SearchStrategy[AttributeValue]) -> st.SearchStrategy[AttributeValue]:
    lists: st.SearchStrategy[dict[str, Any]] = st.builds(lambda items: {"L": items}, st.lists(children, max_size=4))
    maps: st.SearchStrategy[dict[str, Any]] = st.builds(
        lambda members: {"M": members}, st.dictionaries(names, children, max_size=4)
    )
    return lists | maps


written_values: st.SearchStrategy[AttributeValue] = st.recursive(_scalars, _containers, max_leaves=10)
written_items: st.SearchStrategy[Item] = st.dictionaries(names, written_values, max_size=5)
values: st.SearchStrategy[AttributeValue] = written_values.map(canonical_value)
items: st.SearchStrategy[Item] = written_items.map(canonical_item)
