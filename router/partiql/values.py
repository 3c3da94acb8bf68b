"""Values in a statement: constants, parameters, and what is put together of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from dynamo.errors import validation
from dynamo.values import AttributeValue, canonical_value

_SET_OF = {"S": "SS", "N": "NS", "B": "BS"}


class Constant(msgspec.Struct, frozen=True):
    """A canonical value, the same for every request."""

    value: AttributeValue


class Parameter(msgspec.Struct, frozen=True):
    """The request's parameter with this index, from 0."""

    index: int


class ListOf(msgspec.Struct, frozen=True):
    """A list with parameters somewhere inside."""

    members: tuple[Template, ...]


class MapOf(msgspec.Struct, frozen=True):
    """A map with parameters somewhere inside."""

    members: tuple[tuple[str, Template], ...]


class SetOf(msgspec.Struct, frozen=True):
    """A set, some of whose members are parameters."""

    members: tuple[Template, ...]


Template: TypeAlias = Constant | Parameter | ListOf | MapOf | SetOf


def fill(template: Template, parameters: Sequence[AttributeValue]) -> AttributeValue:
    """The canonical value of a template. Raises ValidationException for what cannot be put together."""
    match template:
        case Constant(value):
            return value
        case Parameter(index):
            return parameters[index]
    return canonical_value(_filled(template, parameters))


def list_of(members: Sequence[Template]) -> Template:
    """A list: a constant if all its members are."""
    return _settled(ListOf(tuple(members)), members)


def map_of(members: Sequence[tuple[str, Template]]) -> Template:
    """A map: a constant if all its members are."""
    return _settled(MapOf(tuple(members)), [template for _, template in members])


def set_of(members: Sequence[Template]) -> Template:
    """A set of strings, numbers or binaries: a constant if all its members are. Raises ValidationException."""
    if not members:
        raise validation("Empty bags are not supported")
    return _settled(SetOf(tuple(members)), members)


def _settled(template: Template, members: Sequence[Template]) -> Template:
    if all(isinstance(member, Constant) for member in members):
        return Constant(canonical_value(_filled(template, ())))
    return template


def _filled(template: Template, parameters: Sequence[AttributeValue]) -> AttributeValue:
    """One call per level of the value, which brackets bound."""
    match template:
        case Constant(value):
            return value
        case Parameter(index):
            return parameters[index]
        case ListOf(members):
            return {"L": [_filled(member, parameters) for member in members]}
        case MapOf(pairs):
            return {"M": {name: _filled(member, parameters) for name, member in pairs}}
        case SetOf(members):
            return _set([_filled(member, parameters) for member in members])


def _set(members: list[AttributeValue]) -> AttributeValue:
    kinds = {kind for member in members for kind in member}
    if len(kinds) > 1 or not kinds <= _SET_OF.keys():
        raise validation("A bag holds strings, numbers or binaries, all of one type")
    (kind,) = kinds
    return {_SET_OF[kind]: [member[kind] for member in members]}
