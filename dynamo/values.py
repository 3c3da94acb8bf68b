"""Attribute values in DynamoDB's tagged JSON form.

The *canonical* form of a value, made once where a request comes in, has normalised numbers and sorted sets, so that
equal values are equal dicts and dump to equal bytes. Everything behind the router works on canonical values only.
"""

from __future__ import annotations

import re
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterable
from operator import is_
from typing import Any, TypeAlias

import orjson

from dynamo import number
from dynamo.errors import ApiError, request_validation, serialization, validation

AttributeValue: TypeAlias = dict[str, Any]
"""One tagged value, such as {"S": "x"} or {"M": {"a": {"N": "1"}}}."""

Item: TypeAlias = dict[str, AttributeValue]
"""An attribute map."""

NESTING_MAX = 32
"""Levels of a value, a scalar counting as one."""

ATTRIBUTE_NAME_SIZE_MAX = 65_535
"""UTF-8 bytes of an attribute's name."""

_NAME_LENGTH_SAFE = ATTRIBUTE_NAME_SIZE_MAX // 4  # no character needs more than four bytes


def canonical_item(raw: object) -> Item:
    """The canonical form of a request's attribute map. The argument is not changed; the result may share parts of it.

    Raises a SerializationException for JSON that is no attribute map, else a ValidationException.
    """
    if type(raw) is not dict:
        raise _not_a_map(raw)
    return _map(raw, 1)


def canonical_value(raw: object) -> AttributeValue:
    """The canonical form of one tagged value; raises as `canonical_item` does."""
    return _value(raw, 1)


def equal(left: AttributeValue, right: AttributeValue) -> bool:
    """Whether two canonical values are equal as DynamoDB sees it: sets and maps without order, numbers exactly."""
    return left == right


def compare(left: AttributeValue, right: AttributeValue) -> int | None:
    """-1, 0 or 1 for two strings, numbers or binaries; None for two types or types without an order."""
    ((kind, a),) = left.items()
    ((other_kind, b),) = right.items()
    if kind != other_kind or kind not in SCALAR_KEY_TYPES:
        return None
    if kind == "N":
        return number.compare(a, b)
    if kind == "B":
        a, b = a2b_base64(a), a2b_base64(b)
    # Code points sort as their UTF-8 bytes do.
    return int(a > b) - int(a < b)


SCALAR_KEY_TYPES = frozenset(("S", "N", "B"))


def sorted_members(kind: str, members: Iterable[str]) -> list[str]:
    """The members of a set ("SS", "NS" or "BS") in canonical order."""
    return sorted(members, key=_MEMBER_ORDER[kind])


def dump(item: Item) -> bytes:
    """Canonical JSON of a canonical item: equal items give equal bytes."""
    return orjson.dumps(item, option=orjson.OPT_SORT_KEYS)


def load(data: bytes) -> Item:
    """The item that `dump` wrote."""
    item: Item = orjson.loads(data)
    return item


# --- one function per type: (content, value, depth) -> canonical value, the same object where nothing changes ---


def _string(content: Any, value: AttributeValue, _depth: int) -> AttributeValue:
    if type(content) is not str:
        raise _not_a("String", content)
    return value


def _number(content: Any, value: AttributeValue, _depth: int) -> AttributeValue:
    if type(content) is not str:
        raise _not_a("String", content)
    text = number.normalise(content)
    return value if text is content else {"N": text}


def _binary(content: Any, value: AttributeValue, _depth: int) -> AttributeValue:
    _check_base64(content)
    return value


def _boolean(content: Any, value: AttributeValue, _depth: int) -> AttributeValue:
    if type(content) is not bool:
        raise _not_a("Boolean", content)
    return value


def _null(content: Any, value: AttributeValue, _depth: int) -> AttributeValue:
    if type(content) is not bool:
        raise _not_a("Boolean", content)
    if not content:
        raise request_validation(_INVALID + "Null attribute value types must have the value of true")
    return value


def _string_set(content: Any, _value: AttributeValue, _depth: int) -> AttributeValue:
    members = _members(content)
    for member in members:
        if type(member) is not str:
            raise _not_a("String", member)
    if not members:
        raise request_validation(_INVALID + "An string set  may not be empty")
    if len(set(members)) != len(members):
        raise request_validation(f"{_INVALID}Input collection [{', '.join(members)}] contains duplicates.")
    return {"SS": sorted(members)}


def _number_set(content: Any, _value: AttributeValue, _depth: int) -> AttributeValue:
    members = _members(content)
    for member in members:
        if type(member) is not str:
            raise _not_a("String", member)
    if not members:
        raise request_validation(_INVALID + "An number set  may not be empty")
    numbers = [number.normalise(member) for member in members]
    if len(set(numbers)) != len(numbers):
        raise request_validation("Input collection contains duplicates")
    return {"NS": sorted_members("NS", numbers)}


def _binary_set(content: Any, _value: AttributeValue, _depth: int) -> AttributeValue:
    members = _members(content)
    for member in members:
        _check_base64(member)
    if not members:
        raise request_validation(_INVALID + "Binary sets should not be empty")
    if len(set(members)) != len(members):
        raise request_validation(f"{_INVALID}Input collection [{', '.join(members)}]of type BS contains duplicates.")
    return {"BS": sorted_members("BS", members)}


def _list(content: Any, value: AttributeValue, depth: int) -> AttributeValue:
    if type(content) is not list:
        raise _not_a_list(content)
    if depth >= NESTING_MAX and content:
        raise too_deep()
    elements = [_value(element, depth + 1) for element in content]
    unchanged = all(map(is_, elements, content))
    return value if unchanged else {"L": elements}


