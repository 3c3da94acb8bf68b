"""What an operand of a resolved tree is worth for one item."""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Sequence
from typing import Any

from dynamo import number, values
from dynamo.errors import ApiError, validation
from dynamo.expressions.tree import Arithmetic, IfNotExists, ListAppend, Operand, Path, Size, Value
from dynamo.values import AttributeValue, Item


def value_at(item: Item, steps: Sequence[str | int]) -> AttributeValue | None:
    """The value at a document path, or None."""
    value: Any = item.get(steps[0])  # type: ignore[arg-type]  # the first step is a name
    for step in steps[1:] if len(steps) > 1 else ():
        if value is None:
            return None
        if isinstance(step, str):
            members = value.get("M")
            value = None if members is None else members.get(step)
        else:
            elements = value.get("L")
            value = elements[step] if elements is not None and step < len(elements) else None
    found: AttributeValue | None = value
    return found


def value_of(operand: Operand, item: Item, slots: Sequence[AttributeValue]) -> AttributeValue | None:
    """The operand's value, or None where it refers to an attribute that the item does not have.

    Raises a ValidationException for arithmetic on anything but numbers or out of range, and for `list_append` of
    anything but lists. Not for conditions, whose operands have no such parts.
    """
    kind = type(operand)
    if kind is Path:
        return value_at(item, operand.steps)  # type: ignore[union-attr]
    if kind is Value:
        return slots[operand.slot]  # type: ignore[union-attr]
    return _computed(operand, item, slots)


def _computed(operand: Operand, item: Item, slots: Sequence[AttributeValue]) -> AttributeValue | None:
    match operand:
        case IfNotExists(path, otherwise):
            value = value_at(item, path.steps)
            return value_of(otherwise, item, slots) if value is None else value
        case Size(argument):
            return _size(value_of(argument, item, slots))
        case Arithmetic(operator, left, right):
            return _sum(operator, value_of(left, item, slots), value_of(right, item, slots))
        case ListAppend(first, second):
            return _concatenation(value_of(first, item, slots), value_of(second, item, slots))
    raise AssertionError(operand)


def incorrect_type() -> ApiError:
    """An update meets a value of the wrong type in the item."""
    return validation("An operand in the update expression has an incorrect data type")


def _size(value: AttributeValue | None) -> AttributeValue | None:
    if value is None:
        return None
    ((kind, content),) = value.items()
    if kind == "S":
        # UTF-16 code units, as in Java; see ExtendDB/extenddb#60, verified against DynamoDB.
        return {"N": str(len(content.encode("utf-16-le", "surrogatepass")) // 2)}
    if kind == "B":
        return {"N": str(len(content) * 3 // 4 - content.count("=", -2))}
    if kind in ("L", "M", "SS", "NS", "BS"):
        return {"N": str(len(content))}
    return None


def _sum(operator: str, left: AttributeValue | None, right: AttributeValue | None) -> AttributeValue | None:
    for operand in (left, right):
        if operand is not None and "N" not in operand:
            raise incorrect_type()
    if left is None or right is None:
        return None
    return {"N": (number.add if operator == "+" else number.subtract)(left["N"], right["N"])}


def _concatenation(first: AttributeValue | None, second: AttributeValue | None) -> AttributeValue | None:
    for operand in (first, second):
        if operand is not None and "L" not in operand:
            raise incorrect_type()
    if first is None or second is None:
        return None
    return {"L": first["L"] + second["L"]}


def contains(container: AttributeValue, member: AttributeValue) -> bool:
    """Whether a string or binary has the other as a part, or a set or list has it as an element."""
    ((kind, content),) = container.items()
    ((member_kind, member_content),) = member.items()
    if kind == "L":
        return any(values.equal(element, member) for element in content)
    if kind in ("SS", "NS", "BS"):
        return bool(member_kind == kind[0]) and member_content in content
    if kind != member_kind or kind not in ("S", "B"):
        return False
    return _decoded(kind, member_content) in _decoded(kind, content)


def begins_with(value: AttributeValue, prefix: AttributeValue) -> bool:
    """Whether a string or binary begins with the other."""
    ((kind, content),) = value.items()
    ((prefix_kind, prefix_content),) = prefix.items()
    if kind != prefix_kind or kind not in ("S", "B"):
        return False
    return bool(_decoded(kind, content).startswith(_decoded(kind, prefix_content)))


def _decoded(kind: str, content: str) -> Any:
    return a2b_base64(content) if kind == "B" else content
