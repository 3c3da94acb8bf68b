"""Sizes against a second, plain reading of the rules."""

from base64 import b64decode
from typing import Any

from hypothesis import given

from dynamo import item as items
from dynamo import number, values

from .values import items as canonical_items
from .values import values as canonical_values


def size(kind: str, content: Any) -> int:
    match kind:
        case "S":
            return len(content.encode())
        case "N":
            return number.size(content)
        case "B":
            return len(b64decode(content))
        case "BOOL" | "NULL":
            return 1
        case "SS" | "NS" | "BS":
            return sum(size(kind[0], member) for member in content)
        case "L":
            return 3 + sum(1 + size(*only(element)) for element in content)
        case _:
            return 3 + sum(1 + len(name.encode()) + size(*only(member)) for name, member in content.items())


def only(value: values.AttributeValue) -> tuple[str, Any]:
    ((kind, content),) = value.items()
    return kind, content


@given(canonical_values)
def test_sizes_follow_the_rules(value: values.AttributeValue) -> None:
    assert items.value_size(value) == size(*only(value))


@given(canonical_items)
def test_an_item_weighs_what_a_map_of_it_does_without_the_map(item: values.Item) -> None:
    assert items.item_size(item) == items.value_size({"M": item}) - 3 - len(item)


@given(canonical_values)
def test_wrapping_a_value_adds_a_level(value: values.AttributeValue) -> None:
    assert items.value_depth({"L": [value]}) == items.value_depth(value) + 1