def _map_value(content: Any, value: AttributeValue, depth: int) -> AttributeValue:
    if type(content) is not dict:
        raise _not_a_map(content)
    if depth >= NESTING_MAX and content:
        raise too_deep()
    members = _map(content, depth + 1)
    return value if members is content else {"M": members}


_CANONICAL: dict[str, Callable[[Any, AttributeValue, int], AttributeValue]] = {
    "S": _string,
    "N": _number,
    "B": _binary,
    "BOOL": _boolean,
    "NULL": _null,
    "SS": _string_set,
    "NS": _number_set,
    "BS": _binary_set,
    "L": _list,
    "M": _map_value,
}

TYPES = frozenset(_CANONICAL)
"""The ten type tags."""

_MEMBER_ORDER: dict[str, Callable[[str], Any] | None] = {"SS": None, "NS": number.sort_key, "BS": a2b_base64}

_INVALID = "One or more parameter values were invalid: "


def _map(raw: dict[str, Any], depth: int) -> Item:
    changed: Item = {}
    for name, value in raw.items():
        if not name or len(name) > _NAME_LENGTH_SAFE:
            check_attribute_name(name)
        if type(value) is dict and len(value) == 1:
            (kind,) = value
            content = value[kind]
            if kind == "S" and type(content) is str:  # the most frequent case, without a call
                continue
        canonical = _value(value, depth)
        if canonical is not value:
            changed[name] = canonical
    return {**raw, **changed} if changed else raw


def _value(value: Any, depth: int) -> AttributeValue:
    if type(value) is dict and len(value) == 1:
        (kind,) = value
        content = value[kind]
        canonical = _CANONICAL.get(kind)
        if canonical is not None and content is not None:
            return canonical(content, value, depth)
    return _unusual_value(value, depth)


def _unusual_value(value: Any, depth: int) -> AttributeValue:
    """A value with no or several members. Unknown and null members do not count."""
    if type(value) is not dict:
        raise _not_a_structure(value)
    known = {kind: content for kind, content in value.items() if kind in _CANONICAL and content is not None}
    if not known:
        raise validation(
            "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
        )
    # What is wrong inside a member is reported before there being several.
    canonical = [_CANONICAL[kind](content, {kind: content}, depth) for kind, content in known.items()]
    if len(canonical) > 1:
        raise validation(
            "Supplied AttributeValue has more than one datatypes set, "
            "must contain exactly one of the supported datatypes",
        )
    return canonical[0]


def too_deep() -> ApiError:
    """A value of more than `NESTING_MAX` levels."""
    return validation(
        "Nesting Levels have exceeded supported limits: "
        "Attributes in the item have nested levels beyond supported limit",
    )


def check_attribute_name(name: str) -> None:
    """Raises ApiError for the name of an attribute that is empty or too long."""
    if not name:
        raise validation(_INVALID + "Attribute name must not be empty")
    if len(name.encode()) > ATTRIBUTE_NAME_SIZE_MAX:
        raise request_validation(
            f"Attribute name is too large, must be less than {ATTRIBUTE_NAME_SIZE_MAX + 1} bytes",
        )


def _members(content: Any) -> list[Any]:
    if type(content) is not list:
        raise _not_a_list(content)
    return content


def _check_base64(content: Any) -> None:
    """The text must be exactly what encoding its bytes gives: padded, without blanks, with no stray bits at its end."""
    if type(content) is not str:
        raise _not_a("ByteBuffer", content)
    try:
        if b2a_base64(a2b_base64(content, strict_mode=True), newline=False) == content.encode():
            return
    except ValueError:  # binascii.Error among them
        pass
    raise serialization(_base64_fault(content))


def _base64_fault(text: str) -> str:
    if len(text) % 4:
        return f"Base64 encoded length is expected a multiple of 4 bytes but found: {len(text)}"
    stray = re.search(r"[^A-Za-z0-9+/=]|=(?=[^=])", text)
    if stray:
        return f"Invalid Base64 character: '{stray.group()}'"
    return "Invalid last non-pad Base64 character dectected"  # sic


# --- JSON of the wrong shape ---


def _not_a(target: str, content: object) -> ApiError:
    """A scalar of the wrong JSON type, in the words of Amazon's JSON parser."""
    if type(content) is list:
        return serialization(f"Unrecognized collection type class java.lang.{target}")
    if type(content) is dict:
        return serialization("Start of structure or map found where not expected")
    if target == "Boolean" and type(content) is str:
        return serialization("Unexpected token received from parser")
    return serialization(f"{_token(content)} cannot be converted to {target}")


def _token(content: object) -> str:
    if content is True:
        return "TRUE_VALUE"
    if content is False:
        return "FALSE_VALUE"
    if content is None:
        return "NULL_VALUE"
    return {int: "NUMBER_VALUE", float: "DECIMAL_VALUE"}.get(type(content), "STRING_VALUE")


def _not_a_list(content: object) -> ApiError:
    if type(content) is dict:
        return serialization("Start of structure or map found where not expected")
    return serialization("Unexpected field type")


def _not_a_map(content: object) -> ApiError:
    if type(content) is list:
        return serialization(
            "Unrecognized collection type java.util.Map<java.lang.String, "
            "com.amazonaws.dynamodb.v20120810.AttributeValue>"
        )
    return serialization("Unexpected field type")


def _not_a_structure(content: object) -> ApiError:
    if type(content) is list:
        return serialization("Unrecognized collection type class com.amazonaws.dynamodb.v20120810.AttributeValue")
    if content is None:
        return validation("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
    return serialization("Unexpected value type in payload")
