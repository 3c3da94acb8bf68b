"""A statement's text to what is to be done. What does not depend on the parameters is kept for the next request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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


WORDS_MAX = 4_096
"""Words and signs of one statement. Reading one takes some 15 µs, and nothing else is done meanwhile."""
WORDS_TOGETHER_MAX = 16_384
"""The same for all different statements of a request."""
LONG_STATEMENTS_MAX = 8
"""Long statements that are kept, for the moment between judging and planning."""

_WORD = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\w+|[^\w\s]""")


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
    return (_cached if len(text) <= CACHED_TEXT_SIZE_MAX else _cached_long)(text)


def check_together(texts: Iterable[str]) -> None:
    """Whether the statements of one request are not too much to be read at once. Raises ValidationException."""
    if sum(map(_words, set(texts))) > WORDS_TOGETHER_MAX:
        raise validation(f"The statements of a request have more than {WORDS_TOGETHER_MAX} words and signs together")


def _words(text: str) -> int:
    """At least as many as the grammar finds; a quoted text counts as one."""
    return len(_WORD.findall(text))


def _parse(text: str) -> Parsed:
    if len(text) > WORDS_MAX and _words(text) > WORDS_MAX:
        raise validation(f"The statement has more than {WORDS_MAX} words and signs")
    slots = Slots()
    statement, parameter_count = build(read(text), slots)
    return Parsed(statement, parameter_count, tuple(slots.templates), tuple(slots.checks))


_cached = lru_cache(maxsize=CACHED_STATEMENTS_MAX)(_parse)
_cached_long = lru_cache(maxsize=LONG_STATEMENTS_MAX)(_parse)
