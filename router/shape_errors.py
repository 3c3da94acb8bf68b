"""The errors of requests that have not their operation's shape, in DynamoDB's words."""

from __future__ import annotations

import re
from typing import Any

from dynamo.errors import ApiError, serialization, validation
from router import shape_rules as rules

ERRORS_MAX = 10
VALUE_TEXT_MAX = 2_000
"""How many characters of a wrong value an error repeats."""

PARAMETERIZED_TYPE = (
    "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class java.lang.Class "
    "(sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class are in module java.base of "
    "loader 'bootstrap')"
)
"""What DynamoDB answers where a list or map of lists or maps has a member of another type."""


# --- texts ---


def constraints_failed(errors: list[str]) -> ApiError:
    """`ValidationException` with the first ten of these texts."""
    shown = errors[:ERRORS_MAX]
    plural = "" if len(shown) == 1 else "s"
    return validation(f"{len(shown)} validation error{plural} detected: {'; '.join(shown)}")


def up_to_first_enum(errors: list[str]) -> list[str]:
    """The errors, without those that come after the first of an enum."""
    for number, error in enumerate(errors, 1):
        if f"failed to satisfy constraint: {rules.ENUM_CONSTRAINT}: [" in error:
            return errors[:number]
    return errors


def failed(value: str | None, path: str, constraint: str) -> str:
    """The text of one failed constraint; `value` is None for a missing member."""
    if value is not None and len(value) > VALUE_TEXT_MAX:
        value = value[: VALUE_TEXT_MAX - 1] + value[-1]  # a list still ends as one
    shown = "null" if value is None else f"'{value}'"
    return f"Value {shown} at '{path}' failed to satisfy constraint: {constraint}"


def _token(value: Any) -> str:
    match value:
        case bool():
            return "TRUE_VALUE" if value else "FALSE_VALUE"
        case str():
            return "STRING_VALUE"
        case int():
            return "NUMBER_VALUE"
        case _:
            return "DECIMAL_VALUE"


def wrong_scalar(value: Any, java: str) -> ApiError:
    """A value that is no `java`, such as "String"."""
    if isinstance(value, list):
        return serialization(f"Unrecognized collection type class java.lang.{java}")
    if isinstance(value, dict):
        return serialization("Start of structure or map found where not expected")
    if java == "Boolean" and isinstance(value, str):
        return serialization("Unexpected token received from parser")
    return serialization(f"{_token(value)} cannot be converted to {java}")


def wrong_collection(value: Any, java: str) -> ApiError:
    """A value that is not the list, map or structure `java`."""
    if isinstance(value, dict):
        return serialization("Start of structure or map found where not expected")
    if isinstance(value, list):
        return serialization(f"Unrecognized collection type {java}")
    return serialization("Unexpected field type")


def wrong_member(value: Any, type_: str, java: str) -> ApiError:
    """A member of a list or map that is not the structure, list or map that it should be."""
    if type_ in ("list", "map"):
        return serialization(PARAMETERIZED_TYPE)
    if isinstance(value, list):
        return serialization(f"Unrecognized collection type {java}")
    return serialization("Unexpected value type in payload")


def path_of(prefix: str, member: str) -> str:
    """Where a member stands, as texts name it."""
    lowered = member[:1].lower() + member[1:]
    return f"{prefix}.{lowered}" if prefix else lowered


# --- TableName ---

_NAME = re.compile(rules.NAME_PATTERN)


def check_table_name(operation: str, name: str | None) -> None:
    """Raises for a TableName that is missing or malformed. Its error stands alone, whatever else is wrong."""
    on_tables = operation in rules.TABLE_OPERATIONS
    if name is None:
        if on_tables:
            raise validation("The parameter 'TableName' is required but was not present in the request")
        raise constraints_failed([failed(None, "tableName", "Member must not be null")])
    shortest = rules.TABLE_NAME_LENGTH_MIN if on_tables else 1
    if shortest <= len(name) <= rules.NAME_LENGTH_MAX and _NAME.fullmatch(name):
        return
    if name.startswith("arn:") and len(name) <= rules.ARN_LENGTH_MAX:
        return
    if on_tables and operation != "CreateTable" and not shortest <= len(name) <= rules.NAME_LENGTH_MAX:
        raise validation("TableName must be at least 3 characters long and at most 255 characters long")
    raise constraints_failed(_name_errors(name, shortest))


def _name_errors(name: str, shortest: int) -> list[str]:
    constraints = []
    if not _NAME.fullmatch(name) and (name or shortest > 1):
        constraints.append(f"Member must satisfy regular expression pattern: {rules.NAME_PATTERN}")
    if len(name) < shortest:
        constraints.append(f"Member must have length greater than or equal to {shortest}")
    if len(name) > rules.NAME_LENGTH_MAX:
        constraints.append(f"Member must have length less than or equal to {rules.NAME_LENGTH_MAX}")
    return [failed(name, "tableName", constraint) for constraint in constraints]


# --- batches ---


def check_batch(operation: str, body: dict[str, Any]) -> None:
    """Raises for what DynamoDB says of batches in words of its own."""
    if operation not in rules.BATCH_OPERATIONS or (tables := body.get("RequestItems")) is None:
        return
    if not tables:
        raise validation(f"The requestItems parameter is required for {operation}")
    for table, wanted in tables.items():
        keys = wanted.get("Keys") if type(wanted) is dict else None
        if keys is not None and not 1 <= len(keys) <= rules.BATCH_GET_KEYS_MAX:
            place, bound = rules.BATCH_GET_TOO_MANY if keys else rules.BATCH_GET_NONE
            raise constraints_failed([f"Value at '{place.format(table=table)}' failed to satisfy constraint: {bound}"])
