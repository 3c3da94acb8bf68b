"""How much an item weighs, as DynamoDB counts it, and how much it may.

Sources: the developer guide's capacity unit calculations, and dynoxide's byte-exact measurements of 2026. All functions
take canonical values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynamo import number
from dynamo.errors import ApiError, validation
from dynamo.values import AttributeValue, Item

ITEM_SIZE_MAX = 409_600
"""Bytes: 400 KiB of names and values."""

KEY_NAME_SIZE_MAX = 255
"""UTF-8 bytes of the names of key, index key, explicitly projected and time-to-live attributes."""

_CONTAINER_SIZE = 3
_ELEMENT_SIZE = 1
_WRITE_SIZE = 19  # what an update's ceiling counts for an action that writes a value
_CLEAR_SIZE = 2  # and for one that takes away


def item_size(item: Item) -> int:
    """Bytes of all names and values."""
    size = 0
    for name, value in item.items():
        size += len(name) if name.isascii() else len(name.encode())
        text = value.get("S")
        if text is not None:  # the most frequent type, without a call
            size += len(text) if text.isascii() else len(text.encode())
        else:
            size += value_size(value)
    return size


def value_size(value: AttributeValue) -> int:
    """Bytes of one value, without its name."""
    ((kind, content),) = value.items()
    return _SIZES[kind](content)


def value_depth(value: AttributeValue) -> int:
    """Levels of a value: 1 for scalars, sets, and empty lists and maps."""
    ((kind, content),) = value.items()
    if kind == "M":
        content = content.values()
    elif kind != "L":
        return 1
    return 1 + max(map(value_depth, content), default=0)


def size_after_update(item: int, key: int, *, writes: int, clears: int) -> int:
    """What UpdateItem compares with `ITEM_SIZE_MAX`: sizes of the new item and of its key attributes (with names), and
    how many of the update's actions write a value and how many take one away."""
    return max(item, item - key + _CONTAINER_SIZE + _WRITE_SIZE * writes + _CLEAR_SIZE * clears)


def item_too_large() -> ApiError:
    """A put of more than `ITEM_SIZE_MAX`."""
    return validation("Item size has exceeded the maximum allowed size")


def update_too_large() -> ApiError:
    """An update whose item grows beyond `ITEM_SIZE_MAX`."""
    return validation("Item size to update has exceeded the maximum allowed size")


def text_size(text: str) -> int:
    """UTF-8 bytes of a string."""
    return len(text) if text.isascii() else len(text.encode())


def binary_size(text: str) -> int:
    """Bytes behind canonical base64."""
    return len(text) * 3 // 4 - text.count("=", -2)


def _one(_content: Any) -> int:
    return 1


def _text_set(content: list[str]) -> int:
    return sum(map(text_size, content))


def _number_set(content: list[str]) -> int:
    return sum(map(number.size, content))


def _binary_set(content: list[str]) -> int:
    return sum(map(binary_size, content))


def _list(content: list[AttributeValue]) -> int:
    return _CONTAINER_SIZE + _ELEMENT_SIZE * len(content) + sum(map(value_size, content))


def _map(content: Item) -> int:
    return _CONTAINER_SIZE + _ELEMENT_SIZE * len(content) + item_size(content)


_SIZES: dict[str, Callable[[Any], int]] = {
    "S": text_size,
    "N": number.size,
    "B": binary_size,
    "BOOL": _one,
    "NULL": _one,
    "SS": _text_set,
    "NS": _number_set,
    "BS": _binary_set,
    "L": _list,
    "M": _map,
}
