"""The expressions of a request, checked and compiled.

`compile_expressions` does what DynamoDB does before it looks at any table. All but the values is kept in a cache: the
trees, their encoded bytes, and the checks that each request's values have to pass.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from dynamo.errors import ApiError, request_validation, validation
from dynamo.expressions import types
from dynamo.expressions.parser import MalformedError, parse_condition, parse_projection, parse_update
from dynamo.expressions.resolve import Resolver
from dynamo.expressions.shape import check_condition, check_projection, check_update
from dynamo.expressions.tree import Condition, Projection, Update, encode
from dynamo.values import AttributeValue, canonical_value, too_deep

EXPRESSION_SIZE_MAX = 4096
"""UTF-8 bytes of one expression."""

PLACEHOLDER_SIZE_MAX = 255
"""UTF-8 bytes of a placeholder, with its # or colon."""

CACHE_ENTRIES_MAX = 4096
CACHED_TEXT_SIZE_MAX = 1024
CACHED_NAMES_MAX = 32
CACHED_NAMES_SIZE_MAX = 1024
"""Characters of one text, number of placeholders, and characters of all names in a request that the cache takes. Larger
requests are compiled anew each time: a cache full of them could take a gigabyte."""

_NAME_KEY = re.compile(r"#[A-Za-z0-9_]+")
_VALUE_KEY = re.compile(r":[A-Za-z0-9_]+")

# In the order in which DynamoDB reads the expressions of a request.
_KINDS = (
    ("UpdateExpression", parse_update, check_update, Resolver.update),
    ("ConditionExpression", parse_condition, check_condition, Resolver.condition),
    ("KeyConditionExpression", parse_condition, check_condition, Resolver.condition),
    ("FilterExpression", parse_condition, check_condition, Resolver.condition),
    ("ProjectionExpression", parse_projection, check_projection, Resolver.projection),
)

_Texts: TypeAlias = tuple[str | None, ...]
_Checks: TypeAlias = tuple[tuple[str, types.Check], ...]


class Template:
    """What the expressions of a request come to without the values: trees, encoded trees, checks of values."""

    __slots__ = (
        "checks",
        "condition",
        "encoded_condition",
        "encoded_filter",
        "encoded_projection",
        "encoded_update",
        "filter",
        "filter_attributes",
        "key_condition",
        "legacy_filter",
        "nested_attributes",
        "projection",
        "update",
    )

    def __init__(
        self,
        *,
        update: Update | None = None,
        condition: Condition | None = None,
        key_condition: Condition | None = None,
        filter: Condition | None = None,  # noqa: A002
        projection: Projection | None = None,
        checks: _Checks = (),
        filter_attributes: frozenset[str] = frozenset(),
        nested_attributes: frozenset[str] = frozenset(),
        legacy_filter: bool = False,
    ) -> None:
        self.update = update
        self.condition = condition
        self.key_condition = key_condition
        self.filter = filter
        self.projection = projection
        self.checks = checks
        self.filter_attributes = filter_attributes
        self.nested_attributes = nested_attributes
        self.legacy_filter = legacy_filter
        self.encoded_update = b"" if update is None else encode(update)
        self.encoded_condition = b"" if condition is None else encode(condition)
        self.encoded_filter = b"" if filter is None else encode(filter)
        self.encoded_projection = b"" if projection is None else encode(projection)


class Compiled:
    """The compiled expressions of one request.

    `condition`, `filter`, `key_condition`, `update` and `projection` are resolved trees, or None; `encoded_…` the same
    as bytes for the storage node, empty for None; `values` the canonical attribute values in slot order.
    """

    __slots__ = ("_template", "values")

    def __init__(self, template: Template, values: list[AttributeValue]) -> None:
        self._template = template
        self.values = values

    @property
    def condition(self) -> Condition | None:
        return self._template.condition

    @property
    def filter(self) -> Condition | None:
        return self._template.filter

    @property
    def key_condition(self) -> Condition | None:
        return self._template.key_condition

    @property
    def update(self) -> Update | None:
        return self._template.update

    @property
    def projection(self) -> Projection | None:
        return self._template.projection

    @property
    def filter_attributes(self) -> frozenset[str]:
        """The attributes that the filter's paths begin with."""
        return self._template.filter_attributes

    @property
    def nested_attributes(self) -> frozenset[str]:
        """The attributes that some path of any expression leads into."""
        return self._template.nested_attributes

    @property
    def legacy_filter(self) -> bool:
        """Whether the filter is a QueryFilter or ScanFilter."""
        return self._template.legacy_filter

    @property
    def encoded_condition(self) -> bytes:
        return self._template.encoded_condition

    @property
    def encoded_filter(self) -> bytes:
        return self._template.encoded_filter

    @property
    def encoded_update(self) -> bytes:
        return self._template.encoded_update

    @property
    def encoded_projection(self) -> bytes:
        return self._template.encoded_projection


def compile_expressions(
    *,
    condition: str | None = None,
    filter: str | None = None,  # noqa: A002
    update: str | None = None,
    projection: str | None = None,
    key_condition: str | None = None,
    names: Mapping[str, str] | None = None,
    values: Mapping[str, Any] | None = None,
) -> Compiled:
    """Checks and compiles the expressions of a request.

    `names` is its ExpressionAttributeNames, `values` its ExpressionAttributeValues as decoded from JSON. Raises a
    ValidationException (for values of the wrong JSON type, a SerializationException) with DynamoDB's text.
    """
    if names is not None:
        _check_names(names)
    slots = [] if values is None else _canonical_values(values)
    texts = (update, condition, key_condition, filter, projection)
    try:
        template = _find_template(texts, names or {}, tuple(values or ()))
    except _RejectedError as rejected:
        _check_values(rejected.checks, slots)
        raise rejected.error from None
    if template.checks:
        _check_values(template.checks, slots)
    return Compiled(template, slots)


