"""Applies an update to an item.

Every operand is worked out on the item as it was before, and everything that can fail does so before anything changes:
an update happens as a whole or not at all. The item given is never changed; what is not touched is shared with the
result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dynamo import number
from dynamo.errors import ApiError, validation
from dynamo.expressions.operands import incorrect_type, value_at, value_of
from dynamo.expressions.projection import project
from dynamo.expressions.tree import Action, Add, Path, Remove, Set, Update
from dynamo.item import value_depth
from dynamo.values import NESTING_MAX, AttributeValue, Item, sorted_members, too_deep

_SETS = ("SS", "NS", "BS")


class UpdateResult(msgspec.Struct, frozen=True):
    """The item after an update, and the paths that it named."""

    item: Item
    touched: tuple[Path, ...]


def apply_update(tree: Update, item: Item, values: Sequence[AttributeValue]) -> UpdateResult:
    """The item after the update; `item` is empty where there was none, and the caller adds the key attributes then.

    Raises a ValidationException with DynamoDB's text if the item has not what the update needs.
    """
    # First what has a wrong type anywhere, then paths that lead nowhere, then attributes that are missing.
    results = [_result(action, item, values) for action in tree]
    for action in tree:
        _check_place(action.path, item)
    for action, result in zip(tree, results, strict=True):
        if result is None and isinstance(action, Set):
            raise validation("The provided expression refers to an attribute that does not exist in the item")
    draft = _Draft(item)
    for action, result in zip(tree, results, strict=True):
        if result is not None:
            _check_depth(action.path, result)
            draft.put(action.path.steps, result)
        elif isinstance(action, Remove) or value_at(item, action.path.steps) is not None:
            draft.remove(action.path.steps)
    return UpdateResult(draft.finish(), tuple([action.path for action in tree]))


def updated_old(before: Item, result: UpdateResult) -> Item:
    """ReturnValues UPDATED_OLD: what stood at the touched paths."""
    return project(result.touched, before)


def updated_new(result: UpdateResult) -> Item:
    """ReturnValues UPDATED_NEW: what stands at the touched paths now, changed or not."""
    return project(result.touched, result.item)


def creates_item(tree: Update) -> bool:
    """Whether the update makes an item where there is none: not if all that it does is to take away."""
    return not tree or any(isinstance(action, (Set, Add)) for action in tree)


# --- the new value at each path, from the item as it was; None: nothing is to stand there ---


def _result(action: Action, item: Item, values: Sequence[AttributeValue]) -> AttributeValue | None:
    if isinstance(action, Set):
        return value_of(action.operand, item, values)
    if isinstance(action, Remove):
        return None
    current, value = value_at(item, action.path.steps), values[action.value.slot]
    if isinstance(action, Add):
        return _added(current, value, action.legacy)
    return None if current is None else _without(current, value, action.legacy)


def _added(current: AttributeValue | None, addend: AttributeValue, legacy: bool) -> AttributeValue:
    if current is None:
        return addend
    ((kind, content),) = addend.items()
    if kind not in current:
        raise _mismatch(legacy)
    if kind == "N":
        return {"N": number.add(current["N"], content)}
    if kind == "L":
        return {"L": current["L"] + content}
    return {kind: sorted_members(kind, {*current[kind], *content})}


def _without(current: AttributeValue, members: AttributeValue, legacy: bool) -> AttributeValue | None:
    ((kind, content),) = members.items()
    if kind not in current:
        raise _mismatch(legacy)
    gone = set(content)
    left = [member for member in current[kind] if member not in gone]
    return {kind: left} if left else None


def _mismatch(legacy: bool) -> ApiError:
    return validation("Type mismatch for attribute to update") if legacy else incorrect_type()


def _check_place(path: Path, item: Item) -> None:
    """A nested path must lead into a map or list that is there."""
    if len(path.steps) == 1:
        return
    parent = value_at(item, path.steps[:-1])
    kind = "M" if isinstance(path.steps[-1], str) else "L"
    if parent is None or kind not in parent:
        raise validation("The document path provided in the update expression is invalid for update")


def _check_depth(path: Path, value: AttributeValue) -> None:
    """What is put into a document may not make it too deep."""
    above = len(path.steps) - 1
    if above and above + value_depth(value) > NESTING_MAX:
        raise too_deep()


class _Draft:
    """A copy of an item that is made only as far as it changes.

    Elements are taken out of lists, and added to them, in the end: until then indexes mean what they meant before.
    """

    def __init__(self, item: Item) -> None:
        self._item = dict(item)
        self._copies: dict[tuple[str | int, ...], Any] = {(): self._item}
        self._removed: dict[tuple[str | int, ...], list[int]] = {}
        self._appended: dict[tuple[str | int, ...], list[tuple[int, AttributeValue]]] = {}

    def put(self, steps: tuple[str | int, ...], value: AttributeValue) -> None:
        container, last = self._container(steps[:-1]), steps[-1]
        if isinstance(last, int) and last >= len(container):
            self._appended.setdefault(steps[:-1], []).append((last, value))
        else:
            container[last] = value

    def remove(self, steps: tuple[str | int, ...]) -> None:
        container, last = self._container(steps[:-1]), steps[-1]
        if isinstance(last, str):
            container.pop(last, None)
        elif last < len(container):
            self._removed.setdefault(steps[:-1], []).append(last)

    def finish(self) -> Item:
        """The new item. Lists close their gaps and then grow, by index, whatever the indexes were."""
        for steps, indexes in self._removed.items():
            for index in sorted(indexes, reverse=True):
                del self._copies[steps][index]
        for steps, elements in self._appended.items():
            self._copies[steps] += [value for _, value in sorted(elements, key=lambda element: element[0])]
        return self._item

    def _container(self, steps: tuple[str | int, ...]) -> Any:
        """The copied map or list at a path, copying on the way down what is not copied yet."""
        if not steps:
            return self._item
        copied = len(steps)
        while steps[:copied] not in self._copies:
            copied -= 1
        container = self._copies[steps[:copied]]
        for depth in range(copied, len(steps)):
            ((kind, content),) = container[steps[depth]].items()
            content = content.copy()
            container[steps[depth]] = {kind: content}
            container = self._copies[steps[: depth + 1]] = content
        return container
