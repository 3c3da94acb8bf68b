"""Sizes, checked against the rules of the developer guide by hand."""

from typing import Any

import pytest

from dynamo import item as items


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ({"S": ""}, 0),
        ({"S": "abc"}, 3),
        ({"S": "é\U0001f600"}, 6),
        ({"N": "42"}, 2),
        ({"B": ""}, 0),
        ({"B": "YQ=="}, 1),
        ({"B": "YWI="}, 2),
        ({"B": "YWJj"}, 3),
        ({"BOOL": False}, 1),
        ({"NULL": True}, 1),
        ({"SS": ["a", "bc"]}, 3),
        ({"NS": ["1", "-42"]}, 2 + 3),
        ({"BS": ["YQ==", "YWI="]}, 3),
        ({"L": []}, 3),
        ({"L": [{"S": "ab"}, {"BOOL": True}]}, 3 + 2 * 1 + 2 + 1),
        ({"M": {}}, 3),
        ({"M": {"key": {"S": "ab"}}}, 3 + 1 + 3 + 2),
    ],
)
def test_sizes_of_values(value: dict[str, Any], size: int) -> None:
    assert items.value_size(value) == size
    assert items.item_size({"é": value}) == 2 + size


def test_the_size_of_an_item_is_that_of_its_names_and_values() -> None:
    assert items.item_size({}) == 0
    assert items.item_size({"pk": {"S": "user"}, "age": {"N": "42"}}) == 2 + 4 + 3 + 2


@pytest.mark.parametrize(
    ("value", "depth"),
    [
        ({"S": "x"}, 1),
        ({"SS": ["x"]}, 1),
        ({"L": []}, 1),
        ({"L": [{"S": "x"}]}, 2),
        ({"M": {"a": {"S": "x"}, "b": {"L": [{"M": {}}]}}}, 3),
    ],
)
def test_depth_counts_levels(value: dict[str, Any], depth: int) -> None:
    assert items.value_depth(value) == depth


def test_updates_are_weighed_without_keys_but_with_their_actions() -> None:
    # A large key outweighs the surcharge of actions, a small one does not.
    assert items.size_after_update(1000, 500, writes=1, clears=0) == 1000
    assert items.size_after_update(1000, 5, writes=2, clears=3) == 1000 - 5 + 3 + 2 * 19 + 3 * 2