class _RejectedError(Exception):
    """Expressions that no values make right; `checks` are those that come before the fault that was found."""

    def __init__(self, error: ApiError, checks: _Checks) -> None:
        super().__init__(error)
        self.error = error
        self.checks = checks


def _find_template(texts: _Texts, names: Mapping[str, str], value_names: tuple[str, ...]) -> Template:
    pairs = tuple(names.items())
    cached = (
        len(pairs) + len(value_names) <= CACHED_NAMES_MAX
        and (not pairs or len("".join(names.values())) <= CACHED_NAMES_SIZE_MAX)
        and max(map(len, filter(None, texts)), default=0) <= CACHED_TEXT_SIZE_MAX
    )
    return (_cached_template if cached else _template)(texts, pairs, value_names)


def _template(texts: _Texts, names: tuple[tuple[str, str], ...], value_names: tuple[str, ...]) -> Template:
    resolver = Resolver(dict(names), {name: slot for slot, name in enumerate(value_names)})
    checks: list[tuple[str, types.Check]] = []
    trees: list[Any] = []
    attributes: dict[str, frozenset[str]] = {}
    for (label, parse, check, resolve), text in zip(_KINDS, texts, strict=True):
        try:
            trees.append(None if text is None else _resolved(label, text, parse, check, resolve, resolver))
        except MalformedError as malformed:
            checks += [(label, each) for each in resolver.checks]
            raise _RejectedError(request_validation(f"Invalid {label}: {malformed}"), tuple(checks)) from None
        checks += [(label, each) for each in resolver.checks]
        attributes[label] = frozenset(resolver.attributes)
        resolver.checks.clear()
        resolver.attributes.clear()
    _check_used("ExpressionAttributeNames", [name for name, _ in names], resolver.used_names, checks)
    _check_used("ExpressionAttributeValues", value_names, resolver.used_values, checks)
    update, condition, key_condition, filter_, projection = trees
    return Template(
        update=update,
        condition=condition,
        key_condition=key_condition,
        filter=filter_,
        projection=projection,
        checks=tuple(checks),
        filter_attributes=attributes["FilterExpression"],
        nested_attributes=frozenset(resolver.nested_attributes),
    )


_cached_template = lru_cache(maxsize=CACHE_ENTRIES_MAX)(_template)


def _resolved(label: str, text: str, parse: Any, check: Any, resolve: Any, resolver: Resolver) -> Any:
    if not text:
        raise _RejectedError(validation(f"Invalid {label}: The expression can not be empty;"), ())
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > EXPRESSION_SIZE_MAX:
        raise MalformedError(f"Expression size has exceeded the maximum allowed size; expression size: {size}")
    raw = parse(text)
    check(raw)
    return resolve(resolver, raw)


def _check_used(parameter: str, defined: Any, used: set[str], checks: list[tuple[str, types.Check]]) -> None:
    unused = [name for name in defined if name not in used]
    if unused:
        error = validation(f"Value provided in {parameter} unused in expressions: keys: {{{', '.join(unused)}}}")
        raise _RejectedError(error, tuple(checks))


def _check_values(checks: _Checks, values: list[AttributeValue]) -> None:
    for label, check in checks:
        fault = check(values)
        if fault is not None:
            raise request_validation(f"Invalid {label}: {fault}")


# --- placeholders ---


def _check_names(names: Mapping[str, str]) -> None:
    if not names:
        raise validation("ExpressionAttributeNames must not be empty")
    for key, name in names.items():
        _check_key("ExpressionAttributeNames", _NAME_KEY, key)
        if not name or len(name) > 16_383:  # no character takes more than four bytes
            _check_name(key, name)


def _check_name(key: str, name: str) -> None:
    if not name:
        raise validation(f"ExpressionAttributeNames contains invalid value: Empty attribute name for key {key}")
    if len(name.encode("utf-8", "surrogatepass")) > 65_535:
        raise request_validation("Attribute name is too large, must be less than 65536 bytes")


def _check_key(parameter: str, pattern: re.Pattern[str], key: str) -> None:
    if len(key) > PLACEHOLDER_SIZE_MAX:
        raise validation(
            f"{parameter} contains invalid key: "
            f"The expression attribute map contains a key that is too long; size of key: {len(key)}"
        )
    if pattern.fullmatch(key) is None:
        raise validation(f'{parameter} contains invalid key: Syntax error; key: "{key}"')


def _canonical_values(values: Mapping[str, Any]) -> list[AttributeValue]:
    if not values:
        raise validation("ExpressionAttributeValues must not be empty")
    for key in values:
        _check_key("ExpressionAttributeValues", _VALUE_KEY, key)
    try:
        return [canonical_value(value) for value in values.values()]
    except ApiError:
        for key, value in values.items():
            _check_value(key, value)
        raise


def _check_value(key: str, value: Any) -> None:
    """Raises what is wrong with a value, naming its placeholder where DynamoDB does."""
    try:
        canonical_value(value)
    except ApiError as error:
        if error.type != "ValidationException" or error.message == too_deep().message:
            raise
        raise ApiError(
            error.type,
            f"ExpressionAttributeValues contains invalid value: {error.message} for key {key}",
            request_validation=error.request_validation,
        ) from None
