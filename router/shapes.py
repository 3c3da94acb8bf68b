"""The shapes of requests, compiled into closures that check one request in a few microseconds.

A request is checked in two passes, as DynamoDB does it. The first looks at types: the first wrong one ends the request
with `SerializationException`. The second looks at constraints and gathers up to ten of them into one
`ValidationException`. Both run as one walk here: `check` raises for a wrong type and returns whether all constraints
hold; only if not, `gather` walks again for the texts.

Attribute values are not entered: `dynamo.values` checks them while it makes them canonical. Here they are only objects.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dynamo.errors import serialization
from router import shape_rules as rules
from router.shape_errors import (
    ERRORS_MAX,
    check_batch,
    check_table_name,
    constraints_failed,
    failed,
    path_of,
    up_to_first_enum,
    wrong_collection,
    wrong_member,
    wrong_scalar,
)

MODEL_PACKAGE = "com.amazonaws.dynamodb.v20120810"
INTEGER_BITS = {"integer": 31, "long": 63}

Check = Callable[[Any], bool]
"""Raises SerializationException for a wrong type; says whether the constraints hold."""

Gather = Callable[[Any, str, list[str]], None]
"""Appends the texts of failed constraints of a value at a path."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A compiled shape: `type` is the model's, `java` the class that DynamoDB's texts name."""

    name: str
    type: str
    java: str
    check: Check
    gather: Gather
    render: Callable[[Any], str]


class OperationShape:
    """The input of one operation."""

    def __init__(self, operation: str, shape: Shape | None, names_table: bool) -> None:
        self.operation = operation
        self._shape = shape
        self._names_table = names_table

    def validate(self, body: dict[str, Any]) -> None:
        """Check a request and drop its nulls, which mean absent members. Raises ApiError."""
        if self._shape is None:
            return
        holds = self._shape.check(body)
        if self._names_table:
            check_table_name(self.operation, body.get("TableName"))
        if not holds:
            check_batch(self.operation, body)
            errors: list[str] = []
            self._shape.gather(body, "", errors)
            if self.operation in rules.FIRST_ENUM_ONLY:
                errors = up_to_first_enum(errors)
            raise constraints_failed([rules.REWORDED.get((self.operation, error), error) for error in errors])


def compile_service(service: dict[str, Any]) -> dict[str, OperationShape]:
    """The operations of one service of `model.json`, by name."""
    compiler = _Compiler(service["shapes"], frozenset(service["operations"].values()))
    operations = {}
    for operation, name in service["operations"].items():
        members = service["shapes"][name]["members"] if name else {}
        # GetShardIterator and its like name streams; global tables name other things.
        names_table = members.get("TableName") == "TableArn"
        operations[operation] = OperationShape(operation, compiler.shape(name) if name else None, names_table)
    return operations


# --- compilation ---


class _Compiler:
    """Makes `Shape`s from the model's entries; `AttributeValue`, the only recursive shape, is not entered. `inputs` are
    the names of whole requests' shapes."""

    def __init__(self, model: dict[str, Any], inputs: frozenset[str]) -> None:
        self._model = model
        self.inputs = inputs
        self._shapes: dict[str, Shape] = {}

    def shape(self, name: str) -> Shape:
        if name not in self._shapes:
            entry = self._model[name]
            self._shapes[name] = _COMPILE[entry["type"]](self, name, entry)
        return self._shapes[name]

    def member(self, structure: str, member: str, name: str) -> Shape:
        """A structure's member, with the bounds that only hold there."""
        bounds = rules.MEMBER_BOUNDS.get((structure, member))
        if bounds is None:
            return self.shape(name)
        entry = {**self._model[name], **bounds}
        return _COMPILE[entry["type"]](self, name, entry)


def _compile_string(_compiler: _Compiler, name: str, entry: dict[str, Any]) -> Shape:
    unchecked = name in rules.UNCHECKED
    tests = [] if unchecked else [*_enum_tests(name, entry), *_pattern_tests(entry), *_length_tests(entry)]

    def check(value: Any) -> bool:
        if type(value) is not str:
            raise wrong_scalar(value, "String")
        return all(test(value) for test, _ in tests) if tests else True

    return Shape(name, "string", "class java.lang.String", check, _gatherer(tests, str), str)


def _compile_number(_compiler: _Compiler, name: str, entry: dict[str, Any]) -> Shape:
    java = entry["type"].capitalize()
    tests = _value_tests(entry)
    bits = INTEGER_BITS[entry["type"]]

    def check(value: Any) -> bool:
        if type(value) is not int or not -(1 << bits) <= value < 1 << bits:
            raise wrong_scalar(value, java)
        return all(test(value) for test, _ in tests)

    return Shape(name, entry["type"], f"class java.lang.{java}", check, _gatherer(tests, str), str)


def _compile_double(_compiler: _Compiler, name: str, entry: dict[str, Any]) -> Shape:
    tests = _value_tests(entry)

    def check(value: Any) -> bool:
        if type(value) is not float and type(value) is not int:
            raise wrong_scalar(value, "Double")
        return all(test(value) for test, _ in tests)

    return Shape(name, entry["type"], "class java.lang.Double", check, _gatherer(tests, str), str)


