"""Shallow wrong requests, made from the model: for each operation, a request that is right but for one member.

Every member is given values of wrong types, null, too short and too long ones, and is left out; every structure gets a
member that it does not have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from router.model import model

Json: TypeAlias = Any

DEPTH_MAX = 6
"""How far members of members are entered; an attribute value counts one level."""
TEXT_LENGTH_MAX = 70_000
LIST_LENGTH_MAX = 300

WRONG_TYPES: dict[str, list[Json]] = {
    "string": [1, 1.5, True, [], {}, ["x"], {"S": "x"}],
    "blob": [1, 1.5, True, [], {}],
    "integer": ["1", "x", True, [], {}, 2**31, -(2**31) - 1, 1e30],
    "long": ["1", "x", True, [], {}, 2**63, 1e30],
    "double": ["1", True, [], {}],
    "timestamp": ["1", True, [], {}],
    "boolean": ["true", 1, 0, [], {}],
    "list": ["x", 1, True, {}, {"0": "x"}],
    "map": ["x", 1, True, []],
    "structure": ["x", 1, True, [], [{}]],
}
WRONG_VALUES: list[Json] = [
    "x",
    1,
    True,
    [],
    {},
    {"X": "y"},
    {"S": 1},
    {"S": None},
    {"N": 1},
    {"N": "x"},
    {"N": ""},
    {"N": None},
    {"B": 1},
    {"B": "YWJ"},
    {"BOOL": "x"},
    {"NULL": False},
    {"NULL": 1},
    {"SS": "x"},
    {"SS": []},
    {"SS": ["x", "x"]},
    {"SS": [1]},
    {"SS": [None]},
    {"NS": ["1", "x"]},
    {"NS": [1]},
    {"BS": ["YWJ"]},
    {"L": {}},
    {"L": [None]},
    {"L": [{"S": 1}]},
    {"M": []},
    {"M": {"m": None}},
    {"M": {"m": {"N": "x"}}},
    {"M": {"": {"S": "x"}}},
    {"S": "x", "N": "1"},
    {"s": "x"},
]
"""What is no attribute value."""


@dataclass(frozen=True)
class WrongRequest:
    """A request for an operation. `must_fail`: no server may accept it; else it may, but not break over it."""

    service: str
    operation: str
    path: str
    fault: str
    body: Json
    must_fail: bool = True

    @property
    def target(self) -> str:
        """The X-Amz-Target."""
        return f"{self.service}.{self.operation}"


class Generator:
    """Makes requests for one service. `examples` are right values by shape or by member; shapes without are made up."""

    def __init__(self, service: str, examples: dict[str, Json]) -> None:
        self._service = service
        self._model = model()["services"][service]
        self._examples = examples

    @property
    def operations(self) -> list[str]:
        """All operations of the service."""
        return sorted(self._model["operations"])

    def wrong(self, operation: str) -> Iterator[WrongRequest]:
        """All wrong requests for an operation."""
        name = self._model["operations"][operation]
        if name is None:
            return
        for path, fault, body, must_fail in self._wrong_structures(name, operation, 0):
            yield WrongRequest(self._service, operation, path, fault, body, must_fail)

    # --- right values ---

    def example(self, name: str, member: str = "") -> Json:
        """A right value of a shape, with what it requires and no more."""
        for known in (member, name):
            if known in self._examples:
                return self._examples[known]
        shape = self._model["shapes"][name]
        match shape["type"]:
            case "string":
                return shape["enum"][0] if "enum" in shape else "x" * max(1, shape.get("min", 1))
            case "blob":
                return "YWJj"
            case "integer" | "long":
                return shape.get("min", 1)
            case "double" | "timestamp":
                return 1.5
            case "boolean":
                return True
            case "list":
                return [self.example(shape["member"])] * max(1, shape.get("min", 1))
            case "map":
                return {self.example(shape["key"]): self.example(shape["value"])}
        return {required: self.example(shape["members"][required], required) for required in shape.get("required", ())}

    # --- wrong values ---

    def _wrong_structures(self, name: str, path: str, depth: int) -> Iterator[tuple[str, str, Json, bool]]:
        shape = self._model["shapes"][name]
        right = self.example(name)
        right = right if isinstance(right, dict) else {}
        required = shape.get("required", ())
        for member, inner in shape["members"].items():
            for where, fault, value, must_fail in self._wrong(inner, member, f"{path}.{member}", depth + 1):
                yield where, fault, {**right, member: value}, must_fail
            yield f"{path}.{member}", "null", {**right, member: None}, member in required
        for member in required:
            left = {other: value for other, value in right.items() if other != member}
            yield f"{path}.{member}", "missing", left, True
        yield path, "extra", {**right, "NoSuchMember": {"a": [1, None]}}, False

    def _wrong(self, name: str, member: str, path: str, depth: int) -> Iterator[tuple[str, str, Json, bool]]:
        shape = self._model["shapes"][name]
        kind = shape["type"]
        if name == "AttributeValue":
            yield from ((path, "value", value, True) for value in WRONG_VALUES)
            return
        yield from ((path, "type", value, True) for value in WRONG_TYPES[kind])
        yield from ((path, "bounds", value, True) for value in self._beyond_bounds(name, shape, member))
        if depth >= DEPTH_MAX:
            return
        if kind == "structure":
            yield from self._wrong_structures(name, path, depth)
        elif kind == "list":
            yield path, "null in list", [None], True
            for where, fault, value, must_fail in self._wrong(shape["member"], "", f"{path}[]", depth + 1):
                yield where, fault, [value], must_fail
        elif kind == "map":
            key = next(iter(self.example(name, member)))
            yield path, "null in map", {key: None}, True
            for where, fault, value, must_fail in self._wrong(shape["value"], "", f"{path}{{}}", depth + 1):
                yield where, fault, {key: value}, must_fail

    def _beyond_bounds(self, name: str, shape: dict[str, Any], member: str) -> Iterator[Json]:
        low, high = shape.get("min"), shape.get("max")
        match shape["type"]:
            case "string":
                if "enum" in shape:
                    yield from ("NO_SUCH_VALUE", "", shape["enum"][0].lower())
                    return
                if low:
                    yield "x" * (low - 1)
                if high is not None and high < TEXT_LENGTH_MAX:
                    yield "x" * (high + 1)
                if "pattern" in shape and "Print" not in shape["pattern"] and "u0020" not in shape["pattern"]:
                    yield "\u00e9 \n" * max(1, low or 1)
            case "integer" | "long":
                if low is not None:
                    yield low - 1
                if high is not None:
                    yield high + 1
            case "list":
                if low:
                    yield [self.example(shape["member"])] * (low - 1)
                if high is not None and high < LIST_LENGTH_MAX:
                    yield [self.example(shape["member"])] * (high + 1)
            case "map":
                if low:
                    yield {}
                if high is not None and high < LIST_LENGTH_MAX:
                    value = self.example(name, member)
                    inner = next(iter(value.values()))
                    yield {f"key{number}": inner for number in range(high + 1)}
