"""Where settings come from: TOML files, later ones before earlier ones, and above all of them the environment.

The environment variable TRIZONE_LISTEN stands for the setting `listen`, and so on; a list is written with commas.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_origin, get_type_hints

import msgspec

from cluster.settings import S, Settings, SettingsError, check_settings

PREFIX = "TRIZONE_"
PARENT_VARIABLE = "TRIZONE_PARENT"
"""Set by the launcher for its children; no setting."""

_ServiceLink = re.compile(r"_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT|PORT_\d+_(TCP|UDP)(_\w+)?)$")
"""What Kubernetes and Docker tell of other services, which may be called trizone-something."""


def read_settings(kind: type[S], paths: Sequence[str], environment: Mapping[str, str]) -> S:
    """The settings that the files at `paths` and the environment give. Raises SettingsError."""
    layers = [(path, _table(_content(path), path)) for path in paths]
    return _settings(kind, [*layers, *_from_environment(kind, environment)])


def parse_settings(kind: type[S], content: bytes, source: str) -> S:
    """The settings in TOML `content`; `source` names it in errors. Raises SettingsError."""
    return _settings(kind, [(source, _table(content, source))])


def with_values(settings: S, values: Mapping[str, str]) -> S:
    """Settings with those of `values` in place of their own that their kind has: names as in files, values as in the
    environment. A name that no service knows is a mistake. Raises SettingsError."""
    environment = {PREFIX + name.upper(): value for name, value in values.items()}
    kind = type(settings)
    return _settings(kind, [("", msgspec.to_builtins(settings)), *_from_environment(kind, environment)])


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise SettingsError(f"Cannot read the settings file {path}: {error.strerror}.") from error


def _table(content: bytes, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{source} is not a TOML file: {str(error).rstrip('.')}.") from error


def _settings(kind: type[S], layers: Sequence[tuple[str, dict[str, Any]]]) -> S:
    """All layers as one; a later one wins."""
    raw = {name: value for _, layer in layers for name, value in layer.items()}
    try:
        settings = msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise SettingsError(_sentence(str(error), layers)) from error
    check_settings(settings)
    return settings


# --- the environment ---


def _from_environment(kind: type[S], environment: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """A layer for each variable that sets something of `kind`.

    A variable may be meant for another service, as one list of them often serves several; one that no service knows
    is a mistake. Raises SettingsError.
    """
    own = get_type_hints(kind, include_extras=True)
    every = _names(Settings)
    for variable in sorted(environment):
        if not variable.startswith(PREFIX) or variable == PARENT_VARIABLE or _ServiceLink.search(variable):
            continue
        name = variable.removeprefix(PREFIX).lower()
        if name not in every:
            raise SettingsError(f"The environment variable {variable} stands for no setting.")
        if name in own:
            yield f"The environment variable {variable}", {name: _value(environment[variable], own[name], variable)}


def _names(kind: type[Settings]) -> set[str]:
    """Settings of a class and of all classes made from it."""
    return set(kind.__struct_fields__).union(*(_names(child) for child in kind.__subclasses__()))


def _value(text: str, hint: Any, variable: str) -> Any:
    """A variable's text as a setting of type `hint`, still to be validated with the others."""
    if get_origin(hint) is tuple:
        return [part.strip() for part in text.split(",") if part.strip()]
    try:
        return msgspec.to_builtins(msgspec.convert(text, hint, strict=False))
    except msgspec.ValidationError as error:
        raise SettingsError(f"The environment variable {variable} has a wrong value: {_small(str(error))}.") from error


# --- errors ---


def _sentence(problem: str, layers: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """msgspec's "Expected `int`, got `str` - at `$.name`" as one sentence that names the source."""
    problem, _, place = problem.partition(" - at ")
    member = re.split(r"[.\[]", place.strip("`").removeprefix("$").removeprefix("."))[0]
    if problem.startswith("Object contains unknown field "):
        name = problem.removeprefix("Object contains unknown field ").strip("`")
        return f"{_source(name, layers)} has a setting that does not exist: {name}."
    if problem.startswith("Object missing required field "):
        name = problem.removeprefix("Object missing required field ").strip("`")
        files = [source for source, _ in layers if not source.startswith("The environment")]
        if not files:
            return f"The setting {name} is missing: give it in a file with --config, or as {PREFIX}{name.upper()}."
        return f"{' and '.join(files)} {'lack' if len(files) > 1 else 'lacks'} the setting {name}."
    return f"{_source(member, layers)} has a wrong value for {member}: {_small(problem)}."


def _source(name: str, layers: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """Where the value of a setting came from."""
    return next((source for source, layer in reversed(layers) if name in layer), "")


def _small(problem: str) -> str:
    return f"{problem[0].lower()}{problem[1:].replace('`', '')}"