def _compile_boolean(_compiler: _Compiler, name: str, _entry: dict[str, Any]) -> Shape:
    def check(value: Any) -> bool:
        if type(value) is not bool:
            raise wrong_scalar(value, "Boolean")
        return True

    return Shape(name, "boolean", "class java.lang.Boolean", check, _nothing, lambda value: str(value).lower())


def _compile_blob(_compiler: _Compiler, name: str, _entry: dict[str, Any]) -> Shape:
    def check(value: Any) -> bool:
        if type(value) is not str:
            raise wrong_scalar(value, "String")
        return True

    return Shape(name, "blob", "class java.nio.ByteBuffer", check, _nothing, str)


def _compile_list(compiler: _Compiler, name: str, entry: dict[str, Any]) -> Shape:
    member = compiler.shape(entry["member"])
    member_check = member.check
    collections = member.type in ("structure", "list", "map")
    wanted = list if member.type == "list" else dict
    tests = _length_tests(entry)
    own = _gatherer(tests, lambda value: render(value))
    java = f"java.util.List<{member.java.removeprefix('class ')}>"

    def check(value: Any) -> bool:
        if type(value) is not list:
            raise wrong_collection(value, java)
        holds = all(test(value) for test, _ in tests)
        for element in value:
            if element is None:
                holds = False
            elif collections and type(element) is not wanted:
                raise wrong_member(element, member.type, member.java)
            elif not member_check(element):
                holds = False
        return holds

    def gather(value: Any, path: str, errors: list[str]) -> None:
        own(value, path, errors)
        for number, element in enumerate(value, 1):
            if len(errors) >= ERRORS_MAX:
                return
            _gather_member(member, element, f"{path}.{number}.member", errors)

    def render(value: Any) -> str:
        return "[" + ", ".join(_render(member, element) for element in value) + "]"

    return Shape(name, "list", java, check, gather, render)


def _compile_map(compiler: _Compiler, name: str, entry: dict[str, Any]) -> Shape:
    member = compiler.shape(entry["value"])
    if entry["value"] == "AttributeValue":
        return _attribute_map(name, member)
    member_check = member.check
    collections = member.type in ("structure", "list", "map")
    wanted = list if member.type == "list" else dict
    tests = _length_tests(entry)
    own = _gatherer(tests, lambda value: render(value))
    value_tests = _length_tests(compiler._model[entry["value"]]) if member.type == "list" else []
    value_constraints = [constraint for _, constraint in reversed(value_tests)]
    java = f"java.util.Map<java.lang.String, {member.java.removeprefix('class ')}>"

    def check(value: Any) -> bool:
        if type(value) is not dict:
            raise wrong_collection(value, java) if type(value) is list else serialization("Unexpected field type")
        holds = all(test(value) for test, _ in tests)
        for element in value.values():
            if element is None:
                holds = False
            elif collections and type(element) is not wanted:
                raise wrong_member(element, member.type, member.java)
            elif not member_check(element):
                holds = False
        return holds

    def gather(value: Any, path: str, errors: list[str]) -> None:
        own(value, path, errors)
        if any(not test(element) for element in value.values() if element is not None for test, _ in value_tests):
            constraint = f"Map value must satisfy constraint: [{', '.join(value_constraints)}]"
            errors.append(failed(render(value), path, constraint))
            return
        for key, element in value.items():
            if len(errors) >= ERRORS_MAX:
                return
            _gather_member(member, element, f"{path}.{key}.member", errors)

    def render(value: Any) -> str:
        return "{" + ", ".join(f"{key}={_render(member, element)}" for key, element in value.items()) + "}"

    return Shape(name, "map", java, check, gather, render)


def _attribute_map(name: str, member: Shape) -> Shape:
    """A map of attribute values, on the path of every item: only that they are objects is checked."""
    java = f"java.util.Map<java.lang.String, {member.java.removeprefix('class ')}>"

    def check(value: Any) -> bool:
        if type(value) is not dict:
            raise wrong_collection(value, java) if type(value) is list else serialization("Unexpected field type")
        for attribute, element in value.items():
            if type(element) is not dict:
                if element is not None:
                    raise wrong_member(element, member.type, member.java)
                value[attribute] = {}  # the value's own check says what DynamoDB says of an empty one
        return True

    def render(value: Any) -> str:
        return "{" + ", ".join(f"{key}={member.render(element)}" for key, element in value.items()) + "}"

    return Shape(name, "map", java, check, _nothing, render)


