"""A statement's text to what is to be done. What does not depend on the parameters is kept for the next request."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from dynamo.errors import validation
from dynamo.expressions import types
from dynamo.values import AttributeValue, canonical_value
from router.partiql.build import build
from router.partiql.grammar import read
from router.partiql.slots import Slots
from router.partiql.statements import Statement
from router.partiql.values import Template, fill

CACHED_STATEMENTS_MAX = 1024
CACHED_TEXT_SIZE_MAX = 2048
"""Statements kept, and characters of the longest. A full cache takes some tens of megabytes."""


class Parsed(msgspec.Struct, frozen=True, eq=False):
    """A statement, without the values of its parameters. Compared by identity."""

    statement: Statement
    parameter_count: int
    templates: tuple[Template, ...]
    checks: tuple[types.Check, ...]

    def fill(self, parameters: Sequence[Any] | None) -> list[AttributeValue]:
        """The canonical values of the slots. `parameters`: the request's, as decoded from JSON.

        Raises ValidationException, or SerializationException for parameters that are no attribute values.
        """
        given = [canonical_value(parameter) for parameter in parameters or ()]
        if len(given) != self.parameter_count:
            raise validation("Number of parameters in request and statement don't match.")
        values = [fill(template, given) for template in self.templates]
        for check in self.checks:
            fault = check(values)
            if fault is not None:
                raise validation(fault)
        return values


def parse(text: str) -> Parsed:
    """The parsed statement. Raises ValidationException with DynamoDB's text."""
    return (_cached if len(text) <= CACHED_TEXT_SIZE_MAX else _parse)(text)


def _parse(text: str) -> Parsed:
    slots = Slots()
    statement, parameter_count = build(read(text), slots)
    return Parsed(statement, parameter_count, tuple(slots.templates), tuple(slots.checks))


_cached = lru_cache(maxsize=CACHED_STATEMENTS_MAX)(_parse)
