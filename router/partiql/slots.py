"""The values of a statement as they are met: each gets a slot, and notes what its slot must hold."""

from __future__ import annotations

import re

from dynamo import number
from dynamo.errors import ApiError, validation
from dynamo.expressions import types
from dynamo.expressions.tree import Value
from dynamo.values import AttributeValue
from router.partiql import values
from router.partiql.faults import at, malformed
from router.partiql.terms import Attribute, Call, Collection, Missing, Placeholder, Scalar, Sum, Term, Tuple

_SCALE = re.compile(r"[0-9]*(?:\.([0-9]*))?(?:e([+-]?[0-9]+))?", re.IGNORECASE)
_SCALE_MAX = 2**31 - 1


class Slots:
    """`templates` are what fills the slots, in order; `checks` run over the filled slots of each request."""

    def __init__(self) -> None:
        self.templates: list[values.Template] = []
        self.checks: list[types.Check] = []

    def value(self, term: Term) -> Value:
        """A slot for a value. Raises ValidationException for a term that is none."""
        self.templates.append(template(term, "root"))
        return Value(len(self.templates) - 1)

    def item(self, term: Term) -> Value:
        """A slot for the value of an INSERT, whose attributes each are a root for themselves."""
        if isinstance(term, Tuple):
            self.templates.append(values.map_of(_pairs(term, "root", below="root")))
        else:
            self.templates.append(template(term, "root"))
        return Value(len(self.templates) - 1)


def template(term: Term, place: str) -> values.Template:
    """How the value of a term is made; `place` is its path within the value that it is part of.

    One call per level, which brackets bound. Raises ValidationException.
    """
    match term:
        case Scalar(kind, content, _):
            return values.Constant(_constant(kind, content, place))
        case Placeholder(index, _):
            return values.Parameter(index)
        case Tuple():
            return values.map_of(_pairs(term, place))
        case Collection("list", members, _):
            return values.list_of([template(member, f"{place}[{index}]") for index, member in enumerate(members)])
        case Collection(_, members, _):
            return values.set_of([template(member, place) for member in members])
    raise validation(f"Unsupported data type: {_name(term)} under key {place} at {at(term.token)}")


def _pairs(term: Tuple, place: str, below: str = "") -> list[tuple[str, values.Template]]:
    names = [name for name, _ in term.members]
    twice = next((name for index, name in enumerate(names) if name in names[:index]), None)
    if twice is not None:
        raise validation(f"Duplicate keys in tuple. Key: {twice} under {place}")
    return [(name, template(member, below or f"{place}.{name}")) for name, member in term.members]


def _name(term: Term) -> str:
    match term:
        case Call(name, _, _):
            return name
        case Attribute(path, _):
            return str(path.steps[0])
        case Sum(operator, _, _, _):
            return operator
        case Missing():
            return "missing"
    return "condition"


def _constant(kind: str, content: str | bool, place: str) -> AttributeValue:
    if kind != "N":
        return {kind: content}
    text = str(content)
    _check_scale(text.removeprefix("-"))
    try:
        return {"N": number.normalise(text)}
    except ApiError as error:
        raise validation(f"{error.message} under {place}") from None


def _check_scale(text: str) -> None:
    """Amazon's parser keeps exponent and scale as 32-bit numbers; what does not fit it cannot read at all."""
    parts = _SCALE.fullmatch(text)
    fraction, exponent = (parts[1] or "", parts[2] or "0") if parts else ("", "0")
    if (
        len(exponent.lstrip("+-0")) > 10
        or abs(int(exponent)) > _SCALE_MAX
        or len(fraction) - int(exponent) > _SCALE_MAX
    ):
        raise malformed()