def _compile_structure(compiler: _Compiler, name: str, entry: dict[str, Any]) -> Shape:
    java = f"class {MODEL_PACKAGE}.{name}"
    if name == "AttributeValue":
        return Shape(name, "structure", java, _check_attribute_value, _nothing, _render_attribute_value)
    shapes = {member: compiler.member(name, member, shape) for member, shape in entry["members"].items()}
    checks = {member: shape.check for member, shape in shapes.items()}
    integers = {member for member, shape in shapes.items() if shape.type in INTEGER_BITS}
    # A request's missing TableName has texts of its own, see check_table_name.
    names_table = name in compiler.inputs and entry["members"].get("TableName") == "TableArn"
    own_text = {"TableName"} if names_table else set()
    required = [*entry.get("required", ()), *rules.REQUIRED.get(name, ())]
    required = [member for member in required if member not in own_text]
    first = rules.MEMBER_ORDER.get(name, ())
    order = [(member, shapes[member]) for member in (*first, *(other for other in shapes if other not in first))]

    def check(value: Any) -> bool:
        if type(value) is not dict:
            raise wrong_collection(value, java) if type(value) is list else serialization("Unexpected field type")
        holds = True
        nulls: list[str] | None = None
        for member, content in value.items():
            if content is None:
                nulls = [*(nulls or ()), member]
                continue
            if (member_check := checks.get(member)) is None:
                continue
            if type(content) is float and member in integers:
                value[member] = content = _truncated(content)
            if not member_check(content):
                holds = False
        for member in nulls or ():
            del value[member]
        return all(member in value for member in required) and holds

    def gather(value: Any, path: str, errors: list[str]) -> None:
        for member, shape in order:
            if len(errors) >= ERRORS_MAX:
                return
            content = value.get(member)
            if content is not None:
                shape.gather(content, path_of(path, member), errors)
            elif member in required:
                errors.append(failed(None, path_of(path, member), "Member must not be null"))

    def render(value: Any) -> str:
        present = ((member, shape) for member, shape in shapes.items() if value.get(member) is not None)
        return (
            f"{name}("
            + ", ".join(f"{path_of('', member)}={shape.render(value[member])}" for member, shape in present)
            + ")"
        )

    return Shape(name, "structure", java, check, gather, render)


_COMPILE: dict[str, Callable[[_Compiler, str, dict[str, Any]], Shape]] = {
    "string": _compile_string,
    "integer": _compile_number,
    "long": _compile_number,
    "double": _compile_double,
    "timestamp": _compile_double,
    "boolean": _compile_boolean,
    "blob": _compile_blob,
    "list": _compile_list,
    "map": _compile_map,
    "structure": _compile_structure,
}


def _check_attribute_value(value: Any) -> bool:
    if type(value) is not dict:
        raise wrong_collection(value, f"class {MODEL_PACKAGE}.AttributeValue")
    return True


def _render_attribute_value(value: Any) -> str:
    """The value for an error's text; what is inside of lists and maps, however deep, is left out."""
    shown = (
        (type_.lower(), "..." if isinstance(content, dict | list) else content) for type_, content in value.items()
    )
    return "AttributeValue(" + ", ".join(f"{type_}={content}" for type_, content in shown) + ")"


def _render(shape: Shape, value: Any) -> str:
    return "null" if value is None else shape.render(value)


def _truncated(value: float) -> int | float:
    """A number with a fraction, where a whole one is wanted: DynamoDB cuts the fraction off."""
    return int(value) if abs(value) < 2.0**63 else value


# --- constraints ---

Test = tuple[Callable[[Any], bool], str]
"""A predicate, and its text."""


def _nothing(_value: Any, _path: str, _errors: list[str]) -> None:
    """Gathers nothing: the shape has no constraints."""


def _gatherer(tests: list[Test], render: Callable[[Any], str]) -> Gather:
    if not tests:
        return _nothing

    def gather(value: Any, path: str, errors: list[str]) -> None:
        errors.extend(failed(render(value), path, constraint) for test, constraint in tests if not test(value))

    return gather


def _gather_member(member: Shape, value: Any, path: str, errors: list[str]) -> None:
    if value is None:
        errors.append(failed(None, path, "Member must not be null"))
    else:
        member.gather(value, path, errors)


def _enum_tests(name: str, entry: dict[str, Any]) -> list[Test]:
    if "enum" not in entry:
        return []
    listed = rules.ENUM_ORDER.get(name, tuple(entry["enum"]))
    return [(frozenset(entry["enum"]).__contains__, f"{rules.ENUM_CONSTRAINT}: [{', '.join(listed)}]")]


def _pattern_tests(entry: dict[str, Any]) -> list[Test]:
    if "pattern" not in entry:
        return []
    java = entry["pattern"]
    pattern = re.compile(rules.PATTERNS.get(java, java))
    return [
        (lambda value: pattern.fullmatch(value) is not None, f"Member must satisfy regular expression pattern: {java}")
    ]


def _length_tests(entry: dict[str, Any]) -> list[Test]:
    tests: list[Test] = []
    if low := entry.get("min"):
        tests.append((lambda value: len(value) >= low, f"Member must have length greater than or equal to {low}"))
    if "max" in entry:
        high = entry["max"]
        tests.append((lambda value: len(value) <= high, f"Member must have length less than or equal to {high}"))
    return tests


def _value_tests(entry: dict[str, Any]) -> list[Test]:
    tests: list[Test] = []
    if "min" in entry:
        low = entry["min"]
        tests.append((lambda value: value >= low, f"Member must have value greater than or equal to {low}"))
    if "max" in entry:
        high = entry["max"]
        tests.append((lambda value: value <= high, f"Member must have value less than or equal to {high}"))
    return tests
