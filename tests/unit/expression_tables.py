"""Reads the tables in tests/data/expressions: one case per paragraph, what is asked above a line of dashes, what is
answered below it.

Above: a parameter and its text or JSON on each line (`condition a = :b`, `values {":b": {"N": "1"}}`). Lines that begin
with # are comments; the number of a case in the collection of public reports is noted there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

from dynamo.expressions.compile import Compiled, compile_expressions
from dynamo.values import Item, canonical_item

FOLDER = Path(__file__).resolve().parents[1] / "data" / "expressions"
EXPRESSIONS = ("condition", "filter", "update", "projection", "key_condition")


class Case(NamedTuple):
    """One paragraph: parameters by name, and the lines of the answer as one text."""

    asked: dict[str, str]
    answer: str

    def compile(self) -> Compiled:
        """The case's expressions, compiled; raises ApiError."""
        texts: dict[str, Any] = {kind: self.asked[kind] for kind in EXPRESSIONS if kind in self.asked}
        return compile_expressions(**texts, names=self.json("names"), values=self.json("values"))

    def json(self, parameter: str) -> Any:
        """A parameter that is JSON; None if the case has it not."""
        return orjson.loads(self.asked[parameter]) if parameter in self.asked else None

    @property
    def item(self) -> Item:
        """The item, which is empty where the case names none."""
        return canonical_item(self.json("item") or {})

    @property
    def answered_item(self) -> Item:
        """The answer as an item."""
        return canonical_item(orjson.loads(self.answer))


def cases(table: str) -> list[Any]:
    """The cases of a table, as parameters of a test."""
    text = (FOLDER / f"{table}.txt").read_text(encoding="utf-8")
    found = []
    line = 1
    for paragraph in text.split("\n\n"):
        lines = [each for each in paragraph.splitlines() if each and not each.startswith("#")]
        if lines:
            found.append(pytest.param(_case(lines), id=f"{table}.txt:{line}"))
        line += paragraph.count("\n") + 2
    return found


def _case(lines: list[str]) -> Case:
    middle = lines.index("----")
    asked = dict(line.partition(" ")[::2] for line in lines[:middle])
    return Case(asked, "\n".join(lines[middle + 1 :]))
